// Figures about all that a search finds: aggregations of each kind, chosen by people and drawn.
import {bars, roundStep, series} from "./chart.js";
import {brief, count, field, h, select} from "./dom.js";

const kinds = [["terms", "Values"], ["histogram", "Histogram"], ["dateHistogram", "Over time"], ["range", "Bands"], ["percentiles", "Percentiles"], ["stats", "Statistics"], ["cardinality", "Number of values"]];
const inner = [["", "nothing"], ["stats", "average"], ["percentiles", "median"], ["cardinality", "number of values"], ["terms", "most frequent value"]];
const steps = ["day", "week", "month", "quarter", "year", "hour", "minute"];
const most = 10; // terms
const longest = 200; // lines of a table

/** read takes figures from the address bar: JSON of [kind, field, option, kind for each bucket, its field]. */
export function read(text) {
  try {
    return JSON.parse(text || "[]").filter(f => kinds.some(([kind]) => kind === f[0])).slice(0, 20).map(f => f.map(String));
  } catch {
    return [];
  }
}

/** numbersOf are the numbers of a text, in their order. */
const numbersOf = text => text.split(/[,;\s]+/).filter(Boolean).map(Number).filter(Number.isFinite);

const hasBuckets = kind => !["stats", "percentiles", "cardinality"].includes(kind);

const milliseconds = 1e11; // from here on, a number that is a date has this unit: as seconds it would be after the year 5000

/** widthOf is the width of about 20 bars over the numbers of a field; stats are its least and greatest, if it has any. */
const widthOf = stats => stats && stats.max > stats.min ? roundStep((stats.max - stats.min) / 20) : 10;

/** statsOf are the least and the greatest number of a field. */
const statsOf = (all, name) => all && Object.hasOwn(all, name) ? all[name] : undefined;

/** wanted is a figure as the API takes it; stats as in request. */
function wanted([kind, name, option, innerKind, innerName], stats) {
  const a = {[kind]: name};
  if (kind === "terms") a.limit = most;
  if (kind === "histogram") Object.assign(a, {interval: Number(option) || widthOf(statsOf(stats, name)), minCount: 0});
  if (kind === "dateHistogram") Object.assign(a, {interval: option || "month", minCount: 0, ...statsOf(stats, name)?.max > milliseconds && {unit: "milliseconds"}});
  if (kind === "range") {
    const ends = numbersOf(option);
    a.bands = [{to: ends[0]}, ...ends.slice(1).map((to, i) => ({from: ends[i], to})), {from: ends.at(-1)}];
  }
  if (innerKind && hasBuckets(kind)) a.aggregations = {inner: {[innerKind]: innerName, ...innerKind === "percentiles" && {percents: [50]}, ...innerKind === "terms" && {limit: 1}}};
  return a;
}

/** request is what a search asks for to draw figures; undefined for none. stats are the facetStats of an answer. */
export const request = (list, stats) => list.length ? Object.fromEntries(list.map((f, i) => [String(i), wanted(f, stats)])) : undefined;

const number = n => n === null || n === undefined ? "–" : Number.isInteger(n) ? count(n) : n.toLocaleString("en", {maximumSignificantDigits: 6});

/** innerText writes what was computed for a bucket. */
function innerText(kind, a) {
  if (!a) return "";
  if (kind === "terms") return a.buckets[0] ? `${brief(String(a.buckets[0].key), 40)} (${count(a.buckets[0].count)})` : "–";
  return number(kind === "stats" ? a.avg : kind === "cardinality" ? a.value : Object.values(a.values)[0]);
}

const innerTitle = ([, , , kind, name]) => `${inner.find(([k]) => k === kind)?.[1]} of ${name}`;

const band = ({from, to}) => from === undefined ? `below ${number(to)}` : to === undefined ? `from ${number(from)}` : `${number(from)} to ${number(to)}`;

/** rows draws buckets as lines of a table, each with a bar. */
function rows(f, buckets, label, other) {
  const top = Math.max(...buckets.map(b => b.count), 1), nested = f[3];
  return h("div", {class: "scroll", tabIndex: 0}, h("table", {class: "figure-rows"}, h("thead", null, h("tr", null, h("th", {scope: "col"}, brief(f[1], 40)), h("th", {scope: "col", class: "number"}, "Documents"), h("td"), nested && h("th", {scope: "col", class: "number"}, brief(innerTitle(f), 60)))),
    h("tbody", null, buckets.map(b => h("tr", null, h("td", {class: "name", dir: "auto"}, label(b)), h("td", {class: "number"}, count(b.count)), h("td", null, h("meter", {min: 0, max: top, value: b.count, "aria-label": `${count(b.count)} documents`})), nested && h("td", {class: "number", dir: "auto"}, innerText(nested, b.aggregations?.inner)))),
      other > 0 && h("tr", null, h("td", {class: "soft"}, "Others"), h("td", {class: "number"}, count(other)), h("td"), nested && h("td")))));
}

/** table are buckets as text, for those who do not see or click the picture. */
const table = (f, buckets, label, open) => h("details", {open}, h("summary", null, "Table"), rows(f, buckets.slice(0, longest), label, buckets.slice(longest).reduce((n, b) => n + b.count, 0)));

