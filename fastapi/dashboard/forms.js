// Controls for lists, fields, synonyms and typos. Each takes a value and calls changed with the next one; it never changes the value itself.
import {delimiterOf, fromCSV, toCSV} from "./csv.js";
import {brief, count, field, h, later, redraw, save, say} from "./dom.js";

const most = 200; // entries of a long list that are drawn

/** words splits a text at commas and line breaks. */
export const words = text => text.split(/[,\n]/).map(word => word.trim()).filter(Boolean);

/** chips edits a set of texts. Enter or a comma adds what is typed; several lines may be pasted. */
export function chips(value, {label, placeholder, changed, suggestions}) {
  let items = [...value];
  const list = h("ul", {class: "chips"}), known = suggestions && h("datalist", {id: "d" + Math.random().toString(36).slice(2)}, suggestions.map(v => h("option", {value: v})));
  const set = next => {
    items = next;
    draw();
    changed(items);
  };
  const add = () => {
    const more = words(input.value).filter(word => !items.includes(word));
    input.value = "";
    if (more.length) set([...items, ...new Set(more)]);
  };
  const input = h("input", {placeholder, "aria-label": "Add to " + label, spellcheck: false, autocomplete: "off", onkeydown: event => {
    if (event.key === "Enter" || event.key === ",") {
      event.preventDefault();
      add();
    } else if (event.key === "Backspace" && input.value === "" && items.length) set(items.slice(0, -1));
  }, onchange: add, onpaste: event => {
    const text = event.clipboardData.getData("text");
    if (!text.includes("\n")) return;
    event.preventDefault();
    input.value += text;
    add();
  }});
  if (known) input.setAttribute("list", known.id);
  const draw = () => redraw(list, [...items.slice(0, most).map(item => h("li", {class: "chip"}, h("bdi", null, brief(item, 60)),
    h("button", {type: "button", class: "link", "data-at": item, "aria-label": "Remove " + brief(item), onclick: () => set(items.filter(other => other !== item))}, "×"))),
  items.length > most && h("li", {class: "soft"}, `and ${count(items.length - most)} more`)].filter(Boolean));
  draw();
  return h("div", {class: "chipbox"}, list, h("p", {class: "bar"}, input, h("button", {type: "button", onclick: add}, "Add"), known));
}

/**
 * ordered edits a list whose order counts. The grip of an entry takes a drag, and the arrow keys when it has the focus. describe tells
 * of an entry. With groups, neighbours can share a place: such an entry is an array.
 */
