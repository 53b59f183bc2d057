// Search rules: pin, boost or hide documents from a hit, and the list of rules with what they do and when.
import {enabled} from "./features.js";
import {ask, ended, indexPath} from "./api.js";
import {indexes} from "./indexes.js";
import {brief, count, field, h, json, later, say, select, show, svg} from "./dom.js";
import {titleOf} from "./hit.js";

const path = uid => "/dynamic-search-rules/" + encodeURIComponent(uid);

/** list gives the rules, at most 1,000 of them; those with a text in their description or words, where one is given. */
const list = async (query, signal) => (await ask("/dynamic-search-rules", {body: {limit: 1000, ...query && {filter: {query}}}, signal})).results;

/** plan is a rule of any version of the API in one form: conditions as an object, pins and scales as lists. */
function plan(rule) {
  const conditions = Array.isArray(rule.conditions) ? Object.fromEntries(rule.conditions.map(({scope, ...rest}) => [scope, rest])) : rule.conditions ?? {};
  const actions = Array.isArray(rule.actions) ? rule.actions.map(({selector, action}) => ({...selector, ...action})) : [];
  const scales = Array.isArray(rule.actions) ? actions.filter(a => a.type === "scale").map(a => ({...a, ids: a.ids ?? (a.id === undefined ? undefined : [a.id]), weight: a.weight ?? a.factor})) : rule.actions?.scale ?? [];
  return {conditions, scales, pins: Array.isArray(rule.actions) ? actions.filter(a => a.type === "pin") : rule.actions?.pin ?? [],
    older: Array.isArray(rule.conditions) || Array.isArray(rule.actions)};
}

/** nameOf is what people call a rule. */
const nameOf = rule => rule.description || rule.uid;

/** send writes a rule and waits until it is in effect. */
async function send(uid, rule) {
  const answer = await ask(path(uid), {method: "PATCH", body: rule});
  if (answer?.taskUid === undefined) return;
  const done = await ended(answer);
  if (done.error) throw new Error(done.error.message);
}

/** agreed switches rules on where they are off; false where people do not want that. */
async function agreed() {
  let features;
  try {
    features = await ask("/experimental-features");
  } catch (error) {
    if (error.status !== 403) throw error;
    return true; // this key may not know
  }
  if (features.dynamicSearchRules) return true;
  if (!confirm("Search rules are off on this server. Switch the experimental feature on?")) return false;
  await ask("/experimental-features", {method: "PATCH", body: {dynamicSearchRules: true}});
  return true;
}

/** holds reports whether a condition on the query holds; undefined where only the server knows. */
function holds({query}, q) {
  if (!query) return true;
  const fold = text => text.normalize("NFKC").toLowerCase();
  if (query.isEmpty !== undefined) return query.isEmpty === (q.trim() === "");
  if (query.contains !== undefined) return fold(q).includes(fold(query.contains));
  const words = text => fold(text).split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  return words(query.words ?? "").every(word => words(q).includes(word));
}

/** inTime is "now", "later", "over" or "off". */
function inTime(rule, {conditions}, now = Date.now()) {
  const {start, end} = conditions.time ?? {};
  return rule.active === false ? "off" : start && Date.parse(start) > now ? "later" : end && Date.parse(end) < now ? "over" : "now";
}

/** rulesThat gives the rules that pin a document for a query, that with the highest precedence first. A key that may not read rules gets none. */
async function rulesThat(index, id, q, signal, now) {
  let rules;
  try {
    rules = await list("", signal);
  } catch (error) {
    if (error.status !== 403) throw error;
    return [];
  }
  const rank = rule => rule.precedence ?? rule.priority ?? Infinity;
  return rules.filter(rule => {
    const p = plan(rule);
    return inTime(rule, p, now) === "now" && holds(p.conditions, q) && p.pins.some(pin => String(pin.id) === String(id) && (pin.indexUid ?? index) === index);
  }).sort((a, b) => rank(a) - rank(b) || (a.uid < b.uid ? -1 : 1));
}

