// The settings of an index: forms, or JSON; what a change costs, what it changes, and the changes before it.
import {ask, ended, indexPath, turns} from "./api.js";
import {chooser, indexes} from "./indexes.js";
import {diff} from "./diff.js";
import {chips, fieldsOf, picker, rankingRules, someFields, synonyms, typos} from "./forms.js";
import {brief, count, field, h, json, say, select, show, tabs, when} from "./dom.js";
import {titleOf} from "./hit.js";

const all = "svc reads all documents again", columns = "svc collects the values of new fields from all documents", none = "no document is indexed again";

/** about tells of each setting: its title, what it does, and what a change does to the documents that are there. */
const about = {
  searchableAttributes: ["Searchable fields", "Searches look in these fields. The first ones count most. Fields on one line count the same.", all + ", unless you only move fields or change groups"],
  displayedAttributes: ["Displayed fields", "Answers show these fields and hide the others.", none],
  distinctAttribute: ["One hit per value", "Of all documents with the same value in this field, a search shows only the best one.", none],
  rankingRules: ["Ranking rules", "The first rule orders all hits. Each further rule orders hits that are equal so far.", none],
  proximityPrecision: ["Distance of words", "The rule “proximity” counts the words between two words of the query, or only asks if they share a field.", none],
  scoreFunctions: ["Score functions", "The rule “score” orders hits by popularity, age or other numbers of the documents.", columns],
  filterableAttributes: ["Filters and facets", "Searches can filter by these fields and count their values.", columns],
  sortableAttributes: ["Sortable fields", "Searches can sort by these fields.", columns],
  faceting: ["Facet values", "How many values a facet lists, and in which order.", none],
  facetSearch: ["Search in facets", "People can search among the values of a facet.", none],
  synonyms: ["Synonyms", "A search for a word also finds its synonyms.", none],
  stopWords: ["Stop words", "Searches ignore these words, such as “the” and “of”.", all],
  dictionary: ["Dictionary", "Text is never split inside these words, such as “J. R. R.”.", all],
  separatorTokens: ["Additional separators", "Text is split at these characters, too.", all],
  nonSeparatorTokens: ["Characters within words", "Text is not split at these characters, such as “#” in “C#”.", all],
  localizedAttributes: ["Languages", "The language of each field, for scripts that need to know it.", all],
  prefixSearch: ["Search as you type", "The last word of a query also finds longer words that start with it.", all],
  typoTolerance: ["Typo tolerance", "Searches find words in spite of one or two typos. Longer words may have more of them.", none],
  embedders: ["Embedders", "Embedders turn documents and queries into vectors, for searches by meaning.", "svc computes missing vectors. This may call a provider, and cost money"],
  chat: ["Chat", "What a language model is told of the index.", none],
  pagination: ["Number of hits", "How many hits people can page through.", none],
  searchCutoffMs: ["Time limit", "A search stops after this time and answers with the hits found so far.", none],
  suggestions: ["Suggestions", "An index of popular queries, for completions and “did you mean”. Null turns it off.", none],
  timeToLive: ["Expiry", "Documents disappear at the time in this field, plus some seconds.", columns + ". Expired documents disappear at once"],
  foreignKeys: ["Foreign keys", "Fields that name documents of other indexes.", none],
};

/** groups are the tabs, with their settings. The last one also has the settings that this page does not know. */
const groups = [
  ["search", "Searching", ["searchableAttributes", "displayedAttributes", "distinctAttribute"]], ["ranking", "Ranking", ["rankingRules", "proximityPrecision", "scoreFunctions"]],
  ["facets", "Filters and sorting", ["filterableAttributes", "sortableAttributes", "faceting", "facetSearch"]], ["words", "Words", ["synonyms", "stopWords", "dictionary", "separatorTokens", "nonSeparatorTokens", "localizedAttributes", "prefixSearch"]],
  ["typos", "Typos", ["typoTolerance"]], ["meaning", "Meaning", ["embedders", "chat"]], ["limits", "Limits", ["pagination", "searchCutoffMs", "timeToLive", "suggestions", "foreignKeys"]],
];