export function ordered(value, {label, describe, changed, groups}) {
  let items = [...value];
  const name = item => Array.isArray(item) ? item.join(" = ") : item;
  const list = h("ol", {class: "ordered", "aria-label": label}), told = h("p", {class: "hidden", role: "status"});
  const set = next => {
    items = next;
    draw();
    changed(items);
  };
  const move = (from, to) => {
    if (to < 0 || to >= items.length) return;
    const next = [...items];
    next.splice(to, 0, ...next.splice(from, 1));
    set(next);
    told.textContent = `${name(items[to])} is ${to + 1} of ${items.length} now.`;
  };
  /** drag moves an entry with the pointer: it changes places with those that the pointer passes. */
  const drag = (event, row) => {
    if (event.button !== 0) return;
    const stop = new AbortController(), {signal} = stop; // the document hears it: an element that moves loses the pointer
    event.preventDefault();
    event.currentTarget.focus();
    row.classList.add("dragged");
    document.addEventListener("pointermove", ({clientY}) => {
      const rows = [...list.children], at = rows.indexOf(row);
      const to = rows.findIndex((other, i) => {
        const box = other.getBoundingClientRect();
        return i !== at && clientY > box.top && clientY < box.bottom && (i < at ? clientY < box.top + box.height * 0.6 : clientY > box.top + box.height * 0.4);
      });
      if (to >= 0) rows[to][to < at ? "before" : "after"](row);
    }, {signal});
    const drop = () => {
      stop.abort();
      row.classList.remove("dragged");
      const next = [...list.children].map(other => items[Number(other.dataset.i)]);
      if (next.some((item, i) => item !== items[i])) set(next);
    };
    for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, drop, {signal});
  };
  const draw = () => redraw(list, items.map((item, i) => {
    const small = (text, title, off, f) => h("button", {type: "button", class: "small", "aria-label": `${title}: ${brief(name(item))}`, title, disabled: off, "data-at": title + name(item), onclick: f}, text);
    const row = h("li", {"data-i": i},
      h("button", {type: "button", class: "grip", "data-at": "grip" + name(item), title: "Drag, or use the arrow keys", "aria-label": `Move ${brief(name(item))}`, onpointerdown: event => drag(event, row), onkeydown: event => {
        const by = {ArrowUp: -1, ArrowDown: 1}[event.key];
        if (!by) return;
        event.preventDefault();
        move(i, i + by);
      }}, "⠿"), h("span", {class: "what"}, h("strong", {dir: "auto"}, brief(name(item))), " ", h("span", {class: "soft"}, describe?.(item))),
      groups && (Array.isArray(item) ? small("≠", "Split the group", false, () => set([...items.slice(0, i), ...item, ...items.slice(i + 1)])) :
        small("=", "Same rank as the field above", i === 0, () => set([...items.slice(0, i - 1), [items[i - 1], item].flat(), ...items.slice(i + 1)]))),
      small("↑", "Move up", i === 0, () => move(i, i - 1)), small("↓", "Move down", i === items.length - 1, () => move(i, i + 1)),
      small("×", "Remove", false, () => set(items.filter((_, j) => j !== i))));
    return row;
  }));
  draw();
  return h("div", null, list, told);
}

/** typeOf names the type of a value for people. */
function typeOf(value) {
  if (Array.isArray(value)) return value.length ? "list of " + typeOf(value[0]) : "list";
  if (typeof value === "number") return "number";
  if (typeof value === "boolean") return "true or false";
  if (typeof value !== "string") return value === null ? "null" : "object";
  if (/^\d{4}-\d\d-\d\d([T ]|$)/.test(value)) return "date";
  return /^data:image\/|^https?:\/\//.test(value) ? "address" : "text";
}

/** fieldsOf lists the fields of an index by name with types and examples, as some of its documents have them. Members of objects have dotted names. */
export function fieldsOf(distribution, documents) {
  const seen = new Map(Object.keys(distribution).map(name => [name, {name, types: new Set(), example: ""}]));
  const look = (name, value, depth) => {
    if (value === null || value === undefined) return;
    const known = seen.get(name) ?? {name, types: new Set(), example: ""};
    seen.set(name, known);
    const plain = typeof value === "object" && !Array.isArray(value);
    known.types.add(typeOf(value));
    if (!known.example) known.example = brief(plain ? "" : Array.isArray(value) ? value.filter(v => typeof v !== "object").join(", ") : String(value), 60);
    if (plain && depth < 3 && name !== "_geo") for (const [inner, v] of Object.entries(value)) look(`${name}.${inner}`, v, depth + 1);
  };
  for (const document of documents) for (const [name, value] of Object.entries(document)) if (name !== "_vectors") look(name, value, 0);
  return [...seen.values()].map(({types, ...rest}) => ({...rest, type: [...types].join(" or ")})).sort((a, b) => a.name.localeCompare(b.name));
}