/** whichRules tells which rules moved a hit; nothing where none did. */
export async function whichRules(details, {index, id, q, now}, signal) {
  const link = (uid, name) => h("a", {href: "#/rules?" + new URLSearchParams({q: uid})}, brief(name, 80));
  const lines = [];
  if (details?.pin) {
    const [first] = await rulesThat(index, id, q, signal, now);
    lines.push(h("p", null, first ? ["Pinned by the rule ", link(first.uid, nameOf(first)), "."] : "Pinned by a rule."));
  }
  const scaled = details?.scale?.rules;
  if (scaled?.length) lines.push(h("p", null, `Its score is multiplied by ${details.scale.factor}, by the ${scaled.length > 1 ? "rules" : "rule"} `, scaled.map((uid, i) => [i > 0 && ", ", link(uid, uid)]), "."));
  return lines;
}

/** local writes a moment as controls of dates take it. */
export const local = text => text ? new Date(Date.parse(text) - new Date(text).getTimezoneOffset() * 60000).toISOString().slice(0, 16) : "";

/** firstMinute is a full minute in which a scheduled rule is active, for a preview; "" for other rules. */
const firstMinute = (rule, p) => inTime(rule, p) === "later" ? new Date(Math.ceil(Date.parse(p.conditions.time.start) / 60000) * 60000).toISOString() : "";

/** conditionFields are the controls of when a rule applies. read gives them as the API takes them. */
function conditionFields(conditions) {
  const q = conditions.query ?? {}, kind = q.isEmpty === true ? "empty" : q.words !== undefined ? "words" : q.contains !== undefined ? "contains" : "";
  const text = h("input", {value: q.words ?? q.contains ?? "", placeholder: "winter coat", dir: "auto"}), start = h("input", {type: "datetime-local", value: local(conditions.time?.start)}), end = h("input", {type: "datetime-local", value: local(conditions.time?.end)});
  const values = h("input", {value: conditions.filter?.values ? JSON.stringify(conditions.filter.values) : "", placeholder: '{"brand": "acme"}', spellcheck: false});
  const texts = field("Text of the query", text), when = select([["", "always"], ["contains", "the query contains"], ["words", "the query has the words"], ["empty", "nothing is typed"]], kind, v => { texts.hidden = v === "" || v === "empty"; });
  texts.hidden = kind === "" || kind === "empty";
  return {
    node: [h("div", {class: "bar"}, field("When", when), texts), h("details", {open: !!(conditions.time || conditions.filter)}, h("summary", null, "Dates and filters"), h("div", {class: "bar"}, field("From", start), field("Until", end), field("Only if the filter has these values", values, true)))],
    read() {
      const conditions = {}, moment = input => input.value && new Date(input.value).toISOString();
      if (when.value === "empty") conditions.query = {isEmpty: true};
      else if (when.value) {
        if (!text.value.trim()) throw new Error("Enter the text of the query, or choose another condition.");
        conditions.query = {[when.value]: text.value.trim()};
      }
      if (start.value || end.value) conditions.time = {...start.value && {start: moment(start)}, ...end.value && {end: moment(end)}};
      if (values.value.trim()) conditions.filter = {values: JSON.parse(values.value)};
      return conditions;
    },
  };
}

/** newUID makes a uid from a text. */
const newUID = text => `${text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "rule"}-${Date.now().toString(36)}`;

const deeds = {
  pin: ["Pin", title => `Pin “${title}”`], boost: ["Boost", title => `Boost “${title}”`], bury: ["Demote", title => `Demote “${title}”`], hide: ["Hide", title => `Hide “${title}”`],
};

