// The documents of an index: browse, narrow, sort, edit one or many, delete, export, and upload files.
import {ask, ended, indexPath, turns} from "./api.js";
import {toCSV} from "./csv.js";
import {chooser, indexes} from "./indexes.js";
import {brief, count, field, h, json, later, menu, redraw, save, say, select, show} from "./dom.js";
import {hitBox, textOf} from "./hit.js";
import {uploader} from "./upload.js";

const pageSize = 20;
const firstColumns = 6; // of a table before columns were chosen, without the id
const longestCell = 120; // characters
const exportPage = 1000; // documents

/** formats are those of exported documents: begin, between and end frame the documents that write writes. */
const formats = {
  ndjson: {type: "application/x-ndjson", begin: () => "", between: "", end: "", write: doc => JSON.stringify(doc) + "\n"},
  json: {type: "application/json", begin: () => "[\n", between: ",\n", end: "\n]\n", write: doc => JSON.stringify(doc)},
  csv: {type: "text/csv", begin: columns => toCSV([columns]), between: "", end: "", write: (doc, columns) => toCSV([columns.map(name => textOf(doc[name] ?? ""))])},
};

export async function documentsView({page, state, remember, signal, reopen}) {
  const all = await indexes(signal);
  const s = {index: state.get("index") ?? all?.[0]?.uid ?? "", filter: state.get("filter") ?? "", id: state.get("id") ?? "", offset: Number(state.get("offset")) || 0,
    view: state.get("view") === "table" ? "table" : "", columns: columnsOf(state.get("columns")), sort: state.get("sort") ?? ""};
  const turn = turns(signal), chosen = new Map(); // documents that are selected, by their ids
  let sortable = []; // fields
  const many = h("div", {class: "bar actions", hidden: true, role: "group", "aria-label": "Selected documents"});
  const list = h("section", {"aria-label": "Documents"}), pages = h("nav", {class: "pages", "aria-label": "Pages"}), summary = h("p", {class: "summary", role: "status"}), fields = h("details", {class: "fields", hidden: true});
  const filter = h("input", {value: s.filter, placeholder: "year > 1930", spellcheck: false, oninput: later(() => {
    s.filter = filter.value.trim();
    s.offset = 0;
    return draw();
  }, 300)});
  const one = h("input", {value: s.id, placeholder: "all", spellcheck: false, oninput: later(() => {
    s.id = one.value.trim();
    s.offset = 0;
    return draw();
  }, 300)});
  const remove = h("button", {type: "button", class: "danger", hidden: true, onclick: async () => {
    const {index, filter} = s, what = filter ? `the documents with ${filter}` : "ALL documents";
    if (!confirm(`Delete ${what} of ${index}?`)) return;
    await finish(filter ? await ask(indexPath(index, "/documents/delete"), {body: {filter}}) : await ask(indexPath(index, "/documents"), {method: "DELETE"}), "deleted");
  }});
  page.append(h("h1", null, "Documents"), uploader({all, index: s.index, open: !all || all.length === 0, signal, done: uid => {
    remember({index: uid, view: s.view});
    return reopen();
  }}));
  if (all && all.length === 0) return;
  page.append(h("div", {class: "bar"}, chooser(all, s.index, uid => {
    Object.assign(s, {index: uid, offset: 0, filter: "", id: "", columns: [], sort: ""});
    filter.value = one.value = "";
    chosen.clear();
    return learn();
  }), field("Id", one), field("Filter", filter, true), field("Show as", select([["", "Cards"], ["table", "Table"]], s.view, v => { s.view = v; return draw(); }))), h("div", {class: "bar actions"}, summary,
  h("button", {type: "button", onclick: () => edit(null)}, "New document"),
  menu("Export", "Export the documents", Object.keys(formats).map(name => [`as ${name.toUpperCase()}`, () => exportAs(name)])),
  remove), fields, many, list, pages);

  const key = () => all?.find(index => index.uid === s.index)?.primaryKey ?? "id";

  /** finish waits for a task and tells how it went. */
  async function finish(task, what) {
    say("Waiting for the task…");
    const done = await ended(task);
    if (done.error) throw new Error(done.error.message);
    if (!signal.aborted) await draw();
    const {indexedDocuments, deletedDocuments, changedDocuments, failedDocuments, failures} = done.details ?? {};
    say(`Done: ${count(indexedDocuments ?? deletedDocuments ?? changedDocuments ?? 1)} ${what}.` + (failedDocuments ? ` ${count(failedDocuments)} could not be changed: ${failures[0]?.message}` : ""), failedDocuments > 0);
  }

  async function draw() {
    const own = turn(), uid = s.index;
    remember({index: uid, filter: s.filter, id: s.id, offset: s.offset || "", view: s.view, columns: s.columns.length ? JSON.stringify(s.columns) : "", sort: s.sort});
    if (!uid) return;
    drawFields();
    let found;
    try {
      found = await ask(indexPath(uid, "/documents/fetch"), {body: {limit: pageSize, offset: s.offset, filter: s.filter || undefined, ids: s.id ? [s.id] : undefined, sort: s.sort ? [s.sort] : undefined}, signal: own, whole: true});
    } catch (error) {
      if (!own.aborted) {
        for (const node of [list, pages, summary]) node.replaceChildren();
        remove.hidden = true;
      }
      throw error;
    }
    if (own.aborted) return;
    say("");
    summary.textContent = `${count(found.total)} ${found.total === 1 ? "document" : "documents"}`;
    remove.textContent = s.filter ? `Delete these ${count(found.total)}` : "Delete all documents";
    remove.hidden = found.total === 0 || s.id !== ""; // one document has its own button
    list.replaceChildren(...s.view === "table" ? [tableOf(found.results)] : found.results.map(doc => hitBox(doc, {key: key(), stored: true, pictures: true, actions: [
      h("button", {type: "button", class: "link", onclick: () => edit(doc)}, "Edit"),
      h("button", {type: "button", class: "link danger", onclick: async () => {
        const id = textOf(doc[key()]);
        if (confirm(`Delete ${brief(id)}?`)) await finish(await ask(indexPath(uid, "/documents/" + encodeURIComponent(id)), {method: "DELETE"}), "deleted");
      }}, "Delete"),
    ]})));
    drawChosen();
    const go = (text, to) => h("button", {type: "button", disabled: to < 0 || to >= found.total || to === s.offset, onclick: () => {
      s.offset = to;
      scrollTo({top: 0});
      return draw();
    }}, text);
    pages.replaceChildren();
    if (found.total > pageSize) pages.append(go("Previous", Math.max(0, s.offset - pageSize)), h("span", null, `${count(s.offset + 1)} to ${count(Math.min(found.total, s.offset + pageSize))}`), go("Next", s.offset + pageSize));
  }

  /** columns are the fields that a table shows: those that were chosen, or the id and the most frequent others. */
  function columns() {
    if (s.columns.length) return s.columns;
    const frequent = Object.entries(all?.find(index => index.uid === s.index)?.fields ?? {}).filter(([name]) => name !== key()).sort(([, a], [, b]) => b - a);
    return [key(), ...frequent.slice(0, firstColumns).map(([name]) => name)];
  }

  /** tableOf shows documents as rows that can be selected. */
  function tableOf(documents) {
    const shown = columns(), rows = [], every = h("input", {type: "checkbox", "aria-label": "Select all on this page", onchange: () => {
      for (const row of rows) if (row.checked !== every.checked) row.click();
    }});
    const head = name => {
      const [by, direction] = s.sort.split(/:(?=[^:]*$)/), next = by === name && direction === "asc" ? "desc" : "asc";
      return h("th", {scope: "col", dir: "auto", "aria-sort": by === name ? direction + "ending" : null}, !sortable.includes(name) ? brief(name, 40) : h("button", {type: "button", class: "link", "data-at": name, onclick: async () => {
        s.sort = `${name}:${next}`;
        s.offset = 0;
        await draw();
        [...list.querySelectorAll("th button")].find(button => button.dataset.at === name)?.focus();
      }}, brief(name, 40), by === name && (direction === "asc" ? " ↑" : " ↓")));
    };
    const table = h("table", {class: "grid"}, h("thead", null, h("tr", null, h("td", null, every), shown.map(head), h("td"))), h("tbody", null, documents.map(doc => {
      const id = textOf(doc[key()]), box = h("input", {type: "checkbox", checked: chosen.has(id), "aria-label": "Select " + brief(id, 60), onchange: () => {
        if (box.checked) chosen.set(id, doc[key()]);
        else chosen.delete(id);
        drawChosen();
      }});
      rows.push(box);
      return h("tr", null, h("td", null, box), shown.map(name => h("td", {dir: "auto"}, brief(doc[name] === undefined ? "" : textOf(doc[name]), longestCell))), h("td", null, h("button", {type: "button", class: "link", "aria-label": "edit " + brief(id, 60), onclick: () => edit(doc)}, "Edit")));
    })));
    every.checked = rows.length > 0 && rows.every(row => row.checked);
    return h("div", {class: "scroll", tabIndex: 0}, table);
  }

  /** drawChosen shows what can be done with the documents that are selected. */
  function drawChosen() {
    many.hidden = chosen.size === 0 || s.view !== "table";
    if (many.hidden) return;
    many.replaceChildren(h("span", {class: "summary", role: "status"}, `${count(chosen.size)} selected`),
      h("button", {type: "button", onclick: () => editMany()}, "Edit these"),
      h("button", {type: "button", class: "danger", onclick: async () => {
        if (!confirm(`Delete ${count(chosen.size)} documents of ${s.index}?`)) return;
        const task = await ask(indexPath(s.index, "/documents/delete-batch"), {body: [...chosen.keys()]});
        chosen.clear();
        await finish(task, "deleted");
      }}, "Delete these"),
      h("button", {type: "button", class: "link", onclick: () => {
        chosen.clear();
        return draw();
      }}, "Clear"));
  }

  /** editMany changes one field of all documents that are selected. */
  function editMany() {
    const names = Object.keys(all?.find(index => index.uid === s.index)?.fields ?? {}).filter(name => name !== key()), values = {set: "Value, as JSON", increment: "Number to add", append: "Value to append, as JSON", addToSet: "Value to add if the list lacks it, as JSON", remove: "Value to remove, as JSON"};
    const name = h("input", {required: true, spellcheck: false, list: "names-of-fields"}), value = h("input", {required: true, spellcheck: false, placeholder: "\"sale\" or 12 or [\"a\"]"});
    const valueField = field(values.set, value, true), how = select([["set", "set it to"], ["unset", "remove it"], ["increment", "add a number to it"], ["append", "append to its list"], ["addToSet", "add to its list, once"], ["remove", "remove from its list"]], "set", v => {
      valueField.hidden = value.disabled = v === "unset";
      valueField.firstChild.textContent = values[v] ?? "";
    });
    const dialog = show(`Edit ${count(chosen.size)} documents`, h("form", {onsubmit: async event => {
      event.preventDefault();
      let text = "null";
      if (how.value !== "unset") {
        JSON.parse(value.value); // fails with what is wrong
        text = value.value; // as it was typed: its numbers keep their digits
      }
      const change = how.value === "unset" ? JSON.stringify([name.value]) : `{${JSON.stringify(name.value)}: ${text}}`;
      const body = `[${[...chosen.values()].map(id => `{${JSON.stringify(key())}: ${JSON.stringify(id)}, ${JSON.stringify(how.value)}: ${change}}`).join(",")}]`;
      const task = await ask(indexPath(s.index, "/documents"), {method: "PATCH", body});
      dialog.close();
      await finish(task, "changed");
    }}, h("datalist", {id: "names-of-fields"}, names.map(n => h("option", {value: n}))), h("div", {class: "bar"}, field("Field, with dots for inner ones", name), field("Change", how), valueField), h("p", null, h("button", {class: "main"}, "Change"))));
    name.focus();
  }

  /** exportAs saves all documents that match the filter. It reads them page by page with a cursor. */
  async function exportAs(name) {
    const format = formats[name], uid = s.index, parts = [], shown = name === "csv" ? [key(), ...Object.keys(all?.find(index => index.uid === uid)?.fields ?? {}).filter(other => other !== key()).sort()] : [];
    let cursor = "", n = 0;
    parts.push(format.begin(shown));
    do {
      const found = await ask(indexPath(uid, "/documents/fetch"), {body: {limit: exportPage, cursor, filter: s.filter || undefined}, signal, whole: true});
      parts.push(new Blob(found.results.map((doc, i) => (n + i > 0 ? format.between : "") + format.write(doc, shown))));
      n += found.results.length;
      cursor = found.nextCursor;
      say(`${count(n)} of ${count(found.total)} documents…`);
    } while (cursor !== null);
    parts.push(format.end);
    save(`${uid}.${name}`, format.type, parts);
    say(`${count(n)} documents were exported.`);
  }

  function drawFields() {
    const index = all?.find(other => other.uid === s.index);
    const known = Object.entries(index?.fields ?? {}).sort(([, a], [, b]) => b - a);
    fields.hidden = known.length === 0;
    const shown = s.view === "table" ? columns() : [];
    const pick = name => s.view === "table" && h("td", null, h("input", {type: "checkbox", checked: shown.includes(name), "data-at": name, "aria-label": "Show the column " + brief(name, 60), onchange: event => {
      s.columns = event.target.checked ? [...shown, name] : shown.filter(other => other !== name);
      return draw();
    }}));
    redraw(fields, [h("summary", null, s.view === "table" ? `${count(known.length)} fields and columns` : `${count(known.length)} fields`), h("table", null, h("thead", null, h("tr", null, s.view === "table" && h("th", {scope: "col"}, "Shown"), h("th", {scope: "col"}, "Field"), h("th", {scope: "col", class: "number"}, "Documents"), h("td"))),
      h("tbody", null, known.map(([name, n]) => h("tr", null, pick(name), h("td", {class: "name", dir: "auto"}, brief(name)), h("td", {class: "number"}, count(n)), h("td", null, h("meter", {min: 0, max: Math.max(index.documents, 1), value: n, "aria-label": `${brief(name)}: ${n}`}))))))]);
  }

  /** edit shows a document as JSON, and sends it as it is typed then: its numbers keep their digits. */
  function edit(doc) {
    const uid = s.index, text = h("textarea", {value: json(doc ?? {[key()]: ""}), rows: 18, spellcheck: false, "aria-label": "Document"});
    const dialog = show(doc ? `Edit ${textOf(doc[key()])}` : "New document", text, h("p", null, h("button", {type: "button", class: "main", onclick: async () => {
      JSON.parse(text.value); // fails with what is wrong
      const task = await ask(indexPath(uid, "/documents"), {body: `[${text.value}]`});
      dialog.close();
      await finish(task, "written");
    }}, "Save")));
  }

  /** learn asks which fields the index can sort by, and shows its documents. */
  async function learn() {
    sortable = [];
    if (s.index) {
      try {
        sortable = await ask(indexPath(s.index, "/settings/sortable-attributes"), {signal});
      } catch (error) {
        if (error.status !== 403 && error.status !== 404) throw error;
      }
    }
    await draw();
  }

  await learn();
}

/** columnsOf reads the columns that an address names. */
function columnsOf(text) {
  try {
    const names = JSON.parse(text);
    return Array.isArray(names) ? names.filter(name => typeof name === "string") : [];
  } catch {
    return [];
  }
}