/** picker chooses fields of an index, or patterns of names. Entries of value that are objects stay as they are, unless they are taken out. */
export function picker(value, fields, {label, changed}) {
  let items = [...value];
  const body = h("tbody"), text = item => typeof item === "string" ? item : JSON.stringify(item);
  const set = next => {
    items = next;
    changed(items);
  };
  const extra = items.filter(item => !fields.some(f => f.name === item)).map(item => ({name: text(item), type: typeof item === "string" ? item.includes("*") ? "pattern" : "in no document" : "with options", example: "", item}));
  const rows = [...extra, ...fields];
  const draw = part => {
    const shown = rows.filter(row => row.name.toLowerCase().includes(part.toLowerCase())).slice(0, most);
    redraw(body, shown.map(row => {
      const item = row.item ?? row.name;
      return h("tr", null, h("td", {class: "name"}, h("label", {class: "check"}, h("input", {type: "checkbox", "data-at": row.name, checked: items.includes(item), onchange: event =>
        set(event.target.checked ? [...items, item] : items.filter(other => other !== item))}), " ", h("bdi", null, brief(row.name)))),
      h("td", {class: "soft"}, row.type), h("td", {class: "soft example", dir: "auto"}, row.example));
    }));
  };
  const other = h("input", {placeholder: "details.*", spellcheck: false, "aria-label": "Another name or pattern for " + label, onkeydown: event => event.key === "Enter" && add()});
  const add = () => {
    const name = other.value.trim();
    if (!name || items.includes(name)) return;
    if (!rows.some(row => row.name === name)) rows.unshift({name, type: name.includes("*") ? "pattern" : "in no document", example: ""});
    other.value = "";
    set([...items, name]);
    draw("");
  };
  draw("");
  return h("div", null, rows.length > 12 && h("p", {class: "bar"}, h("input", {type: "search", placeholder: "Find a field", "aria-label": "Find a field for " + label, oninput: event => draw(event.target.value)})),
    h("div", {class: "scroll fieldlist", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, ["Field", "Type", "Example"].map(t => h("th", {scope: "col"}, t)))), body)),
    h("p", {class: "bar"}, other, h("button", {type: "button", onclick: add}, "Add")));
}

/** someFields chooses all fields ("*") or some. In order, if order says so. */
export function someFields(value, fields, {label, changed, order}) {
  const box = h("div"), names = fields.map(f => f.name);
  let items = [...value];
  const set = next => {
    items = next;
    changed(items);
  };
  const draw = () => {
    const all = items.includes("*");
    box.replaceChildren(h("label", {class: "check"}, h("input", {type: "checkbox", checked: all, onchange: event => {
      set(event.target.checked ? ["*"] : names.length ? names : []);
      draw();
    }}), " All fields"), all ? "" : order ? ordered(items, {label, groups: true, changed: next => {
      set(next);
      drawMore();
    }, describe: name => !Array.isArray(name) && describeField(fields, name)}) : picker(items, fields, {label, changed: set}), order && !all ? more : "");
    if (order && !all) drawMore();
  };
  const more = h("p", {class: "bar"});
  const drawMore = () => more.replaceChildren(addField(fields.filter(f => !items.flat().includes(f.name)), label, name => {
    set([...items, name]);
    draw();
  }));
  draw();
  return box;
}

/** describeField tells the type and an example of a field. */
export function describeField(fields, name) {
  const known = fields.find(f => f.name === name);
  return known ? [known.type, known.example && ` · ${known.example}`] : name.includes("*") ? "pattern" : "in no document";
}

/** addField is a control that adds one of some fields to a list, or a name that no document has yet. */
function addField(fields, label, add) {
  const known = h("datalist", {id: "d" + Math.random().toString(36).slice(2)}, fields.slice(0, 1000).map(f => h("option", {value: f.name}, f.type)));
  const take = () => input.value.trim() && add(input.value.trim());
  const input = h("input", {placeholder: "Name of a field", spellcheck: false, autocomplete: "off", "aria-label": "Field to add to " + label, onkeydown: event => event.key === "Enter" && take()});
  input.setAttribute("list", known.id);
  return h("span", {class: "bar"}, input, known, h("button", {type: "button", onclick: take}, "Add field"));
}

const ruleTexts = {
  words: "more words of the query first", typo: "fewer typos first", proximity: "words close together first", attribute: "important fields and early words first",
  attributeRank: "words in important fields first", sort: "by the sort of the search", wordPosition: "words near the start of a field first", exactness: "exact words first", score: "by score functions",
};