/** promote asks how and when a hit is to be pinned, boosted or hidden, and writes the rule. done is called when it is in effect. */
export async function promote(deed, {index, id, title, rank, q}, done) {
  if (!await agreed()) return;
  const rules = (await list("")).map(rule => [rule, plan(rule)]).filter(([, p]) => !p.older);
  const fits = rules.find(([, {conditions: c}]) => !c.time && !c.filter && (q.trim() ? (c.query?.contains ?? c.query?.words) === q.trim() : c.query?.isEmpty === true));
  const place = h("input", {type: "number", min: 1, value: rank, required: true}), weight = h("input", {type: "number", min: 0.01, step: "any", value: deed === "bury" ? 0.5 : 2, required: true});
  const conditions = conditionFields(q.trim() ? {query: {contains: q.trim()}} : {query: {isEmpty: true}}), fresh = h("div", null, conditions.node);
  const rule = select([["", "new rule"], ...rules.map(([r]) => [r.uid, brief(nameOf(r), 60)])], fits?.[0].uid ?? "", v => { fresh.hidden = v !== ""; });
  fresh.hidden = !!fits;
  const dialog = show(deeds[deed][1](brief(title, 60)), h("form", {onsubmit: async event => {
    event.preventDefault();
    const found = rules.find(([r]) => r.uid === rule.value), old = found?.[1] ?? {pins: [], scales: []};
    const mine = other => (other.indexUid ?? index) === index && String(other.id) === String(id);
    let pin = old.pins.filter(other => !mine(other));
    const factor = deed === "hide" ? 0 : Number(weight.value);
    // The document leaves the other scales of this rule, which would count as well.
    let scale = old.scales.map(other => other.indexUid === index && other.ids ? {...other, ids: other.ids.filter(other => String(other) !== String(id))} : other).filter(other => !other.ids || other.ids.length);
    if (deed === "pin") { // pins of this rule that stand there move down
      let taken = Number(place.value) - 1;
      pin = [{indexUid: index, id: String(id), position: taken}, ...pin.toSorted((a, b) => a.position - b.position).map(other =>
        other.position === taken && (other.indexUid ?? index) === index ? {...other, position: ++taken} : other)];
    }
    else {
      const same = scale.find(other => other.indexUid === index && other.weight === factor && other.ids && !other.filter);
      scale = same ? scale.map(other => other === same ? {...same, ids: [...same.ids, String(id)]} : other) : [...scale, {indexUid: index, ids: [String(id)], weight: factor}];
    }
    if (found) await send(rule.value, {actions: {pin, scale}});
    else {
      const read = conditions.read(), text = read.query?.contains ?? read.query?.words;
      await send(newUID(text ?? (read.query?.isEmpty ? "empty-query" : "always")), {description: text ? `Search for “${text}”` : read.query?.isEmpty ? "Empty query" : "Every search", conditions: read, actions: {pin, scale}});
    }
    dialog.close();
    await done();
    say(`${deeds[deed][0]}: ${brief(title, 60)}. The rule is in effect.`);
  }}, h("div", {class: "bar"}, deed === "pin" && field("Place among the hits", place), (deed === "boost" || deed === "bury") && field("Multiply its score by", weight), field("Rule", rule)), fresh, h("p", {class: "bar"}, h("button", {class: "main"}, deeds[deed][0]))));
  (dialog.querySelector("form:not(.head) input") ?? dialog.querySelector("select")).focus();
}

/** unpin takes a hit out of the rule that pins it. */
async function unpin({index, id, title, q}, done) {
  const [rule] = await rulesThat(index, id, q);
  if (!rule) throw new Error("The rule that pins this hit is not known. Look for it in Rules.");
  const p = plan(rule);
  if (p.older) throw new Error(`The rule ${nameOf(rule)} has the form of API version 1.42. Edit it in Rules.`);
  await send(rule.uid, {actions: {pin: p.pins.filter(pin => String(pin.id) !== String(id) || (pin.indexUid ?? index) !== index), scale: p.scales}});
  await done();
  say(`${brief(title, 60)} is not pinned by the rule ${brief(nameOf(rule), 60)} any more.`);
}

/** promotions are the choices of a menu on a hit. */
export const promotions = (hit, done) => [hit.pinned && ["Unpin", () => unpin(hit, done)], ["Pin here", () => promote("pin", hit, done)], hit.rank > 1 && ["Pin to the top", () => promote("pin", {...hit, rank: 1}, done)],
  ["Boost", () => promote("boost", hit, done)], ["Demote", () => promote("bury", hit, done)], ["Hide", () => promote("hide", hit, done)]];

const states = {now: ["Active", "succeeded"], later: ["Scheduled", ""], over: ["Over", ""], off: ["Off", ""]};

/** whenText tells when a rule applies. */
function whenText({conditions: {query, time, filter}}) {
  const day = text => new Date(text).toLocaleString([], {dateStyle: "medium", timeStyle: "short"});
  return [query?.isEmpty === true ? "nothing is typed" : query?.isEmpty === false ? "something is typed" : query?.words !== undefined ? `the query has the words “${query.words}”` : query?.contains !== undefined ? `the query contains “${query.contains}”` : "",
    time?.start && `from ${day(time.start)}`, time?.end && `until ${day(time.end)}`, filter?.values && `the filter has ${brief(JSON.stringify(filter.values), 100)}`].filter(Boolean).join(", ") || "always";
}

