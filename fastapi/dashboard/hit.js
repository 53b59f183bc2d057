// How a document is shown: fields folded, marks of what matched, pictures on demand, and why it stands where it does.
import {apart, brief, h} from "./dom.js";

// Marks stand between characters that no text has; tags could be a document's own.
export const before = "\ue000", after = "\ue001";
const folded = 6; // fields that are shown at first
const longest = 400; // characters of a value that are shown at first
const short = 60; // characters of a value that may stand beside others

/** marked shows a text with its marks. */
export function marked(text) {
  const pieces = [];
  for (const [i, piece] of text.split(before).entries()) {
    const end = i > 0 ? piece.indexOf(after) : -1;
    if (end >= 0) pieces.push(h("mark", null, piece.slice(0, end)));
    pieces.push(piece.slice(end + 1).replaceAll(after, ""));
  }
  return pieces;
}

/** textOf is a value of a document as a text, with all digits where it is a number that was kept whole. */
export const textOf = value => typeof value === "string" ? value : JSON.stringify(value) ?? "";

/** value is a dd with a value of a document; plain is the same without marks. It has no more elements than it needs: there are many. */
function value(name, shown, plain, pictures) {
  const text = typeof shown === "string" ? shown : JSON.stringify(shown, null, 1);
  if (Array.isArray(shown) && shown.every(v => typeof v !== "object")) {
    return h("dd", null, h("ul", {class: "values"}, shown.slice(0, 30).map(v => h("li", {dir: "auto"}, marked(brief(String(v), longest)))), shown.length > 30 && h("li", {class: "soft"}, `and ${shown.length - 30} more`)));
  }
  const pieces = marked(brief(text, longest)), long = text.length > longest;
  const pictured = typeof plain === "string" && /^https?:\/\/\S+\.(png|jpe?g|gif|webp|svg|avif)(\?\S*)?$/i.test(plain);
  if (!long && !pictured) return h("dd", {class: "value", dir: "auto"}, pieces);
  const node = h("span", {class: "value", dir: "auto"}, pieces), box = h("dd", null, node);
  if (long) {
    box.append(h("button", {type: "button", class: "link", onclick: event => {
      node.replaceChildren(...marked(text.slice(0, 200000)));
      event.target.remove();
    }}, "all of it"));
  }
  if (pictured) {
    const picture = () => h("img", {src: plain, alt: name, loading: "lazy", referrerPolicy: "no-referrer"});
    box.append(pictures ? picture() : h("button", {type: "button", class: "link", onclick: event => event.target.replaceWith(picture())}, "show picture"));
  }
  return box;
}

/** titleOf is what people call a document: its title or name where it has one, else its id. */
export function titleOf(hit, key) {
  for (const name of ["title", "name", "label", "heading"]) if (typeof hit[name] === "string" && hit[name] !== "") return hit[name].slice(0, 120);
  return textOf((key && hit[key]) ?? Object.values(hit)[0]).slice(0, 120);
}

/**
 * hitBox is a hit with what can be done with it. options: key (name of the primary key), fields (those to show first), actions,
 * pictures, rank, stored (a document as it is kept, whose members are all its own).
 */
export function hitBox(hit, {key, fields, actions, pictures, rank, stored}) {
  const shown = stored ? hit : hit._formatted ?? hit;
  let names = Object.keys(shown).filter(name => stored ? name !== "_vectors" : !name.startsWith("_") || name === "_geo");
  if (fields?.length) names = fields.filter(name => Object.hasOwn(shown, name));
  else if (key && names.includes(key)) names = [key, ...names.filter(name => name !== key)];
  const list = h("dl");
  const add = name => {
    const dd = value(name, shown[name], hit[name], pictures), wide = (textOf(hit[name]) ?? "").length > short && "wide";
    if (wide) dd.classList.add(wide);
    list.append(h("dt", {dir: "auto", class: wide}, brief(name)), dd);
  };
  // What matched is never folded away.
  const matched = name => !stored && (JSON.stringify(shown[name]) ?? "").includes(before);
  const first = names.filter((name, i) => i < folded || matched(name)), more = names.filter(name => !first.includes(name));
  first.forEach(add);
  const box = h("article", {class: "hit"}, h("div", {class: "head"},
    h("h2", {dir: "auto"}, rank !== undefined && h("span", {class: "soft"}, rank + ". "), titleOf(hit, key)),
    !stored && hit._rankingScore !== undefined && h("span", {class: "score", title: "ranking score"}, hit._rankingScore.toFixed(4)), actions), list);
  if (more.length) {
    box.append(h("button", {type: "button", class: "link", onclick: event => {
      more.forEach(add);
      event.target.remove();
    }}, more.length === 1 ? "1 more field" : `${more.length} more fields`));
  }
  return box;
}

/** why draws the details of a score, rule by rule, in the order in which they count. */
export function why(details) {
  const rules = Object.entries(details ?? {}).filter(([, d]) => d && typeof d === "object").sort(([, a], [, b]) => (a.order ?? 0) - (b.order ?? 0));
  if (rules.length === 0) return h("p", {class: "soft"}, "Nothing was ranked: all documents that match stand in the order of their ids.");
  return h("ol", {class: "why"}, rules.map(([name, d]) => {
    const facts = Object.entries(d).filter(([k]) => !["order", "score"].includes(k)).map(([k, v]) => brief(`${k}: ${typeof v === "object" ? JSON.stringify(v) : v}`, 200));
    return h("li", null, h("span", {class: "rule", dir: "auto"}, brief(name)),
      typeof d.score === "number" ? h("meter", {min: 0, max: 1, value: d.score, title: String(d.score), "aria-label": `${brief(name)}: ${d.score.toFixed(3)} of 1`}) : h("span", {class: "soft"}, "orders, and does not score"),
      typeof d.score === "number" && h("span", {class: "number"}, d.score.toFixed(3)), h("span", {class: "soft facts"}, apart(facts, " · ")));
  }));
}