/** rankingRules edits the order of the rules, with rules that sort by a field. */
export function rankingRules(value, fields, {changed}) {
  let items = [...value];
  const box = h("div"), more = h("p", {class: "bar"});
  const set = next => {
    items = next;
    changed(items);
    drawMore();
  };
  const describe = rule => {
    const [, name, way] = /^(.*):(asc|desc)$/.exec(rule) ?? [];
    return name ? [way === "asc" ? "low values of the field first" : "high values of the field first", " · ", describeField(fields, name)] : ruleTexts[rule] ?? "";
  };
  const draw = () => box.replaceChildren(ordered(items, {label: "Ranking rules", changed: set, describe}));
  const drawMore = () => {
    const missing = Object.keys(ruleTexts).filter(rule => !items.includes(rule) && rule !== (items.includes("attributeRank") || items.includes("wordPosition") ? "attribute" : ""));
    const add = rule => {
      set([...items, rule]);
      draw();
    };
    const known = h("datalist", {id: "d" + Math.random().toString(36).slice(2)}, fields.filter(f => /number|date|text/.test(f.type)).map(f => h("option", {value: f.name}, f.type)));
    const name = h("input", {placeholder: "Name of a field", spellcheck: false, autocomplete: "off", "aria-label": "Field to rank by"});
    name.setAttribute("list", known.id);
    const way = h("select", {"aria-label": "Direction"}, new Option("high values first", "desc"), new Option("low values first", "asc"));
    more.replaceChildren(...missing.map(rule => h("button", {type: "button", onclick: () => add(rule)}, "Add " + rule)), name, known, way,
      h("button", {type: "button", onclick: () => name.value.trim() && add(`${name.value.trim()}:${way.value}`)}, "Add field rule"));
  };
  draw();
  drawMore();
  return h("div", null, box, more);
}

/** synonyms edits which words find which others, as a table. CSV has a line for each word: the word, then what it finds. */
export function synonyms(value, {name, changed}) {
  let rows = Object.entries(value), find = "";
  const body = h("tbody"), note = h("p", {class: "soft"});
  const told = () => changed(Object.fromEntries(rows.map(([word, others]) => [word.trim(), others]).filter(([word, others]) => word && others.length)));
  const draw = () => {
    const shown = rows.filter(([word, others]) => !find || [word, ...others].some(text => text.toLowerCase().includes(find)));
    redraw(body, shown.slice(0, most).map(row => {
      const text = (label, now, f) => h("input", {value: now, "aria-label": label, spellcheck: false, dir: "auto", onchange: event => {
        f(event.target.value);
        told();
      }});
      return h("tr", null, h("td", null, text("Word", row[0], v => { row[0] = v; })), h("td", null, text(`Words that ${brief(row[0], 40) || "it"} also finds`, row[1].join(", "), v => { row[1] = words(v); })),
        h("td", null, h("button", {type: "button", class: "small", "aria-label": `Remove ${brief(row[0], 40)}`, onclick: () => {
          rows = rows.filter(other => other !== row);
          draw();
          told();
        }}, "×")));
    }));
    note.textContent = `${count(rows.length)} ${rows.length === 1 ? "word has" : "words have"} synonyms.${shown.length > most ? ` The first ${most} are shown: find others with the box above.` : ""}`;
  };
  /** join adds what a word finds to what it found before. */
  const join = (word, others) => {
    const row = rows.find(([other]) => other === word);
    if (row) row[1] = [...new Set([...row[1], ...others])];
    else rows.push([word, others]);
  };
  const same = h("input", {placeholder: "sofa, couch, settee", spellcheck: false, onkeydown: event => event.key === "Enter" && addSame()});
  const addSame = () => {
    const all = words(same.value);
    if (all.length < 2) return say("Enter at least two words with a comma between them.", true);
    for (const word of all) join(word, all.filter(other => other !== word));
    same.value = "";
    say("");
    draw();
    told();
  };
  const file = h("input", {type: "file", accept: ".csv,text/csv", hidden: true, "aria-label": "CSV file of synonyms", onchange: async () => {
    const text = await file.files[0].text(), lines = fromCSV(text, delimiterOf(text)).map(line => line.map(value => value.trim()));
    for (const [word, ...others] of lines) if (word) join(word, others.filter(Boolean));
    file.value = "";
    draw();
    told();
    say(`${count(lines.length)} lines were read. Review and save them.`);
  }});
  draw();
  return h("div", null, h("div", {class: "bar"}, rows.length > 12 && h("input", {type: "search", placeholder: "Find a word", "aria-label": "Find a word among the synonyms", oninput: event => {
    find = event.target.value.toLowerCase();
    draw();
  }}), h("button", {type: "button", onclick: () => {
    rows.unshift(["", []]);
    draw();
    body.querySelector("input").focus();
  }}, "Add word"), h("button", {type: "button", onclick: () => file.click()}, "Import CSV"), file,
  h("button", {type: "button", onclick: () => save(`synonyms-${name}.csv`, "text/csv", [toCSV(rows.map(([word, others]) => [word, ...others]))])}, "Export CSV")),
  h("div", {class: "scroll fieldlist", tabIndex: 0}, h("table", {class: "synonyms"}, h("thead", null, h("tr", null, h("th", {scope: "col"}, "Word"), h("th", {scope: "col"}, "Also finds, separated by commas"), h("td"))), body)), note,
  h("p", {class: "bar"}, field("Words that all mean the same", same, true), h("button", {type: "button", onclick: addSame}, "Add in all directions")));
}