const before = 14, days = 120; // of the calendar: before today, and in all

/** calendar draws when rules with dates apply, a line each. */
function calendar(rules) {
  const now = new Date(), midnight = away => +new Date(now.getFullYear(), now.getMonth(), now.getDate() + away); // a day may have 23 or 25 hours
  const today = midnight(0), from = midnight(-before), to = midnight(days - before), at = time => (time - from) / (to - from) * 1000;
  const day = time => new Date(time).toLocaleDateString([], {dateStyle: "medium"}), dated = rules.map(rule => [rule, plan(rule)]).filter(([, p]) => p.conditions.time?.start || p.conditions.time?.end);
  if (dated.length === 0) return "";
  const months = [];
  for (const month = new Date(new Date(from).getFullYear(), new Date(from).getMonth() + 1, 1); +month < to; month.setMonth(month.getMonth() + 1)) months.push(+month);
  const grid = () => [...months.map(time => svg("line", {x1: at(time), x2: at(time), y1: 0, y2: 24})), svg("line", {x1: at(today), x2: at(today), y1: 0, y2: 24, class: "today"})];
  const startOf = ({conditions: {time}}) => time.start ? Date.parse(time.start) : -Infinity;
  const row = ([rule, p]) => {
    const {time} = p.conditions, start = startOf(p), end = time.end ? Date.parse(time.end) : Infinity, x = Math.max(at(start), 0), width = Math.min(at(end), 1000) - x;
    const told = [time.start && `from ${day(start)}`, time.end && `until ${day(end)}`].filter(Boolean).join(" ");
    return h("tr", null, h("th", {scope: "row", dir: "auto"}, brief(nameOf(rule), 60)), h("td", {class: "soft time"}, told), h("td", null, svg("svg", {viewBox: "0 0 1000 24", preserveAspectRatio: "none", class: "days", role: "img", "aria-label": told},
      grid(), width > 0 ? svg("rect", {x, y: 5, width: Math.max(width, 4), height: 14, class: inTime(rule, p)}, svg("title", null, told)) : "")));
  };
  const heads = h("div", {class: "months"}, months.map(time => {
    const month = h("span", null, new Date(time).toLocaleDateString([], {month: "short"}));
    month.style.left = at(time) / 10 + "%";
    return at(time) < 950 ? month : "";
  }));
  return h("section", {class: "dated"}, h("h2", null, "Calendar"), h("p", {class: "soft"}, `From ${day(from)} to ${day(to)}. The thick line is today.`),
    h("div", {class: "scroll", tabIndex: 0}, h("table", {class: "calendar"}, h("thead", null, h("tr", null, h("th", {scope: "col"}, "Rule"), h("th", {scope: "col"}, "Applies"), h("td", null, heads))),
      h("tbody", null, dated.sort(([, a], [, b]) => (startOf(a) > startOf(b)) - (startOf(a) < startOf(b))).slice(0, 100).map(row)))));
}