/** defaults are the values of a new index. */
export const defaults = {
  displayedAttributes: ["*"], searchableAttributes: ["*"], filterableAttributes: [], sortableAttributes: [], rankingRules: ["words", "typo", "proximity", "attributeRank", "sort", "wordPosition", "exactness"],
  stopWords: [], nonSeparatorTokens: [], separatorTokens: [], dictionary: [], synonyms: {}, distinctAttribute: null, proximityPrecision: "byWord",
  typoTolerance: {enabled: true, minWordSizeForTypos: {oneTypo: 5, twoTypos: 9}, disableOnWords: [], disableOnAttributes: [], disableOnNumbers: false},
  faceting: {maxValuesPerFacet: 100, sortFacetValuesBy: {"*": "alpha"}}, pagination: {maxTotalHits: 1000}, embedders: {}, searchCutoffMs: null, localizedAttributes: null,
  facetSearch: true, prefixSearch: "indexingTime", timeToLive: null, scoreFunctions: null, suggestions: null,
};

const tried = ["searchableAttributes", "rankingRules", "stopWords", "nonSeparatorTokens", "separatorTokens", "dictionary", "synonyms", "distinctAttribute", "proximityPrecision", "typoTolerance", "localizedAttributes", "prefixSearch"]; // Compare takes these

const drafts = new Map(); // what was changed and is not saved, by the uid of the index: it is there when people come back

const kebab = name => name.replace(/[A-Z]/g, letter => "-" + letter.toLowerCase());
const titleFor = name => about[name]?.[0] ?? name;
const plain = value => value && typeof value === "object" && !Array.isArray(value);

/** changes are what a task is told: some settings are merged, so a member that is gone is null, and a key that was shown masked is left out. */
function changes(name, now, wanted) {
  if (!plain(wanted) || !plain(now) || name === "synonyms") return wanted;
  const told = Object.fromEntries(Object.keys(now).map(member => [member, null]));
  for (const [member, value] of Object.entries(wanted)) {
    if (name !== "embedders") {
      told[member] = value;
      continue;
    }
    const {apiKey, ...rest} = value ?? {};
    told[member] = value && (apiKey === now[member]?.apiKey ? rest : value);
  }
  return told;
}

/** merged is a setting after a change that a task made. */
function merged(name, before, change) {
  if (change === null) return defaults[name] ?? null;
  if (!plain(change) || !plain(before) || name === "synonyms") return change;
  const after = {...before};
  for (const [member, value] of Object.entries(change)) {
    if (value === null && name === "embedders") delete after[member];
    else after[member] = value === null ? defaults[name]?.[member] ?? null : plain(value) && plain(before[member]) ? {...before[member], ...value} : value;
  }
  return after;
}