/** lineOf draws buckets of time, and what was computed for each. */
function lineOf(f, buckets) {
  if (buckets.length === 0) return h("p", {class: "soft"}, "No document has a date here.");
  const ends = [buckets[0].key, buckets.at(-1).key], value = b => f[3] === "stats" ? b.aggregations.inner.avg : f[3] === "cardinality" ? b.aggregations.inner.value : Object.values(b.aggregations.inner.values)[0];
  const total = buckets.reduce((n, b) => n + b.count, 0);
  return h("div", null, series(`${count(total)} ${total === 1 ? "document" : "documents"}, in the last ${f[2] || "month"}`, [["", buckets.map(b => b.count)]], count, 0, ends), f[3] && f[3] !== "terms" && series(innerTitle(f), [["", buckets.map(value)]], number, 0, ends), table(f, buckets, b => b.key, false));
}

/** drawOne draws the answer to a figure. choose is told of a value that was clicked. */
function drawOne(f, a, choose) {
  const [kind, name] = f, list = pairs => h("dl", {class: "narrow"}, pairs.map(([k, v]) => [h("dt", null, k), h("dd", null, number(v))]));
  switch (kind) {
    case "terms": return rows(f, a.buckets, b => h("button", {type: "button", class: "link", onclick: () => choose(name, String(b.key))}, brief(String(b.key), 80)), a.otherCount);
    case "range": return rows(f, a.buckets, band);
    case "histogram": {
      if (a.buckets.length === 0) return h("p", {class: "soft"}, "No document has a number here.");
      const picture = bars(name, a.buckets, () => true, b => choose(name, b));
      return h("div", {class: "facet"}, picture, h("p", {class: "soft ends"}, h("span", null, number(a.buckets[0].from)), h("span", null, number(a.buckets.at(-1).to))), table(f, a.buckets, b => h("button", {type: "button", class: "link", onclick: () => choose(name, b)}, band(b)), !!f[3]));
    }
    case "dateHistogram": return lineOf(f, a.buckets);
    case "percentiles": return list(Object.entries(a.values).map(([p, v]) => [`${p}%`, v]));
    case "stats": return list([["Documents", a.count], ["Minimum", a.min], ["Maximum", a.max], ["Sum", a.sum], ["Average", a.avg], ["Standard deviation", a.stdDev]]);
    default: return list([["Distinct values", a.value]]);
  }
}

const titleOf = ([kind, name, option]) => [kinds.find(([k]) => k === kind)[1], ": ", h("bdi", null, brief(name, 60)), option && kind !== "range" && h("span", {class: "soft"}, ` by ${brief(option, 40)}`)];

/**
 * panel is where figures are added and drawn. changed is called with the list when it changes; choose with a field and a value, or a
 * bucket, that was clicked.
 */
export function panel(list, {changed, choose}) {
  let submit = () => {};
  const form = h("form", {class: "bar", onsubmit: event => {
    event.preventDefault();
    return submit();
  }}), out = h("div", {class: "graphs figures"}), box = h("details", {class: "more", open: list.length > 0}, h("summary", null, "Aggregations"), form, out);
  let names = null; // that the form offers
  let stats; // of their numbers
  const drop = at => {
    list.splice(at, 1);
    return changed(list);
  };
  function drawForm() {
    const kind = select(kinds, "terms", () => settle()), name = select(names, names[0], () => settle()), step = select(steps, "month"), interval = h("input", {type: "number", min: 0, step: "any", placeholder: "10"}), bands = h("input", {placeholder: "10, 50, 100", spellcheck: false});
    const nested = select(inner, "", () => settle()), nestedName = select(names), add = h("button", null, "Add aggregation");
    const options = {histogram: field("Width of a bar", interval), dateHistogram: field("One point per", step), range: field("Ends of the bands", bands)}, nestedField = field("of", nestedName), nestedBox = field("For each, also", nested);
    const settle = () => {
      for (const [k, node] of Object.entries(options)) node.hidden = k !== kind.value;
      interval.placeholder = widthOf(statsOf(stats, name.value));
      nested.querySelector("[value=terms]").hidden = kind.value === "dateHistogram"; // a line of texts cannot be drawn
      if (kind.value === "dateHistogram" && nested.value === "terms") nested.value = "";
      nestedBox.hidden = !hasBuckets(kind.value);
      nestedField.hidden = nestedBox.hidden || nested.value === "";
    };
    settle();
    form.replaceChildren(field("Aggregation", kind), field("Field", name), ...Object.values(options), nestedBox, nestedField, add);
    submit = () => {
      const option = {histogram: interval.value || interval.placeholder, dateHistogram: step.value, range: bands.value}[kind.value] ?? "";
      if (kind.value === "range" && numbersOf(option).length === 0) return bands.focus();
      list.push([kind.value, name.value, option, ...hasBuckets(kind.value) && nested.value ? [nested.value, nestedName.value] : ["", ""]]);
      return changed(list);
    };
  }
  return {
    box,
    /** offer says which fields there are, and the facetStats of those with numbers. */
    offer(fields, numbers) {
      stats = numbers;
      if (JSON.stringify(fields) === JSON.stringify(names)) return;
      names = fields;
      box.hidden = fields.length === 0;
      drawForm();
    },
    /** draw shows an answer, or says why there is none. Every figure can be removed: one that the server refuses stops the others. */
    draw(found, told) {
      out.replaceChildren(...told && list.length ? [h("p", {class: "soft", role: "status"}, told)] : [], ...list.map((f, i) => h("section", {class: "setting"}, h("div", {class: "head"}, h("h2", null, titleOf(f)), h("button", {type: "button", class: "link", "aria-label": `Remove the aggregation of ${brief(f[1], 60)}`, onclick: () => drop(i)}, "Remove")), found?.[i] && drawOne(f, found[i], choose))));
    },
  };
}
