// How a document is shown: fields folded, marks of what matched, pictures on demand, and why it stands where it does.
import {apart, brief, count, h} from "./dom.js";

// Marks stand between characters that no text has; tags could be a document's own.
export const before = "\ue000", after = "\ue001";
const folded = 6; // fields that are shown at first
const longest = 400; // characters of a value that are shown at first
const short = 45; // characters of a value that may stand beside others
const glance = 200; // characters of a text that always fit into the lines that are shown at first
const titleLength = 120; // characters
const line = 45; // characters of the values of a list that are shown at first

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

/** valuesOf are the values of a list as elements, at most 30 of them; rest is how many more there are. */
const valuesOf = (values, rest) => h("ul", {class: "values"}, values.slice(0, 30).map(v => h("li", {dir: "auto"}, marked(brief(String(v), longest)))), rest > 0 && h("li", {class: "soft"}, `and ${count(rest)} more`));

const isList = value => Array.isArray(value) && value.every(v => typeof v !== "object");

/** firstOf are the values of a list that are shown at first: those that matched, then others, as many as fit into a line. */
function firstOf(values) {
  const matches = v => String(v).includes(before);
  let length = 0;
  return [...values.filter(matches), ...values.filter(v => !matches(v))].filter((v, i) => (length += String(v).length) <= line || i === 0);
}

const clamped = new WeakMap(); // nodes with a value that may be clamped, and what offers all of it
const watch = new ResizeObserver(entries => requestAnimationFrame(() => { // later: what is added may change sizes again
  for (const {target} of entries) if (target.isConnected && target.scrollHeight > target.clientHeight + 1) clamped.get(target)?.();
}));

/** value is a dd with a value of a document; plain is the same without marks. It has no more elements than it needs: there are many. */
function value(name, shown, plain) {
  const isText = typeof shown === "string", whole = isText ? shown : JSON.stringify(shown, null, 1), text = isText ? shown : whole.replace(/\n */g, " "), date = dateOf(name, plain);
  if (isList(shown)) return h("dd", null, valuesOf(shown, shown.length - 30));
  const pictured = isPicture(name, plain), most = pictured ? 80 : longest, pieces = marked(brief(text, most)), long = text.length > most;
  if (!long && !pictured) return h("dd", {class: "value", dir: "auto"}, pieces, date && h("span", {class: "soft"}, ` (${date})`));
  const node = h("span", {class: "value", dir: "auto"}, pieces), box = h("dd", null, node);
  if (long) {
    box.append(h("button", {type: "button", class: "link", onclick: event => {
      node.replaceChildren(...marked(whole.slice(0, 200000)));
      event.target.remove();
    }}, "Show all"));
  }
  if (pictured) box.append(h("button", {type: "button", class: "link", onclick: event => event.target.replaceWith(h("img", {src: plain, alt: name, loading: "lazy", referrerPolicy: "no-referrer"}))}, "Show picture"));
  return box;
}

/** titleField names the field that people know a document by; undefined where it has none. */
const titleField = hit => ["title", "name", "label", "heading"].find(name => typeof hit[name] === "string" && hit[name] !== "");

