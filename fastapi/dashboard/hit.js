// How a document is shown: fields folded, marks of what matched, pictures on demand, and why it stands where it does.
import {apart, brief, h} from "./dom.js";

// Marks stand between characters that no text has; tags could be a document's own.
export const before = "\ue000", after = "\ue001";
const folded = 6; // fields that are shown at first
const longest = 400; // characters of a value that are shown at first
const short = 30; // characters of a value that may stand beside others

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

const pictureName = /(image|img|photo|picture|poster|thumb|thumbnail|cover|avatar|logo)s?([_.-]?(url|uri|link|src))?$/i;

/** isPicture recognises pictures by what they hold: data: addresses, names of files and of hosts; else by the name of the field. */
export function isPicture(name, text) {
  if (typeof text !== "string") return false;
  if (/^data:image\/(png|jpeg|gif|webp|avif|svg\+xml)[;,]/.test(text)) return true;
  return /^https?:\/\/[^\s/]+\/\S*$/.test(text) && (/\.(png|jpe?g|gif|webp|svg|avif)([?#]|$)/i.test(text) || pictureName.test(name) ||
    /^https?:\/\/([^/]+\.)?(images?|img|photos?|pics)[.\d-][^/]*\//i.test(text) || /\/image\/upload\/|[?&](fm|format)=(jpe?g|png|webp|avif)/i.test(text));
}

/** pictureOf finds the first picture of a document: the field and the address. */
export function pictureOf(document) {
  for (const [name, value] of Object.entries(document)) {
    if (name.startsWith("_")) continue;
    for (const item of Array.isArray(value) ? value.slice(0, 3) : [value]) {
      const address = item && typeof item === "object" ? item.url ?? item.src : item;
      if (isPicture(name, address)) return {name, address};
    }
  }
  return null;
}

/** dateOf reads a number as a time, where the name of its field says that it is one. */
function dateOf(name, n) {
  if (typeof n !== "number" || !/(at|date|time|timestamp|since|until|published|released|created|updated)$/i.test(name)) return "";
  const ms = n > 3e8 && n < 5e9 ? n * 1000 : n > 3e11 && n < 5e12 ? n : 0;
  return ms ? new Date(ms).toISOString().slice(0, 10) : "";
}

/** value is a dd with a value of a document; plain is the same without marks. It has no more elements than it needs: there are many. */
function value(name, shown, plain) {
  const text = typeof shown === "string" ? shown : JSON.stringify(shown, null, 1), date = dateOf(name, plain);
  if (Array.isArray(shown) && shown.every(v => typeof v !== "object")) {
    return h("dd", null, h("ul", {class: "values"}, shown.slice(0, 30).map(v => h("li", {dir: "auto"}, marked(brief(String(v), longest)))), shown.length > 30 && h("li", {class: "soft"}, `and ${shown.length - 30} more`)));
  }
  const pictured = isPicture(name, plain), most = pictured ? 80 : longest, pieces = marked(brief(text, most)), long = text.length > most;
  if (!long && !pictured) return h("dd", {class: "value", dir: "auto"}, pieces, date && h("span", {class: "soft"}, ` (${date})`));
  const node = h("span", {class: "value", dir: "auto"}, pieces), box = h("dd", null, node);
  if (long) {
    box.append(h("button", {type: "button", class: "link", onclick: event => {
      node.replaceChildren(...marked(text.slice(0, 200000)));
      event.target.remove();
    }}, "all of it"));
  }
  if (pictured) box.append(h("button", {type: "button", class: "link", onclick: event => event.target.replaceWith(h("img", {src: plain, alt: name, loading: "lazy", referrerPolicy: "no-referrer"}))}, "show picture"));
  return box;
}

/** titleField names the field that people know a document by; undefined where it has none. */
const titleField = hit => ["title", "name", "label", "heading"].find(name => typeof hit[name] === "string" && hit[name] !== "");

/** titleOf is what people call a document: its title or name where it has one, else its id. */
export function titleOf(hit, key) {
  const field = titleField(hit);
  if (field) return hit[field].slice(0, 120);
  return textOf((key && hit[key]) ?? Object.values(hit)[0]).slice(0, 120);
}

/**
 * hitBox is a hit with what can be done with it. options: key (name of the primary key), fields (those to show first), actions,
 * pictures (whether to show one), rank, marks (what the head tells besides), stored (a document as it is kept, whose members are all its own).
 */
export function hitBox(hit, {key, fields, actions, pictures, rank, marks, stored}) {
  const shown = stored ? hit : hit._formatted ?? hit;
  let names = Object.keys(shown).filter(name => stored ? name !== "_vectors" : !name.startsWith("_") || name === "_geo");
  if (fields?.length) names = fields.filter(name => Object.hasOwn(shown, name));
  else if (key && names.includes(key)) names = [key, ...names.filter(name => name !== key)];
  const picture = pictures && pictureOf(hit), titled = !stored && !fields?.length && titleField(hit);
  if (titled) names = names.filter(name => name !== titled); // the head has it
  if (picture && !fields?.length) names = [...names.filter(name => name !== picture.name), picture.name].filter(name => Object.hasOwn(shown, name));
  const list = h("dl"), isWide = name => (textOf(hit[name]) ?? "").length > short && name !== picture?.name;
  const add = name => {
    const dd = value(name, shown[name], hit[name]), wide = isWide(name) && "wide";
    if (wide) dd.classList.add(wide);
    if (!stored) dd.classList.add("flow"); // a hit is looked over: lines as long as they can be, so that more hits are in view
    list.append(h("dt", {dir: "auto", class: wide}, brief(name)), dd);
  };
  // What matched is never folded away.
  const matched = name => !stored && (JSON.stringify(shown[name]) ?? "").includes(before);
  const first = names.filter((name, i) => name !== picture?.name && (i < folded || matched(name))), more = names.filter(name => !first.includes(name));
  if (!stored && !fields?.length) first.sort((a, b) => isWide(a) - isWide(b)); // short ones share lines
  first.forEach(add);
  const box = h("article", {class: "hit"}, h("div", {class: "head"},
    h("h2", {dir: "auto"}, rank !== undefined && h("span", {class: "soft"}, rank + ". "), titled && typeof shown[titled] === "string" ? marked(brief(shown[titled], 120)) : titleOf(hit, key)), marks,
    !stored && hit._rankingScore !== undefined && h("span", {class: "score", title: "ranking score"}, hit._rankingScore.toFixed(4)), actions), list, h("div", {class: "foot"}));
  if (picture) {
    box.classList.add("pictured");
    box.prepend(h("img", {class: "thumb", src: picture.address, alt: "", loading: "lazy", decoding: "async", referrerPolicy: "no-referrer", onerror: event => {
      event.target.remove();
      box.classList.remove("pictured");
    }}));
  }
  if (more.length) {
    box.lastChild.append(h("button", {type: "button", class: "link", onclick: event => {
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
