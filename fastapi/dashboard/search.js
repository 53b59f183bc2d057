// Search as one types, with everything that narrows and orders it, and why hits stand where they do.
import {ask, curl, ended, hasToken, indexPath, Silence, turns, whenBack} from "./api.js";
import {chooser, indexes} from "./indexes.js";
import {bars, roundStep} from "./chart.js";
import {compare} from "./compare.js";
import {panel, read, request} from "./figures.js";
import {again, attempt, brief, copy, count, field, h, json, later, menu, redraw, say, select, show, svg} from "./dom.js";
import {after, before, cell, columnsOf, hitBox, titleOf, why} from "./hit.js";
import {local, promotions, whichRules} from "./rules.js";
import {sample, sampleIndex} from "./sample.js";
import {uploader} from "./upload.js";

const pageSize = 20;
// What to search for in the sample: the query, and what it shows.
const tries = [["love citty", "finds “city”"], ['"a tramp"', "is a phrase"], ["city -camera", "leaves out a word"]];
let sampled = false; // the sample was loaded in this tab
const lowestHit = 120; // pixels
const spreadPause = 250; // milliseconds without another search, until the numbers of facets and similar queries are asked for
const facetValues = 10; // of a facet that are shown at first

/** quoted writes a name or a value as filters take it. */
const quoted = text => `"${String(text).replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

export async function searchView({page, state, remember, signal, reopen}) {
  const all = await indexes(signal);
  if (all && all.length === 0) return firstStart(page, signal, reopen);
  const s = {
    index: state.get("index") ?? all?.[0]?.uid ?? "", q: state.get("q") ?? "", sort: state.get("sort") ?? "", filter: state.get("filter") ?? "",
    page: Math.max(1, Math.floor(Number(state.get("page"))) || 1), fields: namesOf(state.get("fields")), embedder: state.get("embedder") ?? "",
    ratio: Math.min(1, Math.max(0, Number(state.get("ratio") || 0.5) || 0)), facets: facetsOf(state.get("facets")), pictures: true,
    group: state.get("group") ?? "", // the field whose values make groups of hits
    view: state.get("view") === "table" ? "table" : "",
    figures: read(state.get("figures")),
    at: Number.isNaN(Date.parse(state.get("at") ?? "")) ? "" : new Date(state.get("at")).toISOString(), // the time of rules, where it is not the present
    compare: state.get("compare") ?? "", // what is tried in a comparison that is open
  };
  let asked = null; // the signal of the search whose answer is shown
  let known = {embedders: {}, sortable: [], orders: {}}; // of the index; most: hits that it counts, values: of a facet, orders: of those
  let answer = null; // that is shown
  const turn = turns(signal), figureTurn = turns(signal), unfolded = new Map(); // facets that were opened or closed by hand
  const spreads = new Map(); // the bars of facets that were drawn last: they stand until the next ones come
  const asides = new Map(); // what is asked for beside the hits, once for each search, however often these are drawn: its signal and the promise

  const box = h("input", {type: "search", value: s.q, placeholder: "Search", "aria-label": "Search", autocomplete: "off", spellcheck: false, dir: "auto", oninput: () => {
    s.q = box.value;
    s.page = 1;
    return search();
  }});
  const filter = h("input", {value: s.filter, placeholder: "year > 1930 AND tags = comedy", spellcheck: false, oninput: later(() => {
    s.filter = filter.value.trim();
    s.page = 1;
    return search();
  }, 300)});
  const hint = h("p", {class: "soft", role: "status"}), chips = h("p", {class: "chips"});
  const figures = panel(s.figures, {
    changed: () => {
      keep();
      return drawFigures();
    },
    choose: (name, value) => { // a value, or a bucket from a number to another
      const choice = s.facets.get(name) ?? {values: [], min: "", max: "", below: false};
      if (typeof value === "string") choice.values = [...new Set([...choice.values, value])];
      else Object.assign(choice, {min: String(value.from), max: String(value.to), below: true});
      s.facets.set(name, choice);
      s.page = 1;
      return search();
    },
  });
  const moment = h("input", {type: "datetime-local", value: local(s.at), onchange: () => {
    s.at = moment.value && new Date(moment.value).toISOString();
    s.page = 1;
    return search();
  }});
  const sorts = h("span"), groups = h("span"), hybrid = h("span"), fields = h("details", {class: "fields"}), facets = h("aside", {"aria-label": "Facets"}), hits = h("section", {"aria-label": "Hits"}), summary = h("p", {class: "summary", role: "status"}), pages = h("nav", {"aria-label": "Pages", class: "pages"}), map = h("div");
  const counted = h("button", {type: "button", class: "link", hidden: true, onclick: () => countAll()}, "Count all");
  page.append(
    h("h1", {class: "hidden"}, "Search"),
    h("div", {class: "bar"}, chooser(all, s.index, uid => {
      Object.assign(s, {index: uid, page: 1, facets: new Map(), sort: "", filter: "", group: "", fields: [], embedder: "", at: ""});
      s.figures.length = 0;
      moment.value = filter.value = "";
      unfolded.clear();
      spreads.clear();
      asides.clear();
      return learn();
    }), box),
    h("div", {class: "bar actions"}, summary, counted,
      h("button", {type: "button", class: "right", onclick: () => copy(curl(...bare()))}, "Copy as curl"),
      h("button", {type: "button", onclick: async () => {
        const [path, body] = bare();
        show("Answer", h("pre", {tabIndex: 0}, json(await ask(path, {body, signal})).slice(0, 500000)));
      }}, "Raw JSON"),
      h("button", {type: "button", onclick: () => sides({})}, "Compare"),
      select([["", "Cards"], ["table", "Table"]], s.view, v => { s.view = v; return search(); }, "Show hits as"),
      h("label", {class: "check"}, h("input", {type: "checkbox", checked: true, onchange: event => { s.pictures = event.target.checked; return search(); }}), " Pictures"),
      h("details", {class: "more", open: s.filter || s.sort || s.group || s.embedder || s.at}, h("summary", null, "Filter, sort and group"),
        h("div", {class: "bar"}, field("Filter", filter, true), sorts, groups, hybrid, field("Preview rules and dates at", moment)),
        fields), figures.box), hint,
    sampled && s.index === sampleIndex ? h("p", {class: "try"}, "Try", tries.map(([q, shows]) => [h("button", {type: "button", onclick: () => {
      box.value = s.q = q;
      s.page = 1;
      box.focus();
      return search();
    }}, q), shows]), ". Open “Why here” for the rank of a hit, and “Compare” to try other settings.") : "",
    h("div", {class: "columns"}, h("details", {class: "sidebar", open: !matchMedia("(max-width: 48rem)").matches}, h("summary", null, "Facets"), facets), h("div", null, chips, map, hits, pages)));

  (s.index ? box : page.querySelector("input")).focus(); // what is typed before the first answer is not lost

  /** filters are what the facets and the field say, as the API takes it; one facet may be left out. */
  function filters(without) {
    const list = s.filter ? [s.filter] : [];
    for (const [name, choice] of s.facets) {
      if (name === without) continue;
      if (choice.values.length) list.push(choice.values.map(v => `${quoted(name)} = ${quoted(v)}`));
      if (choice.min !== "") list.push(`${quoted(name)} >= ${choice.min}`);
      if (choice.max !== "") list.push(`${quoted(name)} ${choice.below ? "<" : "<="} ${choice.max}`);
    }
    return list;
  }

  /** sides opens a comparison, which the address remembers while it is open. */
  const sides = other => compare({index: s.index, body: {...body(true), groupBy: undefined}, known, other, signal, applied: search, changed: tried => {
    s.compare = tried ? JSON.stringify(tried) : "";
    keep();
  }});

  /** beside asks for the values of a facet as if none were chosen: another one may be added to those that are. */
  async function beside(name, signal) {
    const b = {q: s.q, limit: 0, facets: [name], filter: filters(name)};
    if (s.embedder) b.hybrid = {embedder: s.embedder, semanticRatio: s.ratio};
    return [name, await ask(indexPath(s.index, "/search"), {body: b, signal})];
  }

  function body(bare) {
    const b = {q: s.q, page: s.page, hitsPerPage: pageSize, facets: ["*"]};
    const f = filters();
    if (f.length) b.filter = f;
    if (s.sort) b.sort = [s.sort];
    if (s.group) b.groupBy = {attribute: s.group, hitsPerGroup: 3};
    if (s.embedder) b.hybrid = {embedder: s.embedder, semanticRatio: s.ratio};
    if (!bare) Object.assign(b, {
      attributesToHighlight: ["*"], attributesToCrop: ["*"], cropLength: 40, highlightPreTag: before, highlightPostTag: after,
      showRankingScore: true, showRankingScoreDetails: true,
    });
    return b;
  }

  const keep = () => remember({index: s.index, q: s.q, sort: s.sort, filter: s.filter, group: s.group, page: s.page > 1 ? s.page : "", fields: s.fields.length ? JSON.stringify(s.fields) : "", facets: textOf(s.facets), embedder: s.embedder, ratio: s.embedder ? s.ratio : "", view: s.view, figures: s.figures.length ? JSON.stringify(s.figures) : "", at: s.at, compare: s.compare});

  /** at is the comparison of a search body with itself at the time that is chosen: it looks at rules and dates as they are then. It has no groups. */
  const at = search => [indexPath(s.index, "/compare"), {search: {...search, groupBy: undefined}, other: {at: s.at}}];

  /** bare is the request that is shown to people: its path and its body. */
  const bare = () => s.at ? at(body(true)) : [indexPath(s.index, "/search"), body(true)];

  /** hitsOf searches; at another time by a comparison. */
  async function hitsOf(signal) {
    if (!s.at) return ask(indexPath(s.index, "/search"), {body: body(false), signal});
    const [path, compared] = at(body(false));
    return (await ask(path, {body: compared, signal})).other;
  }

  async function search() {
    const own = turn();
    keep();
    if (!s.index) {
      clear();
      hits.append(h("p", {class: "soft"}, "Enter the name of an index above: this key may not list them."));
      return;
    }
    try {
      const [found, ...others] = await Promise.all([hitsOf(own), ...[...s.facets.keys()].map(name => beside(name, own))]);
      if (own.aborted) return; // an answer to what is asked no more
      for (const [name, other] of others) {
        for (const part of ["facetDistribution", "facetStats"]) if (found[part] && other[part] && Object.hasOwn(other[part], name)) Object.defineProperty(found[part], name, {value: other[part][name], enumerable: true});
      }
      answer = found;
      if (answer.groups) answer.hits = answer.groups.flatMap(group => group.hits);
      asked = own;
      hint.textContent = s.at && s.group ? "Hits of another day are not in groups." : "";
      say("");
      drawHits();
      drawPages();
      // What is seen at once comes first, then a frame each has the hits below and the facets, unless nobody waits for them any more.
      const next = draw => requestAnimationFrame(() => setTimeout(() => own.aborted || draw()));
      next(() => {
        drawRest();
        next(drawAround);
      });
    } catch (error) {
      if (own.aborted) return;
      if (error.code === "invalid_search_filter" && answer) { // it is being typed
        hint.textContent = "This filter is not applied: " + brief(error.message, 400);
        return;
      }
      clear();
      if (error instanceof Silence) whenBack(search, own);
      throw error;
    }
  }

  function clear() {
    drawRest = () => {};
    for (const node of [hits, facets, pages, map, summary, chips, hint]) node.replaceChildren();
    counted.hidden = true;
  }

  function drawAround() {
    map.replaceChildren(mapOf(answer.hits) ?? "");
    drawFacets();
    drawGroupChoice();
    figures.offer(facetNames(), answer.facetStats);
    attempt(drawFigures);
  }

  /** drawFigures asks for the figures that are chosen. They count what matches by words. */
  async function drawFigures() {
    if (s.embedder) return figures.draw(null, "Aggregations count what matches by words. Choose “words only” to see them.");
    const own = AbortSignal.any([asked, figureTurn()]), aggregations = request(s.figures, answer.facetStats);
    if (!aggregations) return figures.draw({});
    try {
      const found = await ask(indexPath(s.index, "/search"), {body: {q: s.q, filter: body(true).filter, limit: 0, aggregations}, signal: own});
      if (!own.aborted) figures.draw(found.aggregations);
    } catch (error) {
      if (!own.aborted) figures.draw(null, brief(error.message, 400));
    }
  }

  const facetNames = () => Object.keys(answer.facetDistribution ?? {}).filter(name => !/^_geo(json)?(\.|$)/.test(name)).sort();

  let drawRest = () => {}; // draws the hits below those that drawHits has drawn, once

  /** drawHits draws as many hits as the window can show. */
  function drawHits() {
    const seen = Math.ceil(innerHeight / lowestHit), shown = answer.hits, first = (s.page - 1) * pageSize + 1;
    const boxes = (from, to) => shown.slice(from, to).map((hit, i) => oneHit(hit, first + from + i));
    const inTable = s.view && !answer.groups && shown.length > 0;
    hits.replaceChildren(...inTable ? [tableOf(shown, first)] : boxes(0, seen));
    drawChips();
    if (answer.groups) {
      let at = 0;
      hits.replaceChildren(...answer.groups.flatMap(group => [h("h2", {class: "group-of", dir: "auto"}, group.key === null ? `no ${brief(s.group, 60)}` : brief(String(group.key)), " ", h("span", {class: "soft"}, `${count(group.count)} ${group.count === 1 ? "hit" : "hits"}`)), ...boxes(at, at += group.hits.length)]));
    }
    if (answer.hits.length === 0) {
      const empty = answer.totalHits === 0 && !s.q.trim() && filters().length === 0 && !hasToken();
      const nothing = h("p", {class: "soft"}, empty ? ["This index has no documents yet. ", h("a", {href: "#/documents?" + new URLSearchParams({index: s.index})}, "Add documents")] : "Nothing matches.");
      hits.replaceChildren(nothing);
      if (answer.totalHits === 0 && s.q.trim()) attempt(meant, nothing);
    }
    summary.textContent = `${answer.totalHits === known.most ? "at least " : ""}${count(answer.totalHits)} ${answer.groups ? answer.totalHits === 1 ? "group found" : "groups found" : "found"} in ${answer.processingTimeMs === 0 ? "less than 1" : answer.processingTimeMs} ms${answer.semanticHitCount ? `, ${answer.semanticHitCount} by meaning` : ""}`;
    counted.hidden = answer.totalHits !== known.most || answer.groups;
    drawRest = () => {
      drawRest = () => {};
      if (!answer.groups && !inTable) hits.append(...boxes(seen));
    };
  }

  /**
   * aside asks for something beside the hits that are shown, when nothing else was searched for in a while: while somebody types, nothing
   * but hits is asked for. It returns null if the search is over, or if the server cannot do that, as in a network.
   */
  function aside(name, body) {
    const own = asked, path = indexPath(s.index, "/search");
    const get = async () => {
      await new Promise(resolve => setTimeout(resolve, spreadPause));
      if (own.aborted) return null;
      try {
        const found = await ask(path, {body, signal: own});
        return own.aborted ? null : found;
      } catch (error) {
        if (own.aborted || error.status === 400) return null;
        throw error;
      }
    };
    if (asides.get(name)?.own !== own) asides.set(name, {own, found: get()});
    return asides.get(name).found;
  }

  /** meant shows similar queries that find something, behind a node that says that nothing was found. */
  async function meant(nothing) {
    const {q, filter, hybrid} = body(true);
    const found = await aside("suggest", {q, filter, hybrid, limit: 1, attributesToRetrieve: [], suggest: true});
    if (!found?.suggestions?.length) return;
    nothing.after(h("p", null, "Did you mean ", found.suggestions.map((other, i) => [i > 0 && ", ", h("button", {type: "button", class: "link", onclick: () => {
      box.value = s.q = other.query;
      s.page = 1;
      return search();
    }}, h("bdi", null, brief(other.query)))]), "?"));
  }

  /** drawGroupChoice offers the fields that have facets as those of groups. */
  function drawGroupChoice() {
    const names = facetNames(), drawn = JSON.stringify([s.index, names]);
    if (groups.dataset.names === drawn) return;
    groups.dataset.names = drawn;
    groups.replaceChildren(names.length ? field("Group by", select([["", "nothing"], ...names.map(name => [name, brief(name, 40)])], s.group, v => { s.group = v; s.page = 1; return search(); })) : "");
  }

  /** countAll counts the hits beyond maxTotalHits: without a query as a list of documents, else by reading the ids of all. */
  async function countAll() {
    const own = asked, {q, filter, sort, hybrid} = body(true), tell = n => { summary.textContent = n; };
    counted.hidden = true;
    if (!q && !hybrid) {
      try {
        const {total} = await ask(indexPath(s.index, "/documents/fetch"), {body: {limit: 1, filter}, signal: own});
        return tell(`${count(total)} ${total === 1 ? "document" : "documents"}`);
      } catch (error) {
        if (error.status !== 403) throw error; // a search key counts as with a query
      }
    }
    let n = 0;
    for (let cursor = ""; cursor !== null;) {
      const page = await ask(indexPath(s.index, "/search"), {body: {q, filter, sort, hybrid, limit: known.most, cursor, attributesToRetrieve: [known.key ?? "id"]}, signal: own});
      n += page.hits.length;
      cursor = page.nextCursor;
      if (own.aborted) return;
      tell(cursor === null ? `${count(n)} found` : `Counting: ${count(n)} so far…`);
    }
  }

  /** drawChips lists what is chosen in facets. A click takes it back. */
  function drawChips() {
    const drop = (label, change) => h("button", {type: "button", class: "chip", "aria-label": "Without " + brief(label), onclick: () => {
      change();
      s.page = 1;
      return search();
    }}, h("bdi", null, brief(label, 60)), h("span", {"aria-hidden": "true"}, " ×"));
    const all = [...s.facets].flatMap(([name, choice]) => {
      const settle = () => choice.values.length || choice.min !== "" || choice.max !== "" || s.facets.delete(name);
      const bound = (which, sign) => choice[which] !== "" && drop(`${name} ${sign} ${choice[which]}`, () => {
        choice[which] = "";
        settle();
      });
      return [...choice.values.map(v => drop(`${name}: ${v}`, () => {
        choice.values = choice.values.filter(other => other !== v);
        settle();
      })), bound("min", "≥"), bound("max", choice.below ? "<" : "≤")];
    }).filter(Boolean);
    if (s.at) all.unshift(drop(`as on ${new Date(s.at).toLocaleString([], {dateStyle: "medium", timeStyle: "short"})}`, () => { moment.value = s.at = ""; }));
    chips.replaceChildren(...all, all.length > 1 ? h("button", {type: "button", class: "link", onclick: () => {
      s.facets.clear();
      moment.value = s.at = "";
      s.page = 1;
      return search();
    }}, "Clear all") : "");
  }

  /** deedsOf are what can be done with a hit, as its actions. */
  function deedsOf(hit, rank) {
    const id = known.key && hit[known.key], q = s.q, title = titleOf(hit, known.key);
    const similar = Object.keys(known.embedders).length > 0 && id !== undefined && h("button", {type: "button", class: "link", onclick: async () => {
      const near = await ask(indexPath(s.index, "/similar"), {body: {id, embedder: s.embedder || Object.keys(known.embedders)[0], limit: 10, showRankingScore: true}, signal});
      show(`Similar to ${id}`, near.hits.map((other, i) => hitBox(other, {key: known.key, fields: s.fields, rank: i + 1})));
    }}, "Similar");
    const raw = h("button", {type: "button", class: "link", onclick: () => {
      const plain = Object.fromEntries(Object.entries(hit).filter(([name]) => !["_formatted", "_rankingScoreDetails", "_rankingScore"].includes(name)));
      show(String(id ?? "Document"), h("pre", {tabIndex: 0}, json(plain).slice(0, 500000)));
    }}, "JSON");
    return [raw, id !== undefined && h("a", {class: "link", href: "#/documents?" + new URLSearchParams({index: s.index, id})}, "Edit"), similar,
      id !== undefined && menu("Pin or hide", `Pin or hide ${title}`, promotions({index: s.index, id, title, rank, q, pinned: !!hit._rankingScoreDetails?.pin}, search))];
  }

  /** tableOf shows hits as rows: fields in columns, by which people order where the index can. */
  function tableOf(shown, first) {
    const columns = columnsOf(shown, known.key, s.fields), [by, direction] = s.sort.split(/:(?=[^:]*$)/);
    const head = name => h("th", {scope: "col", dir: "auto", "aria-sort": by === name ? direction + "ending" : null}, known.sortable.includes(name) ? h("button", {type: "button", class: "link", onclick: () => {
      s.sort = `${name}:${by === name && direction === "asc" ? "desc" : "asc"}`;
      s.page = 1;
      return search();
    }}, brief(name, 40), by === name && (direction === "asc" ? " ↑" : " ↓")) : brief(name, 40));
    return h("div", {class: "scroll", tabIndex: 0}, h("table", {class: "grid"}, h("thead", null, h("tr", null, h("td"), columns.map(head), h("td"))),
      h("tbody", null, shown.map((hit, i) => h("tr", null, h("td", {class: "number soft"}, first + i), columns.map(name => cell(hit, name)), h("td", {class: "time"}, deedsOf(hit, first + i)))))));
  }

  function oneHit(hit, rank) {
    const id = known.key && hit[known.key], details = hit._rankingScoreDetails, q = s.q;
    const reasons = h("details", {class: "reasons", ontoggle: async () => {
      if (reasons.childElementCount > 1) return;
      const told = h("div");
      reasons.append(told, why(details));
      told.append(...await whichRules(details, {index: s.index, id, q, now: s.at ? Date.parse(s.at) : Date.now()}, signal));
    }}, h("summary", null, "Why here"));
    const node = hitBox(hit, {key: known.key, fields: s.fields, pictures: s.pictures, rank, actions: deedsOf(hit, rank), marks: [
      details?.pin && h("span", {class: "status pinned"}, "Pinned"), details?.scale && h("span", {class: "status pinned"}, `× ${details.scale.factor}`)]});
    node.lastChild.append(reasons);
    return node;
  }

  /** histogram draws how the numbers of a facet are spread, as if none were chosen. A click on a bar chooses its range. */
  async function histogram(name, {min, max}, choice, change, node) {
    const step = roundStep((max - min) / 20);
    if (!(step > 0)) return;
    const spread = min >= 0 && max > wideSpread * Math.max(min, 1) ? {range: name, bands: growing(max)} : {histogram: name, interval: step, minCount: 0};
    const found = await aside("facet " + name, {q: s.q, limit: 0, filter: filters(name), aggregations: {spread}});
    if (!found) return; // the range will do
    const all = found.aggregations.spread.buckets, buckets = all.slice(all.findIndex(b => b.count > 0), all.findLastIndex(b => b.count > 0) + 1);
    if (buckets.length < 2 || buckets.length > 60) return;
    const low = choice.min === "" ? -Infinity : Number(choice.min), high = choice.max === "" ? Infinity : Number(choice.max);
    const picture = bars(name, buckets, b => b.to > low && (choice.below ? b.from < high : b.from <= high), b => {
      choice.min = String(b.from);
      choice.below = b.to <= max; // a bar does not count its upper end; the last one has the greatest number
      choice.max = String(choice.below ? b.to : max);
      return change();
    });
    spreads.set(name, picture);
    node.replaceChildren(picture);
  }

  /** frequent gives the values of a facet that most hits have to draw. If values are sorted by name, an answer has the first ones of many. */
  async function frequent(name, draw) {
    const found = await aside("facet " + name, {q: s.q, limit: 0, filter: filters(name), aggregations: {top: {terms: name, limit: facetValues}}});
    if (found) draw(found.aggregations.top.buckets.map(b => [String(b.key), b.count]));
  }

  /** oneFacet is a facet of an answer; what is in one that is folded is drawn when it is opened. */
  function oneFacet(name, values, {facetStats}, early) {
    const choice = s.facets.get(name) ?? {values: [], min: "", max: "", below: false};
    const change = () => {
      if (choice.values.length || choice.min !== "" || choice.max !== "") s.facets.set(name, choice);
      else s.facets.delete(name);
      s.page = 1;
      return search();
    };
    const listed = h("ul");
    const draw = entries => listed.replaceChildren(...entries.map(([v, n]) => h("li", null, h("label", {class: "check"},
      h("input", {type: "checkbox", checked: choice.values.includes(v), "data-at": name + "\n" + v, onchange: event => {
        choice.values = event.target.checked ? [...choice.values, v] : choice.values.filter(other => other !== v);
        return change();
      }}), " ", h("span", {dir: "auto"}, brief(v))), n !== null && h("span", {class: "soft"}, count(n)))));
    // Numbers with equal counts come by value: as names of members, whole numbers would come before fractions.
    const stats = facetStats && Object.hasOwn(facetStats, name) && facetStats[name];
    const rest = Object.entries(values).sort(([v, n], [w, m]) => m - n || (stats ? v - w : 0) || 0), more = rest.length === known.values, byCount = (known.orders[name] ?? known.orders["*"]) === "count";
    const ordered = all => [...choice.values.map(v => [v, new Map(all).get(v) ?? null]), ...all.filter(([v]) => !choice.values.includes(v))];
    let entries = ordered(rest), untouched = true; // nothing else than the first values is drawn
    const many = more || entries.length > facetValues;
    // Numbers that are many are chosen by their range.
    const few = stats && entries.length > facetValues ? choice.values.length : facetValues;
    const bound = which => h("input", {type: "number", step: "any", value: choice[which], placeholder: String(stats[which]), "aria-label": `${brief(name)}: ${which}`, "data-at": name + "\n" + which, onchange: event => {
      choice[which] = event.target.value;
      if (which === "max") choice.below = false;
      return change();
    }});
    const wantedTurn = turns(signal);
    const wanted = () => h("input", {type: "search", placeholder: "Find a value", "aria-label": `Find a value of ${brief(name)}`, oninput: later(async event => {
      const own = wantedTurn(), text = event.target.value;
      untouched = !text;
      if (!text) return draw(entries.slice(0, few));
      const got = await ask(indexPath(s.index, "/facet-search"), {signal: own, body: {facetName: name, facetQuery: text, q: s.q, filter: filters()}});
      if (!own.aborted) draw(got.facetHits.slice(0, 50).map(f => [f.value, f.count]));
    }, 150)});
    const fill = () => {
      if (box.childElementCount > 1) return;
      draw(entries.slice(0, few));
      if (more && !byCount && !stats && !s.embedder) attempt(frequent, name, top => {
        entries = ordered([...new Map([...top, ...rest])]);
        if (untouched) draw(entries.slice(0, few));
      });
      // The bars know no embedder: with one, they would count other documents than the hits.
      const drawn = stats && entries.length > facetValues && !s.embedder && h("div", null, spreads.get(name));
      if (drawn) attempt(histogram, name, stats, choice, change, drawn);
      box.append(h("div", null, drawn, stats && h("p", {class: "range"}, bound("min"), " to ", bound("max")), !stats && many && wanted(), listed,
        many && h("button", {type: "button", class: "link", onclick: event => {
          untouched = false;
          draw(entries);
          event.target.remove();
        }}, "More values")));
    };
    let open = unfolded.get(name) ?? (s.facets.has(name) || entries.length > 0 && early);
    const box = h("details", {class: "facet", open, ontoggle: () => {
      if (box.open) fill();
      if (box.isConnected && box.open !== open) unfolded.set(name, open = box.open);
    }}, h("summary", {"data-at": name, dir: "auto"}, brief(name), " ", h("span", {class: "soft"}, count(rest.length) + (more ? "+" : ""))));
    if (open) fill();
    return box;
  }

  function drawFacets() {
    const nodes = [];
    for (const [name, values] of Object.entries(answer.facetDistribution ?? {}).sort(([a], [b]) => a.localeCompare(b))) {
      if (/^_geo(json)?(\.|$)/.test(name)) continue; // the map has these
      nodes.push(oneFacet(name, values, answer, nodes.length < 8));
    }
    if (nodes.length === 0 && answer.hits.length > 0) nodes.push(h("p", {class: "soft"}, "No field has facets yet. ",
      h("a", {href: "#/settings?" + new URLSearchParams({index: s.index, group: "facets"})}, "Choose fields"), " to filter by."));
    // What is being typed in stays as it is; the focus stays where it is.
    if (document.activeElement.type !== "search" || !facets.contains(document.activeElement)) redraw(facets, nodes);
  }

  function drawPages() {
    const go = to => h("button", {type: "button", disabled: to < 1 || to > answer.totalPages || to === s.page, onclick: () => {
      s.page = to;
      scrollTo({top: 0});
      return search();
    }}, to === s.page - 1 ? "Previous" : to === s.page + 1 ? "Next" : count(to));
    pages.replaceChildren();
    if (answer.totalPages > 1) pages.append(go(s.page - 1), h("span", null, `page ${count(s.page)} of ${count(answer.totalPages)}`), go(s.page + 1));
  }

  /** learn asks what the index can do, as far as the key may know, and searches. */
  async function learn() {
    const index = s.index, listed = all?.find(other => other.uid === index);
    known = {embedders: {}, sortable: [], orders: {}, most: 1000, values: 100, key: listed?.primaryKey};
    answer = null;
    await Promise.all([search(), learnSettings(index).then(() => index === s.index && !signal.aborted && offer(listed))]);
  }

  /** offer draws the controls of what the index can do. */
  function offer(listed) {
    if (answer && (known.most !== 1000 || known.values !== 100 || Object.keys(known.embedders).length)) { // it came first
      drawHits();
      drawRest();
      drawAround();
    }
    sorts.replaceChildren(known.sortable.length ? field("Sort", select([["", "by relevance"], ...known.sortable.flatMap(a => [`${a}:asc`, `${a}:desc`])], s.sort, v => { s.sort = v; s.page = 1; return search(); })) : "");
    const names = Object.keys(known.embedders);
    const ratio = h("input", {type: "range", min: 0, max: 1, step: 0.05, value: s.ratio, oninput: later(() => { s.ratio = Number(ratio.value); return search(); }, 60)});
    hybrid.replaceChildren(...names.length ? [field("Meaning", select([["", "words only"], ...names], s.embedder, v => { s.embedder = v; return search(); })), field("Words … meaning", ratio)] : []);
    const choices = Object.keys(listed?.fields ?? {}).filter(name => !name.startsWith("_") || name === "_geo").sort();
    fields.replaceChildren(h("summary", null, "Fields to show"), h("p", {class: "choices"}, choices.map(name => h("label", {class: "check"}, h("input", {type: "checkbox", checked: s.fields.includes(name), onchange: event => {
      s.fields = event.target.checked ? [...s.fields, name] : s.fields.filter(other => other !== name);
      return search();
    }}), " ", h("span", {dir: "auto"}, brief(name))))));
    fields.hidden = choices.length === 0;
  }

  async function learnSettings(index) {
    if (!index) return;
    try {
      const settings = await ask(indexPath(index, "/settings"), {signal});
      if (index !== s.index) return;
      Object.assign(known, {embedders: settings.embedders ?? {}, sortable: settings.sortableAttributes ?? [], most: settings.pagination.maxTotalHits, values: settings.faceting.maxValuesPerFacet, orders: settings.faceting.sortFacetValuesBy});
    } catch (error) {
      if (error.status !== 403 && error.status !== 404) throw error; // a search key may not know; that there is no such index, the search tells
    }
  }

  await learn();
  if (s.compare) {
    let tried;
    try {
      tried = JSON.parse(s.compare);
    } catch {
      s.compare = ""; // the address was changed by hand
    }
    if (tried) await sides(tried);
  }
}

const wideSpread = 1000; // from so many times the least on, numbers are counted in bands that grow

/** growing are bands from 0 to a number whose ends are 1, 2 and 5, and so many zeros. */
function growing(max) {
  const bands = [{from: 0, to: 1}];
  for (let power = 1; power <= max && bands.length < 90; power *= 10) bands.push({from: power, to: 2 * power}, {from: 2 * power, to: 5 * power}, {from: 5 * power, to: 10 * power});
  return bands;
}

/** namesOf reads names of fields from the address bar: JSON of a list. */
function namesOf(text) {
  try {
    return JSON.parse(text ?? "[]").map(String);
  } catch {
    return [];
  }
}

/** facetsOf reads chosen facets from the address bar: JSON of [name, values, min, max, below]. below excludes max itself. */
function facetsOf(text) {
  try {
    return new Map(JSON.parse(text ?? "[]").map(([name, values, min, max, below]) => [String(name), {values: values.map(String), min: String(min ?? ""), max: String(max ?? ""), below: below === true}]));
  } catch {
    return new Map();
  }
}

const textOf = facets => facets.size ? JSON.stringify([...facets].map(([name, c]) => [name, c.values, c.min, c.max, ...c.below ? [true] : []])) : "";

/** mapOf draws where hits are: a field of the world as large as they need, without any outside picture. */
function mapOf(hits) {
  const places = hits.map(hit => [hit, hit._geo]).filter(([, g]) => g && Number.isFinite(Number(g.lat)) && Number.isFinite(Number(g.lng))).map(([hit, g]) => [hit, Number(g.lat), Number(g.lng)]);
  if (places.length === 0) return null;
  const lats = places.map(p => p[1]), lngs = places.map(p => p[2]);
  const pad = (low, high) => Math.max((high - low) * 0.1, 0.01);
  const south = Math.min(...lats) - pad(Math.min(...lats), Math.max(...lats)), north = Math.max(...lats) + pad(Math.min(...lats), Math.max(...lats));
  const west = Math.min(...lngs) - pad(Math.min(...lngs), Math.max(...lngs)), east = Math.max(...lngs) + pad(Math.min(...lngs), Math.max(...lngs));
  const width = 600, height = Math.max(120, Math.min(300, width * (north - south) / (east - west)));
  const x = lng => (lng - west) / (east - west) * width, y = lat => (north - lat) / (north - south) * height;
  const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "map", role: "img", "aria-label": `${places.length} places`});
  for (let i = 1; i < 6; i++) {
    picture.append(svg("line", {x1: 0, x2: width, y1: height * i / 6, y2: height * i / 6}), svg("line", {x1: width * i / 6, x2: width * i / 6, y1: 0, y2: height}));
  }
  for (const [hit, lat, lng] of places) {
    picture.append(svg("circle", {cx: x(lng), cy: y(lat), r: 5}, svg("title", null, `${titleOf(hit)}: ${lat}, ${lng}`)));
  }
  const corner = (lat, lng) => `${lat.toFixed(2)}, ${lng.toFixed(2)}`;
  return h("details", {class: "place"}, h("summary", null, "Map"), picture, h("p", {class: "soft"}, `${corner(north, west)} to ${corner(south, east)}`));
}

/** firstStart shows how documents come in, with a sample for those who only want to look, until there are some. */
function firstStart(page, signal, reopen) {
  const command = `curl -X POST '${location.origin}/indexes/films/documents' \\\n  -H 'Content-Type: application/json' \\\n  -d '[{"id": 1, "title": "Metropolis"}]'`;
  const films = h("button", {type: "button", class: "main", onclick: async () => {
    films.disabled = true;
    say("The sample is being indexed…");
    try {
      await ask(indexPath(sampleIndex, "/settings"), {method: "PATCH", body: {filterableAttributes: ["year", "genres", "country"], sortableAttributes: ["year"], searchableAttributes: ["title", "director", "genres", "text"]}});
      const done = await ended(await ask(indexPath(sampleIndex, "/documents"), {body: sample}));
      if (done.error) throw new Error(done.error.message);
      sampled = true;
      await reopen();
    } finally {
      films.disabled = false;
    }
  }}, "Load sample films");
  page.append(h("h1", null, "There is nothing to search yet"), h("ol", {class: "steps"},
    h("li", null, h("h2", null, "Add documents"), h("p", {class: "about"}, "Load 24 films to look around, or choose a file of your own. The page then shows what is in the file."),
      h("p", null, films), uploader({all: [], index: "", open: true, signal, done: reopen}),
      h("details", {class: "more"}, h("summary", null, "Send documents from a program"), h("pre", {tabIndex: 0}, command), h("button", {type: "button", onclick: () => copy(command)}, "Copy"))),
    h("li", null, h("h2", null, "Choose filters and sort orders"), h("p", {class: "about"}, "Tick fields in the table that the page makes of your file. Facets appear beside the hits. You can change all of this later under Settings.")),
    h("li", null, h("h2", null, "Search"), h("p", {class: "about"}, "The page searches as you type, explains the rank of each hit, compares two settings side by side, and copies any search as a curl command."))));
  again(async () => page.querySelector(".plan") === null && (await indexes(signal))?.some(index => index.documents !== 0) && reopen(), 2000, signal);
}