export async function rulesView({page, state, signal, remember}) {
  const all = await indexes(signal), s = {q: state.get("q") ?? ""};
  const box = h("div"), find = h("input", {type: "search", value: s.q, placeholder: "Find a rule", "aria-label": "Find a rule", oninput: later(() => {
    s.q = find.value.trim();
    return draw();
  }, 200)});
  page.append(h("h1", null, "Rules"), h("p", {class: "about soft"}, "A rule pins, boosts or hides documents for some searches, for some time. The quickest way to one: search, and choose “Pin or hide” on a hit."),
    h("div", {class: "bar"}, find, h("button", {type: "button", class: "main", onclick: async () => await agreed() && edit(null)}, "New rule")), box);

  async function draw() {
    remember({q: s.q});
    let rules = await list("", signal);
    if (signal.aborted) return;
    const wanted = s.q.toLowerCase();
    rules = rules.filter(rule => [rule.uid, rule.description ?? "", JSON.stringify(rule.conditions ?? "")].some(text => text.toLowerCase().includes(wanted)));
    // The titles of the documents that rules name, index by index.
    const named = new Map(), titles = new Map();
    for (const rule of rules) {
      const p = plan(rule);
      for (const [index, id] of [...p.pins.map(pin => [pin.indexUid, pin.id]), ...p.scales.flatMap(scale => (scale.ids ?? []).map(id => [scale.indexUid, id]))]) if (index) named.set(index, (named.get(index) ?? new Set()).add(String(id)));
    }
    await Promise.all([...named].map(async ([index, ids]) => {
      try {
        const found = await ask(indexPath(index, "/documents/fetch"), {body: {ids: [...ids].slice(0, 1000), limit: 1000}, signal}), key = all?.find(other => other.uid === index)?.primaryKey ?? "id";
        for (const doc of found.results) titles.set(index + "\n" + doc[key], titleOf(doc, key));
      } catch (error) {
        if (signal.aborted) throw error; // else the index is gone, or the key may not read it: ids will do
      }
    }));
    const title = (index, id) => h("strong", {dir: "auto"}, titles.get(index + "\n" + id) ?? brief(String(id), 60));
    box.replaceChildren(calendar(rules), ...rules.length ? rules.slice(0, 200).map(rule => card(rule, title)) : [h("p", {class: "empty"}, s.q ? "No rule has this text." : "There is no rule yet.")]);
    if (rules.length > 200) box.append(h("p", {class: "soft"}, `The first 200 of ${count(rules.length)} rules are shown.`));
  }

  function card(rule, title) {
    const p = plan(rule), [text, style] = states[inTime(rule, p)], example = p.conditions.query?.contains ?? p.conditions.query?.words ?? "", index = p.pins[0]?.indexUid ?? p.scales[0]?.indexUid;
    const where = other => other && all?.length !== 1 ? h("span", {class: "soft"}, ` in ${brief(other, 40)}`) : "";
    const change = async body => {
      await send(rule.uid, body);
      await draw();
    };
    return h("article", {class: "hit"}, h("div", {class: "head"}, h("h2", {dir: "auto"}, brief(nameOf(rule), 120)), h("span", {class: "status " + style}, text),
      h("label", {class: "check"}, h("input", {type: "checkbox", checked: rule.active !== false, onchange: event => change({active: event.target.checked})}), " on"),
      index && h("a", {class: "link", href: "#/search?" + new URLSearchParams({index, q: example, ...firstMinute(rule, p) && {at: firstMinute(rule, p)}})}, "Preview"),
      h("button", {type: "button", class: "link", onclick: () => edit(rule)}, "Edit"),
      h("button", {type: "button", class: "link danger", onclick: async () => {
        if (!confirm(`Delete the rule ${nameOf(rule)}?`)) return;
        const answer = await ask(path(rule.uid), {method: "DELETE"});
        if (answer?.taskUid !== undefined) await ended(answer);
        await draw();
        say("Rule deleted.");
      }}, "Delete")),
    h("dl", {class: "narrow"}, h("dt", null, "Condition"), h("dd", {dir: "auto"}, whenText(p)), h("dt", null, "Effect"), h("dd", null, h("ul", {class: "deeds"},
      p.pins.slice(0, 20).map(pin => h("li", null, "pins ", title(pin.indexUid, pin.id), ` at place ${pin.position + 1}`, where(pin.indexUid))), p.pins.length > 20 && h("li", {class: "soft"}, `and ${p.pins.length - 20} more`),
      p.scales.slice(0, 20).map(scale => h("li", null, scale.weight === 0 ? "hides " : scale.weight > 1 ? `boosts (× ${scale.weight}) ` : `demotes (× ${scale.weight}) `,
        scale.ids?.slice(0, 10).map((id, i) => [i > 0 && ", ", title(scale.indexUid, id)]), scale.ids?.length > 10 && ` and ${scale.ids.length - 10} more`, scale.filter && ["what matches ", h("code", null, brief(typeof scale.filter === "string" ? scale.filter : JSON.stringify(scale.filter), 200))], !scale.ids && !scale.filter && "everything", where(scale.indexUid))))),
    (rule.precedence ?? rule.priority) !== undefined && (rule.precedence ?? rule.priority) !== null && [h("dt", null, "Precedence"), h("dd", null, String(rule.precedence ?? rule.priority))]));
  }

  /** edit is the form of a rule, or its JSON where it has the form of v1.42. */
  function edit(rule) {
    const p = plan(rule ?? {});
    if (p.older) {
      const {uid, lastUpdatedAt, ...rest} = rule, text = h("textarea", {rows: 18, value: json(rest), spellcheck: false, "aria-label": "Rule"});
      const dialog = show("Edit " + nameOf(rule), h("p", {class: "soft"}, "This rule has the form of API version 1.42."), text, h("p", null, h("button", {type: "button", class: "main", onclick: async () => {
        await send(uid, JSON.parse(text.value));
        dialog.close();
        await draw();
        say("Rule saved.");
      }}, "Save")));
      return;
    }
    const name = h("input", {value: rule?.description ?? "", placeholder: "Winter sale", required: true, dir: "auto"}), precedence = h("input", {type: "number", min: 0, value: rule?.precedence ?? "", placeholder: "last"}), conditions = conditionFields(p.conditions);
    const uids = all?.map(index => index.uid) ?? [], pins = h("tbody"), scales = h("tbody");
    const cell = control => h("td", null, control), drop = () => h("td", null, h("button", {type: "button", class: "small", "aria-label": "Remove this line", onclick: event => event.target.closest("tr").remove()}, "×"));
    const index = uid => select([["", "any index"], ...[...new Set([...uids, ...uid ? [uid] : []])].map(u => [u, brief(u, 40)])], uid ?? uids[0] ?? "", null, "Index"), input = (label, value, more) => h("input", {"aria-label": label, value: value ?? "", ...more});
    const pinRow = pin => pins.append(h("tr", null, cell(index(pin.indexUid)), cell(input("Id of the document", pin.id)), cell(input("Place", (pin.position ?? 0) + 1, {type: "number", min: 1})), drop()));
    const scaleRow = scale => {
      const row = h("tr", null, cell(index(scale.indexUid)), cell(input("Ids, with commas between them", scale.ids?.join(", "))), cell(input("Filter", scale.filter === undefined ? "" : typeof scale.filter === "string" ? scale.filter : JSON.stringify(scale.filter), {placeholder: "brand = acme", spellcheck: false})), cell(input("Factor", scale.weight, {type: "number", min: 0, step: "any"})), drop());
      scales.append(row);
    };
    p.pins.forEach(pinRow);
    p.scales.forEach(scaleRow);
    const head = names => h("thead", null, h("tr", null, names.map(t => t ? h("th", {scope: "col"}, t) : h("td"))));
    const table = (names, body) => h("div", {class: "scroll", tabIndex: 0}, h("table", {class: "synonyms even"}, head(names), body));
    const dialog = show(rule ? "Edit " + nameOf(rule) : "New rule", h("form", {onsubmit: async event => {
      event.preventDefault();
      const controls = row => [...row.querySelectorAll("input, select")].map(control => control.value.trim());
      const pin = [...pins.rows].map(controls).filter(([, id]) => id).map(([indexUid, id, place]) => ({...indexUid && {indexUid}, id, position: Math.max(0, Number(place) - 1)}));
      const scale = [...scales.rows].map(controls).map(([indexUid, ids, filter, weight]) => ({...indexUid && {indexUid}, ...ids && {ids: ids.split(",").map(id => id.trim()).filter(Boolean)}, ...filter && {filter: filter.startsWith("[") ? JSON.parse(filter) : filter}, weight: Number(weight)}));
      await send(rule?.uid ?? newUID(name.value), {description: name.value, precedence: precedence.value === "" ? null : Number(precedence.value), conditions: conditions.read(), actions: {pin, scale}});
      dialog.close();
      await draw();
      say("Rule saved.");
    }}, h("div", {class: "bar"}, field("Name", name, true), field("Precedence (the lowest wins)", precedence)), conditions.node,
    h("h3", null, "Pins"), table(["Index", "Document id", "Place", ""], pins), h("p", null, h("button", {type: "button", onclick: () => pinRow({})}, "Add pin")),
    h("h3", null, "Boosts and hidden documents"), h("p", {class: "soft"}, "A factor above 1 boosts, below 1 demotes, and 0 hides."), table(["Index", "Document ids", "Filter", "Factor", ""], scales), h("p", null, h("button", {type: "button", onclick: () => scaleRow({weight: 2})}, "Add boost")),
    h("p", {class: "bar"}, h("button", {class: "main"}, "Save rule"))));
  }

  await enabled(box, "dynamicSearchRules", draw);
}
