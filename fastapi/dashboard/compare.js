// Two ways to search, side by side on the same query: nothing of the index is changed.
import {ask, indexPath} from "./api.js";
import {field, h, later, select, show} from "./dom.js";
import {titleOf} from "./hit.js";

/** compare opens the comparison for a search body. */
export function compare(index, body, known) {
  const base = {...body, facets: undefined, showRankingScore: true, showRankingScoreDetails: true};
  const sides = [{}, {matchingStrategy: "all"}];
  const outs = [h("div"), h("div")];
  let last = 0;

  const run = later(async () => {
    const mine = ++last;
    const answers = await Promise.all(sides.map(side => ask(indexPath(index, "/search"), {body: {...base, ...side}}).catch(error => ({error}))));
    if (mine !== last) return;
    const places = answers.map(a => new Map((a.hits ?? []).map((hit, i) => [name(hit), i])));
    for (const [i, answer] of answers.entries()) {
      outs[i].replaceChildren(answer.error ? h("p", {class: "bad"}, answer.error.message) : h("p", {class: "soft"}, `${answer.totalHits} found in ${answer.processingTimeMs} ms`),
        h("ol", {class: "compared"}, (answer.hits ?? []).map((hit, at) => {
          const other = places[1 - i].get(name(hit));
          const moved = other === undefined ? "only here" : other === at ? "" : other > at ? `▲ ${other - at}` : `▼ ${at - other}`;
          const rules = Object.entries(hit._rankingScoreDetails ?? {}).filter(([, d]) => typeof d?.score === "number").sort(([, a], [, b]) => a.order - b.order).map(([rule, d]) => `${rule} ${d.score.toFixed(2)}`);
          return h("li", {class: other === undefined ? "new" : other === at ? "" : "moved"}, h("strong", {dir: "auto"}, titleOf(hit, known.key)), " ", h("span", {class: "soft"}, moved), h("br"), h("span", {class: "soft facts"}, rules.join(" · ")));
        })));
    }
  }, 60);

  const name = hit => known.key ? String(hit[known.key]) : JSON.stringify(Object.values(hit)[0]);

  function controls(side) {
    const set = (key, value) => {
      if (value === "" || value === undefined) delete side[key];
      else side[key] = value;
      run();
    };
    const embedders = Object.keys(known.embedders);
    const ratio = h("input", {type: "range", min: 0, max: 1, step: 0.05, value: 0.5});
    const embedder = select([["", "as the search"], ["-", "words only"], ...embedders], "", v => set("hybrid", v === "" ? undefined : v === "-" ? null : {embedder: v, semanticRatio: Number(ratio.value)}));
    ratio.oninput = () => embedder.value && embedder.value !== "-" && set("hybrid", {embedder: embedder.value, semanticRatio: Number(ratio.value)});
    return h("div", {class: "bar"},
      field("Words that must match", select([["", "as the search"], ["last", "last: the last ones may lack"], ["all", "all"], ["frequency", "frequency: frequent ones may lack"]], side.matchingStrategy ?? "", v => set("matchingStrategy", v))),
      field("Only in these fields", h("input", {placeholder: "title, text", spellcheck: false, onchange: event => set("attributesToSearchOn", event.target.value ? event.target.value.split(",").map(v => v.trim()).filter(Boolean) : undefined)})),
      field("Score at least", h("input", {type: "number", min: 0, max: 1, step: 0.05, onchange: event => set("rankingScoreThreshold", event.target.value === "" ? undefined : Number(event.target.value))})),
      known.sortable.length > 0 && field("Order", select([["", "as the search"], ...known.sortable.flatMap(a => [`${a}:asc`, `${a}:desc`])], "", v => set("sort", v ? [v] : undefined))),
      embedders.length > 0 && [field("Meaning", embedder), field("Words … meaning", ratio)]);
  }

  const typed = h("input", {type: "search", value: base.q, "aria-label": "Search", oninput: () => { base.q = typed.value; run(); }});
  show("Two ways, side by side", h("p", {class: "soft"},
    "The index stays as it is. What a search can choose is compared here; ranking rules, typo tolerance and other settings belong to the index, and changing them is on the page Settings, which says what is indexed again."),
  h("div", {class: "bar"}, typed), h("div", {class: "sides"}, sides.map((side, i) => h("section", {"aria-label": i === 0 ? "Left" : "Right"}, controls(side), outs[i])))).classList.add("wide");
  run();
}