export async function settingsView({page, state, remember, signal, reopen}) {
  const listed = await indexes(signal), turn = turns(signal);
  const s = {index: state.get("index") ?? listed?.[0]?.uid ?? "", group: groups.find(([id]) => id === state.get("group"))?.[0] ?? "search", json: state.get("view") === "json"};
  let now = {}, fields = [], draft = new Map(), uid = "";
  page.append(h("h1", null, "Settings"));
  if (listed?.length === 0) return page.append(h("p", {class: "empty"}, "There is no index yet. Its first document creates it: ", h("a", {href: "#/documents"}, "upload a file"), "."));
  const nav = h("div"), list = h("div"), bar = h("div", {class: "savebar", hidden: true, role: "region", "aria-label": "Unsaved changes"});
  page.append(h("div", {class: "bar"}, chooser(listed, s.index, index => {
    s.index = index;
    return draw();
  }), h("button", {type: "button", onclick: history}, "History"), h("button", {type: "button", class: "danger", onclick: async () => {
    if (!s.index || prompt(`Deleting ${s.index} deletes its documents and settings. Type its name to delete it.`) !== s.index) return;
    say("Waiting for the task…");
    const done = await ended(await ask(indexPath(s.index), {method: "DELETE"}));
    if (done.error) throw new Error(done.error.message);
    drafts.delete(s.index);
    remember({});
    await reopen();
  }}, "Delete index")), nav, list, bar);

  const keep = () => remember({index: s.index, group: s.group === "search" ? "" : s.group, view: s.json ? "json" : ""});

  async function draw() {
    const own = turn(), index = s.index;
    keep();
    for (const node of [nav, list]) node.replaceChildren();
    bar.hidden = true;
    if (!index) return;
    const optional = async promise => {
      try {
        return await promise;
      } catch (error) {
        if (error.status !== 403) throw error;
      }
    };
    const [settings, sample] = await Promise.all([ask(indexPath(index, "/settings"), {signal: own}), optional(ask(indexPath(index, "/documents/fetch"), {body: {limit: 30}, signal: own}))]);
    if (own.aborted) return;
    uid = index;
    now = {timeToLive: null, scoreFunctions: null, suggestions: null, ...settings};
    fields = fieldsOf(listed?.find(other => other.uid === index)?.fields ?? {}, sample?.results ?? []);
    draft = drafts.get(index) ?? new Map();
    drafts.set(index, draft);
    say("");
    drawList();
  }

  /** shown are the names of the settings of a group. */
  const shown = () => {
    const known = new Set(groups.flatMap(([, , names]) => names)), rest = Object.keys(now).filter(name => !known.has(name));
    const of = names => names.filter(name => Object.hasOwn(now, name));
    return s.json ? [...of([...known]), ...rest] : [...of(groups.find(([id]) => id === s.group)[2]), ...s.group === groups.at(-1)[0] ? rest : []];
  };

  function drawList() {
    keep();
    nav.replaceChildren(tabs("Groups of settings", [...groups.map(([id, title, names]) => [id, title + (names.some(name => draft.has(name)) ? " •" : "")]), ["json", "JSON"]], s.json ? "json" : s.group, id => {
      s.json = id === "json";
      if (!s.json) s.group = id;
      drawList();
      nav.querySelector("[aria-current]").focus();
    }));
    list.replaceChildren(...shown().map(one));
    drawBar();
  }

  /** change notes what a setting is to be; what is as it was is no change. */
  function change(name, value, section) {
    if (JSON.stringify(value) === JSON.stringify(now[name])) draft.delete(name);
    else draft.set(name, value);
    section.classList.toggle("changed", draft.has(name));
    section.querySelector(".undo").hidden = !draft.has(name);
    drawBar();
  }

  function drawBar() {
    bar.hidden = draft.size === 0;
    bar.replaceChildren(h("span", null, `${count(draft.size)} unsaved ${draft.size === 1 ? "change" : "changes"}: ${[...draft.keys()].map(titleFor).join(", ")}`), h("button", {type: "button", onclick: () => {
      draft.clear();
      drawList();
    }}, "Discard"), h("button", {type: "button", class: "main", onclick: review}, "Review and save"));
  }

  /** one is a setting with its control. */
  function one(name) {
    const [title, does, cost] = about[name] ?? [name, "", "svc may index some documents again"], value = draft.has(name) ? draft.get(name) : now[name];
    const set = next => change(name, next, section);
    const again = () => section.replaceWith(one(name));
    const section = h("section", {class: draft.has(name) ? "setting changed" : "setting", id: kebab(name)},
      h("div", {class: "head"}, h("h2", null, title, " ", h("code", {class: "soft"}, name)), h("button", {type: "button", class: "link undo", hidden: !draft.has(name), onclick: () => {
        draft.delete(name);
        again();
        drawBar();
      }}, "Undo change"), h("button", {type: "button", class: "link", onclick: () => {
        change(name, defaults[name] ?? null, section);
        again();
      }}, "Use default")),
      h("p", {class: "about"}, does, " ", h("span", {class: "soft"}, `After a change, ${cost}.`)), (s.json ? null : control(name, value, set)) ?? text(name, value, set));
    return section;
  }

  /** text edits a setting as JSON. */
  function text(name, value, set) {
    const written = json(value), wrong = h("p", {class: "bad", role: "alert"});
    const area = h("textarea", {value: written, rows: Math.min(14, written.split("\n").length), spellcheck: false, "aria-label": name, oninput: () => {
      let next;
      try {
        next = JSON.parse(area.value);
      } catch (error) {
        wrong.textContent = error.message;
        return;
      }
      wrong.textContent = "";
      set(next);
    }});
    return [area, wrong];
  }

  /** control is the form of a setting; none for those that are edited as JSON. */
  function control(name, value, set) {
    const label = titleFor(name), number = (title, now, f, placeholder) => field(title, h("input", {type: "number", min: 0, value: now ?? "", placeholder, oninput: event => f(event.target.value === "" ? null : Number(event.target.value))}));
    const fieldChoice = (title, now, f) => field(title, select([["", "none"], ...[...new Set([...now ? [now] : [], ...fields.map(f => f.name)])].map(n => [n, brief(n, 60)])], now ?? "", v => f(v || null)));
    switch (name) {
      case "searchableAttributes": return someFields(value, fields, {label, changed: set, order: true});
      case "displayedAttributes": return someFields(value, fields, {label, changed: set});
      case "filterableAttributes": case "sortableAttributes": return picker(value, fields, {label, changed: set});
      case "rankingRules": return rankingRules(value, fields, {changed: set});
      case "synonyms": return synonyms(value, {name: uid, changed: set});
      case "stopWords": case "dictionary": case "separatorTokens": case "nonSeparatorTokens": return chips(value, {label, placeholder: {stopWords: "the", dictionary: "J. R. R.", separatorTokens: "&sep", nonSeparatorTokens: "#"}[name], changed: set});
      case "typoTolerance": return typos(value, fields, {changed: set, tryIt: tryTypos});
      case "distinctAttribute": return fieldChoice("Field", value, set);
      case "proximityPrecision": return field("Distance", select([["byWord", "count the words between"], ["byAttribute", "only ask if words share a field"]], value, set));
      case "prefixSearch": return field("Beginnings of words", select([["indexingTime", "are found"], ["disabled", "are not found"]], value, set));
      case "facetSearch": return h("label", {class: "check"}, h("input", {type: "checkbox", checked: value, onchange: event => set(event.target.checked)}), " Allow searches in facets");
      case "pagination": return number("Hits at most", value.maxTotalHits, v => set({...value, maxTotalHits: v ?? 1000}));
      case "searchCutoffMs": return number("Milliseconds", value, set, "1500");
      case "faceting": {
        let next = value;
        const put = part => set(next = {...next, ...part});
        return h("div", {class: "bar"}, number("Values of a facet at most", value.maxValuesPerFacet, v => put({maxValuesPerFacet: v ?? 100})),
          field("Order", select([["alpha", "by name"], ["count", "most frequent first"]], value.sortFacetValuesBy["*"] ?? "alpha", v => put({sortFacetValuesBy: {...next.sortFacetValuesBy, "*": v}}))));
      }
      case "timeToLive": {
        let next = value ?? {};
        const put = part => {
          next = {...next, ...part};
          set(next.attribute ? {attribute: next.attribute, seconds: next.seconds ?? 0} : null);
        };
        return h("div", {class: "bar"}, fieldChoice("Field with the time", next.attribute, attribute => put({attribute})), number("Plus seconds", next.seconds, seconds => put({seconds}), "0"));
      }
      case "embedders": return h("div", null, text(name, value, set), Object.keys(now.embedders ?? {}).length > 0 && h("p", {class: "bar"}, Object.keys(now.embedders).map(embedder => h("button", {type: "button", onclick: () => test(embedder)}, `Test ${brief(embedder, 40)}`))));
    }
    return null;
  }

  /** test has an embedder answer for a query. */
  async function test(embedder) {
    say(`Waiting for ${embedder}…`);
    const start = performance.now(), found = await ask(indexPath(uid, "/search"), {body: {q: "test", limit: 1, hybrid: {embedder, semanticRatio: 1}}, signal});
    say(`${embedder} answers: a search by meaning took ${Math.round(performance.now() - start)} ms${found.hits.length ? ` and found ${titleOf(found.hits[0])}` : ". No document has a vector yet"}.`);
  }

  const typoTurn = turns(signal);

  /** tryTypos searches with the values that are saved and with others. */
  async function tryTypos(q, typoTolerance) {
    const own = typoTurn();
    const {current, other} = await ask(indexPath(uid, "/compare"), {signal: own, body: {search: {q, page: 1, hitsPerPage: 5}, other: {settings: {typoTolerance}}}});
    return own.aborted ? null : [current, other].map(answer => ({total: answer.totalHits, titles: answer.hits.map(hit => titleOf(hit))}));
  }

  /** pace is how many documents a second svc indexed of late; null where nobody knows. */
  async function pace() {
    try {
      const {results} = await ask(`/tasks?types=documentAdditionOrUpdate&statuses=succeeded&limit=100&indexUids=${encodeURIComponent(uid)}`, {signal});
      const batches = new Map(results.map(task => [task.batchUid, new Date(task.finishedAt) - new Date(task.startedAt)]));
      const documents = results.reduce((n, task) => n + (task.details?.indexedDocuments ?? 0), 0), ms = [...batches.values()].reduce((a, b) => a + b, 0);
      return documents && ms ? documents / ms * 1000 : null;
    } catch (error) {
      if (error.status !== 403) throw error;
      return null;
    }
  }

  /** review shows what saving changes and what it costs, and saves. */
  async function review() {
    const names = [...draft.keys()], documents = listed?.find(other => other.uid === uid)?.documents, perSecond = await pace();
    const reads = names.filter(name => ![none, undefined].includes(about[name]?.[2])), seconds = perSecond && documents !== undefined ? Math.ceil(documents / perSecond) : null;
    const time = seconds === null ? "" : seconds < 90 ? ` At the pace of recent uploads that takes ${seconds} s or less.` : ` At the pace of recent uploads that takes ${Math.ceil(seconds / 60)} minutes or less.`;
    const tryable = Object.fromEntries(names.filter(name => tried.includes(name)).map(name => [name, draft.get(name)]));
    const dialog = show(`Changes of ${uid}`, names.map(name => h("section", null, h("h3", null, titleFor(name), " ", h("code", {class: "soft"}, name)), diff(json(now[name]), json(draft.get(name))), h("p", {class: "soft"}, `After this change, ${about[name]?.[2] ?? "svc may index some documents again"}.`))),
      h("p", null, reads.length && documents !== undefined ? `svc goes through ${count(documents)} ${documents === 1 ? "document" : "documents"} in the background.${time} Searches go on with the old settings until then.` : "The change takes effect at once."),
      h("p", {class: "bar"}, h("button", {type: "button", class: "main", onclick: async event => {
        event.target.disabled = true;
        try {
          await put(names);
        } finally {
          event.target.disabled = false;
        }
        dialog.close();
        drawList();
        say(`Saved: ${names.map(titleFor).join(", ")}.`);
      }}, "Save"), Object.keys(tryable).length > 0 && h("a", {class: "button", href: "#/search?" + new URLSearchParams({index: uid, compare: JSON.stringify({settings: tryable})})}, "Try in Compare")));
  }

  /** put saves the settings of these names, all in one task. */
  async function put(names) {
    const index = uid;
    say("Waiting for the task…");
    const done = await ended(await ask(indexPath(index, "/settings"), {method: "PATCH", body: Object.fromEntries(names.map(name => [name, changes(name, now[name], draft.get(name))]))}));
    if (done.error) throw new Error(done.error.message);
    now = {timeToLive: null, scoreFunctions: null, suggestions: null, ...await ask(indexPath(index, "/settings"))};
    for (const name of names) draft.delete(name);
  }

  /** history lists the changes of the settings, as their tasks tell of them, and takes them back. */
  async function history() {
    const of = encodeURIComponent(s.index), tasks = `/tasks?statuses=succeeded&indexUids=${of}&limit=1000&types=`;
    const [{results}, deleted] = await Promise.all([ask(tasks + "settingsUpdate", {signal}), ask(tasks + "indexDeletion", {signal})]);
    const since = deleted.results[0]?.uid ?? -1, made = results.filter(task => task.uid > since);
    // What each setting was before each task, from the oldest to the newest.
    const at = {...defaults}, before = new Map();
    for (const task of made.toReversed()) {
      before.set(task.uid, {...at});
      for (const [name, value] of Object.entries(task.details ?? {})) at[name] = merged(name, at[name] ?? null, value);
    }
    const dialog = show(`Changes of the settings of ${s.index}`, made.length === 0 && h("p", {class: "empty"}, "No change is known. svc knows the changes whose tasks are still listed."), made.map(task => h("section", {class: "change"}, h("div", {class: "head"},
      h("h3", null, when(task.finishedAt), " ", h("span", {class: "soft"}, `task ${task.uid}`)), h("button", {type: "button", onclick: () => {
        const back = Object.keys(task.details ?? {}).filter(name => Object.hasOwn(now, name) && !["embedders", "chat"].includes(name));
        for (const name of back) {
          const old = before.get(task.uid)[name] ?? null;
          if (JSON.stringify(old) === JSON.stringify(now[name])) draft.delete(name);
          else draft.set(name, old);
        }
        dialog.close();
        drawList();
        if (draft.size) return review();
        say("The settings are already as they were before that change.");
      }}, "Undo")), Object.entries(task.details ?? {}).map(([name, value]) => h("details", null, h("summary", null, titleFor(name)), diff(json(before.get(task.uid)[name] ?? null), json(merged(name, before.get(task.uid)[name] ?? null, value))))))));
  }

  await draw();
}
