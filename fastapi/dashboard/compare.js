// Two ways to search, side by side on the same query: as it is, and with other settings or parameters. Nothing of the index is changed.
import {ask, ended, indexPath, turns} from "./api.js";
import {apart, brief, copy, count, field, h, later, save, say, select, show} from "./dom.js";
import {titleOf} from "./hit.js";

const mostQueries = 100, setDepth = 10; // of a set of queries, and the hits of each that are compared

/** lines are the entries of a text area, one a line. A JSON array is a group of searched fields. */
const lines = text => text.split("\n").map(line => line.trim()).filter(Boolean).map(line => {
  try {
    return line.startsWith("[") ? JSON.parse(line) : line;
  } catch {
    return line;
  }
});

/** written is a list as lines reads it. */
const written = list => list.map(entry => Array.isArray(entry) ? JSON.stringify(entry) : entry).join("\n");

/**
 * compare opens the comparison for a search body on an index of which known tells the key, the embedders and the fields to sort by.
 * other is what is tried at first; changed is told of each change, and null when the comparison is closed; applied, when its settings
 * have become those of the index. signal ends with the page around it.
 */
export async function compare({index, body, known, other, changed, applied, signal}) {
  const base = {...body, facets: [], showRankingScore: true, showRankingScoreDetails: true};
  const tried = {search: other.search ?? {}, settings: other.settings ?? {}};
  const outs = [h("div"), h("div")], notes = h("div");
  const closed = new AbortController(), turn = turns(closed.signal);
  let settings = null; // where the key may not read them

  /** answers asks for both sides; who may not read settings compares two searches alone. */
  async function answers(base, signal) {
    if (settings) return ask(indexPath(index, "/compare"), {body: {search: base, other: tried}, signal});
    const [current, there] = await Promise.all([base, {...base, ...tried.search}].map(b => ask(indexPath(index, "/search"), {body: b, signal})));
    const name = hit => known.key ? String(hit[known.key]) : JSON.stringify(Object.values(hit)[0]);
    const places = new Map(there.hits.map((hit, i) => [name(hit), i])), before = new Set(current.hits.map(name));
    return {current, other: there, reindexing: [], moved: [...current.hits.map((hit, i) => ({current: i, other: places.get(name(hit)) ?? null})),
      ...there.hits.map((hit, i) => ({current: null, other: i, name: name(hit)})).filter(m => !before.has(m.name))]};
  }

  const apply = h("button", {type: "button", class: "main", hidden: true, onclick: async () => {
    const names = Object.keys(tried.settings).join(", ");
    if (!confirm(`Change ${names} of the index ${index}? The history of its settings can take it back.`)) return;
    say("Waiting for the task…");
    const done = await ended(await ask(indexPath(index, "/settings"), {method: "PATCH", body: tried.settings}));
    if (done.error) throw new Error(done.error.message);
    dialog.close();
    await applied();
    say(`Saved: ${names}.`);
  }}, "Apply these settings");

  const run = later(async () => {
    if (closed.signal.aborted) return;
    changed(tried);
    apply.hidden = Object.keys(tried.settings).length === 0;
    const own = turn();
    let found;
    try {
      found = await answers(base, own);
    } catch (error) {
      if (!own.aborted) for (const node of [notes, ...outs]) node.replaceChildren();
      throw error;
    }
    if (own.aborted) return;
    say("");
    notes.replaceChildren(...found.reindexing.map(r => h("p", {class: "bad"}, h("strong", null, r.setting), r.tried ? " is compared, but changing it makes again: " : " is not compared. Changing it makes again: ", r.what)));
    const moves = [new Map(), new Map()];
    for (const m of found.moved) {
      if (m.current !== null) moves[0].set(m.current, m.other);
      if (m.other !== null) moves[1].set(m.other, m.current);
    }
    for (const [i, answer] of [found.current, found.other].entries()) {
      const total = found.totals?.[i === 0 ? "current" : "other"];
      outs[i].replaceChildren(h("p", {class: "soft"}, total !== undefined && total !== null ? `${count(total)} found` : `${answer.totalHits === known.most ? "at least " : ""}${count(answer.totalHits)} found`), h("ol", {class: "compared"}, answer.hits.map((hit, at) => {
        const there = moves[i].get(at);
        const moved = there === null ? "only here" : there === at ? "" : (i === 0) === (there > at) ? `▼ ${Math.abs(there - at)}` : `▲ ${Math.abs(there - at)}`;
        const rules = Object.entries(hit._rankingScoreDetails ?? {}).filter(([, d]) => typeof d?.score === "number").sort(([, a], [, b]) => a.order - b.order).map(([rule, d]) => `${brief(rule)} ${d.score.toFixed(2)}`);
        return h("li", {class: there === null ? "new" : there === at ? "" : "moved"}, h("strong", {dir: "auto"}, titleOf(hit, known.key)), " ", h("span", {class: "soft"}, moved), h("br"), h("span", {class: "soft facts"}, apart(rules, " · ")));
      })));
    }
  }, 60);

  const set = (part, key, value) => {
    if (value === undefined || value === "") delete tried[part][key];
    else tried[part][key] = value;
    run();
  };

  /** list is a control of a setting that is a list, whose order counts. */
  const list = (label, key, now) => {
    const area = h("textarea", {rows: Math.min(Math.max(now.length, 3), 8), value: written(tried.settings[key] ?? now), spellcheck: false, oninput: later(() => {
      const value = lines(area.value);
      set("settings", key, JSON.stringify(value) === JSON.stringify(now) ? undefined : value);
    }, 300)});
    return field(label, area, true);
  };

  function settingControls() {
    const typos = settings.typoTolerance, asked = tried.settings.typoTolerance;
    const enabled = h("input", {type: "checkbox", checked: asked?.enabled ?? typos.enabled});
    const size = which => h("input", {type: "number", min: 0, max: 255, value: asked?.minWordSizeForTypos?.[which] ?? typos.minWordSizeForTypos[which]});
    const one = size("oneTypo"), two = size("twoTypos");
    const typo = () => set("settings", "typoTolerance", {enabled: enabled.checked, minWordSizeForTypos: {oneTypo: Number(one.value), twoTypos: Number(two.value)}});
    for (const control of [enabled, one, two]) control.onchange = typo;
    const choice = (label, key, values) => field(label, select([["", "as it is"], ...values], tried.settings[key] ?? "", v => set("settings", key, v)));
    return h("div", {class: "bar"}, list("Ranking rules, one a line, in their order", "rankingRules", settings.rankingRules), list("Searched fields, the most important first", "searchableAttributes", settings.searchableAttributes),
      h("label", {class: "check"}, enabled, " Allow typos"), field("One typo from so many letters", one), field("Two from", two),
      choice("Beginnings of words", "prefixSearch", ["indexingTime", "disabled"]), choice("Proximity of words", "proximityPrecision", ["byWord", "byAttribute"]));
  }

  function searchControls() {
    const embedders = Object.keys(known.embedders), asked = tried.search;
    const ratio = h("input", {type: "range", min: 0, max: 1, step: 0.05, value: asked.hybrid?.semanticRatio ?? 0.5});
    const embedder = select([["", "as the search"], ...embedders], asked.hybrid?.embedder ?? "", v => set("search", "hybrid", v && {embedder: v, semanticRatio: Number(ratio.value)}));
    ratio.oninput = () => embedder.value && set("search", "hybrid", {embedder: embedder.value, semanticRatio: Number(ratio.value)});
    return h("div", {class: "bar"},
      field("Words that must match", select([["", "as the search"], ["last", "last: last words may be missing"], ["all", "all"], ["frequency", "frequency: frequent words may be missing"]], asked.matchingStrategy ?? "", v => set("search", "matchingStrategy", v))),
      field("Only in these fields", h("input", {placeholder: "title, text", value: (asked.attributesToSearchOn ?? []).join(", "), spellcheck: false, onchange: event => set("search", "attributesToSearchOn", event.target.value ? event.target.value.split(",").map(v => v.trim()).filter(Boolean) : undefined)})),
      field("Score at least", h("input", {type: "number", min: 0, max: 1, step: 0.05, value: asked.rankingScoreThreshold ?? "", onchange: event => set("search", "rankingScoreThreshold", event.target.value === "" ? undefined : Number(event.target.value))})),
      known.sortable.length > 0 && field("Sort", select([["", "as the search"], ...known.sortable.flatMap(a => [`${a}:asc`, `${a}:desc`])], asked.sort?.[0] ?? "", v => set("search", "sort", v ? [v] : undefined))),
      embedders.length > 0 && [field("Meaning", embedder), field("Words … meaning", ratio)]);
  }

  /** querySet runs many queries both ways, and tells of each how much changes. The queries are kept in a file: the page stores nothing. */
  function querySet() {
    const area = h("textarea", {rows: 5, spellcheck: false, dir: "auto", "aria-label": "Queries, one a line"}), out = h("div"), file = h("input", {type: "file", accept: ".txt,text/plain", hidden: true, onchange: async () => {
      if (file.files[0]) area.value = (await file.files[0].text()).slice(0, 100000);
      file.value = "";
    }});
    const queries = () => [...new Set(area.value.split("\n").map(q => q.trim()).filter(Boolean))].slice(0, mostQueries), setTurn = turns(closed.signal);
    async function runAll() {
      const own = setTurn(), all = queries(), rows = h("tbody"), told = h("p", {class: "soft", role: "status"});
      if (all.length === 0) throw new Error("Enter a query a line, or open a file with queries.");
      out.replaceChildren(told, h("div", {class: "scroll", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, h("th", {scope: "col"}, "Query"), ["Found now", "Found the other way", `Changed of the first ${setDepth}`].map(t => h("th", {scope: "col", class: "number"}, t)))), rows)));
      let changedOnes = 0;
      for (const [i, q] of all.entries()) {
        told.textContent = `${i} of ${all.length} queries…`;
        const found = await answers({...base, q, page: 1, hitsPerPage: setDepth}, own);
        if (own.aborted) return;
        const different = found.moved.filter(m => m.current !== m.other && m.current !== null).length + Math.max(0, found.other.hits.length - found.current.hits.length);
        if (different) changedOnes++;
        rows.append(h("tr", {class: different ? "differs" : ""}, h("td", {class: "name", dir: "auto"}, h("button", {type: "button", class: "link", onclick: () => {
          base.q = typed.value = q;
          run();
          typed.scrollIntoView({block: "center"});
        }}, brief(q))), [found.totals?.current ?? found.current.totalHits, found.totals?.other ?? found.other.totalHits, different].map(n => h("td", {class: "number"}, count(n)))));
      }
      told.textContent = `The hits change for ${changedOnes} of ${all.length} ${all.length === 1 ? "query" : "queries"}.`;
    }
    return h("details", {class: "more"}, h("summary", null, "Query set"), h("p", {class: "soft"}, `Up to ${mostQueries} queries, one a line. Each is searched both ways. The page stores nothing: save the queries as a file, and open it the next time.`), area, file,
      h("p", {class: "bar"}, h("button", {type: "button", class: "main", onclick: runAll}, "Compare all"), h("button", {type: "button", onclick: () => file.click()}, "Open a file"), h("button", {type: "button", onclick: () => save("queries.txt", "text/plain", [queries().join("\n") + "\n"])}, "Save as a file"),
        h("button", {type: "button", onclick: async () => {
          try {
            area.value = [...queries(), ...(await ask(`/analytics/top-queries?${new URLSearchParams({indexUid: index, limit: 50})}`, {signal: closed.signal})).results.map(r => r.query)].filter(Boolean).join("\n");
          } catch (error) {
            if (error.code !== "feature_not_enabled") throw error;
            say("This server does not count searches. Start it with --analytics-retention 30d.", true);
          }
        }}, "Add the top queries")), out);
  }

  try {
    settings = await ask(indexPath(index, "/settings"), {signal});
  } catch (error) {
    if (error.status !== 403) throw error;
    tried.settings = {};
  }
  const typed = h("input", {type: "search", value: base.q, "aria-label": "Search", oninput: () => { base.q = typed.value; run(); }});
  const dialog = show("Compare settings", h("p", {class: "soft"}, "The index does not change. A setting that requires reindexing is named below, with what would be rebuilt and whether it is compared."),
    h("div", {class: "bar actions"}, typed, apply, h("button", {type: "button", onclick: () => copy(location.href)}, "Copy link to this comparison")), searchControls(), settings && settingControls(), querySet(), notes,
    h("div", {class: "sides"}, h("section", {"aria-label": "Current settings"}, h("h3", null, "Current settings"), outs[0]), h("section", {"aria-label": "Other settings"}, h("h3", null, "Other settings"), outs[1])));
  dialog.classList.add("wide");
  dialog.addEventListener("close", () => {
    closed.abort();
    changed(null);
  });
  run();
}
