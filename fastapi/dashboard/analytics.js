// Reports of searches: the most frequent, those that found nothing, the slowest, and the filters.
import {ask, turns} from "./api.js";
import {chooser, indexes} from "./indexes.js";
import {brief, count, field, h, say, tabs} from "./dom.js";

const reports = [["top-queries", "Top queries"], ["no-results", "No results"], ["slow", "Slow"], ["filters", "Filters"]];
const share = v => v === undefined || v === null ? "–" : `${(100 * v).toFixed(v > 0 && v < 0.1 ? 1 : 0)}%`, ms = v => v === undefined ? "–" : `${v < 10 ? v.toFixed(1) : Math.round(v)} ms`;

/** columns are what a report shows: a title, the text of a row, and which number its bar draws. */
const columns = {
  "top-queries": [["Searches", r => count(r.count), r => r.count], ["Found nothing", r => share(r.noResults / r.count)], ["Click rate", r => share(r.clickThroughRate)], ["Mean position", r => r.meanPosition?.toFixed(1) ?? "–"], ["Conversion rate", r => share(r.conversionRate)]],
  "no-results": [["Found nothing", r => count(r.noResults), r => r.noResults], ["Searches", r => count(r.count)]],
  slow: [["Mean time", r => ms(r.meanMs), r => r.meanMs], ["Longest time", r => ms(r.longestMs)], ["Searches", r => count(r.count)]],
  filters: [["Searches", r => count(r.count), r => r.count], ["Found nothing", r => share(r.noResults / r.count)], ["Mean time", r => ms(r.meanMs)]],
};

export async function analyticsView({page, state, remember, signal}) {
  const all = await indexes(signal), turn = turns(signal);
  const s = {report: reports.find(([id]) => id === state.get("report"))?.[0] ?? "top-queries", index: state.get("index") ?? "", from: state.get("from") ?? "", to: state.get("to") ?? ""};
  const nav = h("div"), out = h("div"), date = name => h("input", {type: "date", value: s[name], onchange: event => {
    s[name] = event.target.value;
    return draw();
  }});
  page.append(h("h1", null, "Analytics"), h("div", {class: "bar"}, chooser(all && [{uid: ""}, ...all], s.index, uid => {
    s.index = uid;
    return draw();
  }, "all indexes"), field("From", date("from")), field("To", date("to"))), nav, out);

  async function draw() {
    const own = turn();
    remember({report: s.report === "top-queries" ? "" : s.report, index: s.index, from: s.from, to: s.to});
    nav.replaceChildren(tabs("Reports", reports, s.report, id => {
      s.report = id;
      return draw().then(() => nav.querySelector("[aria-current]").focus());
    }));
    const query = new URLSearchParams({limit: 100});
    if (s.index) query.set("indexUid", s.index);
    for (const name of ["from", "to"]) if (s[name]) query.set(name, s[name]);
    let found;
    try {
      found = await ask(`/analytics/${s.report}?${query}`, {signal: own});
    } catch (error) {
      if (error.code !== "feature_not_enabled") throw error;
      nav.replaceChildren();
      return out.replaceChildren(h("div", {class: "empty"}, h("p", null, "This server does not count searches."), h("p", null, "Start it with ", h("code", null, "--analytics-retention 30d"), " to see which queries are frequent, find nothing or are slow.")));
    }
    if (own.aborted) return;
    say("");
    const rows = found.results, top = Math.max(...rows.map(r => columns[s.report][0][2](r)), 1e-9), name = s.report === "filters" ? "filter" : "query";
    if (rows.length === 0) return out.replaceChildren(h("p", {class: "empty"}, "No search is counted for this choice yet."));
    out.replaceChildren(h("div", {class: "scroll", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, h("th", {scope: "col"}, name), !s.index && all?.length > 1 && h("th", {scope: "col"}, "Index"),
      columns[s.report].map(([title]) => h("th", {scope: "col", class: "number"}, title)), h("td"))),
    h("tbody", null, rows.map(r => h("tr", null, h("td", {class: "name", dir: "auto"}, h("a", {href: "#/search?" + new URLSearchParams({index: r.indexUid, [name === "filter" ? "filter" : "q"]: r[name]})}, r[name] === "" ? "(nothing typed)" : brief(r[name], 120))),
      !s.index && all?.length > 1 && h("td", {class: "name", dir: "auto"}, brief(r.indexUid, 40)), columns[s.report].map(([, text]) => h("td", {class: "number"}, text(r))),
      h("td", null, h("meter", {min: 0, max: top, value: columns[s.report][0][2](r), "aria-label": `${brief(r[name], 60)}: ${columns[s.report][0][1](r)}`}))))))),
    found.other ? h("p", {class: "soft"}, `${count(found.other)} more searches were too rare in their hour to have a line.`) : "");
  }

  await draw();
}