/** typos edits how many typos are allowed. tryIt(query, value) compares what a query finds now with what it finds then: two answers. */
export function typos(value, fields, {changed, tryIt}) {
  const set = part => {
    value = {...value, ...part};
    changed(value);
    again();
  };
  const check = (text, name) => h("label", {class: "check"}, h("input", {type: "checkbox", checked: value[name] === true, onchange: event => set({[name]: event.target.checked})}), " ", text);
  const size = (text, name) => field(text, h("input", {type: "number", min: 0, max: 255, value: value.minWordSizeForTypos[name], oninput: event => event.target.value !== "" && set({minWordSizeForTypos: {...value.minWordSizeForTypos, [name]: Number(event.target.value)}})}));
  const out = h("div", {class: "sides"}), query = h("input", {type: "search", placeholder: "Type a misspelled word", "aria-label": "Try a query with typos", spellcheck: false, autocomplete: "off", oninput: () => again()});
  const again = later(async () => {
    if (!query.value) return out.replaceChildren();
    const answers = await tryIt(query.value, value);
    if (answers) out.replaceChildren(...answers.map((answer, i) => h("div", null, h("p", null, h("strong", null, i ? "With these values" : "Now"), h("span", {class: "soft"}, ` ${count(answer.total)} found`)), h("ol", null, answer.titles.map(title => h("li", {dir: "auto"}, title))))));
  }, 150);
  return h("div", null, h("p", null, check("Allow typos", "enabled")),
    h("div", {class: "bar"}, size("One typo in words of at least (letters)", "oneTypo"), size("Two typos in words of at least (letters)", "twoTypos")), h("p", null, check("No typos in numbers", "disableOnNumbers")),
    h("h3", null, "Words without typos"), chips(value.disableOnWords, {label: "words without typos", placeholder: "iphone", changed: disableOnWords => set({disableOnWords})}),
    h("h3", null, "Fields without typos"), chips(value.disableOnAttributes, {label: "fields without typos", placeholder: "sku", suggestions: fields.map(f => f.name), changed: disableOnAttributes => set({disableOnAttributes})}),
    h("h3", null, "Try it"), query, out);
}