/** titleOf is what people call a document: its title or name where it has one, else its id. */
export function titleOf(hit, key) {
  const field = titleField(hit);
  if (field) return hit[field].slice(0, titleLength);
  return textOf((key && hit[key]) ?? Object.values(hit)[0]).slice(0, titleLength);
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
  if (titled && hit[titled].length <= titleLength) names = names.filter(name => name !== titled); // the head has it
  if (picture && !fields?.length) names = [...names.filter(name => name !== picture.name), picture.name].filter(name => Object.hasOwn(shown, name));
  const list = h("dl", {class: stored ? null : "brief"});
  const isLong = (name, whole) => name !== picture?.name && (!whole && isList(shown[name]) ? firstOf(shown[name]).join("").length > line : (textOf(hit[name]) ?? "").length > short);
  /** full is the value of a field with its marks, or without them where the server has cropped it. */
  const full = name => typeof shown[name] === "string" && typeof hit[name] === "string" && shown[name].replaceAll(before, "").replaceAll(after, "") !== hit[name] ? hit[name] : shown[name];
  /** add puts a field into the list: with all of its value, or as much as is seen at a glance. */
  const add = (name, whole) => {
    const label = h("dt", {dir: "auto"}, brief(name));
    if (whole) {
      const dd = value(name, full(name), hit[name]);
      for (const node of isLong(name, true) ? [label, dd] : []) node.classList.add("wide");
      return list.append(label, dd);
    }
    if (isList(shown[name])) {
      const values = firstOf(shown[name]);
      return list.append(h("div", {class: isLong(name) && "wide"}, label, h("dd", null, valuesOf(values, shown[name].length - values.length))));
    }
    list.append(h("div", {class: isLong(name) && "wide"}, label, value(name, shown[name], hit[name])));
  };
  const ranked = Object.keys(hit._rankingScoreDetails ?? {score: 1}).length > 0; // else all have the same score
  // What matched is never folded away.
  const matched = name => !stored && (JSON.stringify(shown[name]) ?? "").includes(before);
  const first = names.filter((name, i) => name !== picture?.name && (i < folded || matched(name))), more = names.filter(name => !first.includes(name));
  if (more.length === 1 && more[0] !== picture?.name) first.push(more.pop()); // it takes no more room than the button
  if (!stored && !fields?.length) first.sort((a, b) => isLong(a) - isLong(b)); // short ones share lines
  first.forEach(name => add(name, stored));
  const box = h("article", {class: "hit"}, h("div", {class: "head"},
    h("h2", {dir: "auto"}, rank !== undefined && h("span", {class: "soft"}, rank + ". "), titled && typeof shown[titled] === "string" ? marked(brief(shown[titled], titleLength)) : titleOf(hit, key)), marks,
    !stored && hit._rankingScore !== undefined && ranked && h("span", {class: "score", title: "ranking score"}, hit._rankingScore.toFixed(4)), actions), list, h("div", {class: "foot"}));
  if (picture) {
    box.classList.add("pictured");
    box.prepend(h("img", {class: "thumb", src: picture.address, alt: "", loading: "lazy", decoding: "async", referrerPolicy: "no-referrer", onerror: event => {
      event.target.remove();
      box.classList.remove("pictured");
    }}));
  }
  const isCut = name => isList(shown[name]) ? firstOf(shown[name]).length < shown[name].length : name !== picture?.name && (textOf(hit[name]) ?? "").length > glance;
  let offered = false;
  /** offer adds the button that shows the fields that are folded away, and lists and texts that were cut. */
  const offer = () => {
    if (offered) return;
    offered = true;
    box.querySelector(":scope > .foot").prepend(h("button", {type: "button", class: "link", onclick: event => {
      if (!stored) {
        list.className = "";
        list.replaceChildren();
        first.forEach(name => add(name, true));
      }
      more.forEach(name => add(name, true));
      event.target.remove();
    }}, more.length === 0 ? "Show all" : more.length === 1 ? "1 more field" : `${more.length} more fields`));
  };
  if (more.length || !stored && first.some(isCut)) offer();
  else if (!stored) {
    for (const node of list.querySelectorAll(".value")) {
      clamped.set(node, offer);
      watch.observe(node);
    }
  }
  return box;
}

/** columnsOf are the fields of hits that a table shows: those that were chosen, or the id, the title and the first others. */
export function columnsOf(hits, key, fields) {
  if (fields.length) return fields;
  const title = hits[0] && titleField(hits[0]), names = [key, title, ...hits.flatMap(hit => Object.keys(hit).filter(name => !name.startsWith("_")))];
  return [...new Set(names.filter(Boolean))].slice(0, folded + 1);
}

/** cell is the td of a field of a hit in a table, with its marks. */
export function cell(hit, name) {
  const shown = (hit._formatted ?? hit)[name], values = isList(shown) && firstOf(shown);
  if (values) return h("td", {dir: "auto", class: "name"}, values.map((v, i) => [i > 0 && ", ", marked(brief(String(v), line))]), shown.length > values.length && h("span", {class: "soft"}, ` and ${count(shown.length - values.length)} more`));
  return h("td", {dir: "auto", class: typeof hit[name] === "number" ? "number" : (textOf(hit[name]) ?? "").length > line && "long"}, shown === undefined ? "" : marked(brief(textOf(shown), 2 * line)));
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
