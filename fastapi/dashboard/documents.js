// The documents of an index: browse, narrow, edit, delete, and upload files.
import {ask, ended, indexPath, turns, upload} from "./api.js";
import {chooser, indexes} from "./indexes.js";
import {brief, bytes, count, field, h, json, later, say, select, show} from "./dom.js";
import {hitBox, textOf} from "./hit.js";

const pageSize = 20;
const types = {json: "application/json", ndjson: "application/x-ndjson", jsonl: "application/x-ndjson", csv: "text/csv"};

export async function documentsView({page, state, remember, signal, reopen}) {
  const all = await indexes(signal);
  const s = {index: state.get("index") ?? all?.[0]?.uid ?? "", filter: state.get("filter") ?? "", id: state.get("id") ?? "", offset: Number(state.get("offset")) || 0};
  const turn = turns(signal);
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
  page.append(h("h1", null, "Documents"), uploader(all, s, reopen));
  if (all && all.length === 0) return;
  page.append(h("div", {class: "bar"}, chooser(all, s.index, uid => {
    Object.assign(s, {index: uid, offset: 0, filter: "", id: ""});
    filter.value = one.value = "";
    return draw();
  }), field("Id", one), field("Filter", filter, true)), h("div", {class: "bar actions"}, summary,
  h("button", {type: "button", onclick: () => edit(null)}, "New document"),
  remove), fields, list, pages);

  const key = () => all?.find(index => index.uid === s.index)?.primaryKey ?? "id";

  /** finish waits for a task and tells how it went. */
  async function finish(task, what) {
    say("Waiting for the task…");
    const done = await ended(task);
    if (done.error) throw new Error(done.error.message);
    if (!signal.aborted) await draw();
    say(`Done: ${count(done.details?.indexedDocuments ?? done.details?.deletedDocuments ?? 1)} ${what}.`);
  }

  async function draw() {
    const own = turn(), uid = s.index;
    remember({index: uid, filter: s.filter, id: s.id, offset: s.offset || ""});
    if (!uid) return;
    drawFields();
    let found;
    try {
      found = await ask(indexPath(uid, "/documents/fetch"), {body: {limit: pageSize, offset: s.offset, filter: s.filter || undefined, ids: s.id ? [s.id] : undefined}, signal: own, whole: true});
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
    list.replaceChildren(...found.results.map(doc => hitBox(doc, {key: key(), stored: true, pictures: true, actions: [
      h("button", {type: "button", class: "link", onclick: () => edit(doc)}, "edit"),
      h("button", {type: "button", class: "link danger", onclick: async () => {
        const id = textOf(doc[key()]);
        if (confirm(`Delete ${brief(id)}?`)) await finish(await ask(indexPath(uid, "/documents/" + encodeURIComponent(id)), {method: "DELETE"}), "deleted");
      }}, "delete"),
    ]})));
    const go = (text, to) => h("button", {type: "button", disabled: to < 0 || to >= found.total || to === s.offset, onclick: () => {
      s.offset = to;
      scrollTo({top: 0});
      return draw();
    }}, text);
    pages.replaceChildren();
    if (found.total > pageSize) pages.append(go("Before", Math.max(0, s.offset - pageSize)), h("span", null, `${count(s.offset + 1)} to ${count(Math.min(found.total, s.offset + pageSize))}`), go("Next", s.offset + pageSize));
  }

  function drawFields() {
    const index = all?.find(other => other.uid === s.index);
    const known = Object.entries(index?.fields ?? {}).sort(([, a], [, b]) => b - a);
    fields.hidden = known.length === 0;
    fields.replaceChildren(h("summary", null, `${count(known.length)} fields`), h("table", null, h("thead", null, h("tr", null, h("th", {scope: "col"}, "field"), h("th", {scope: "col", class: "number"}, "documents"), h("td"))),
      h("tbody", null, known.map(([name, n]) => h("tr", null, h("td", {class: "name", dir: "auto"}, brief(name)), h("td", {class: "number"}, count(n)), h("td", null, h("meter", {min: 0, max: Math.max(index.documents, 1), value: n, "aria-label": `${brief(name)}: ${n}`})))))));
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

  await draw();
}

/** uploader sends a file, with a bar that tells how far it is. */
function uploader(all, s, reopen) {
  const into = h("input", {value: s.index, placeholder: "films", spellcheck: false, required: true}), key = h("input", {placeholder: "found by itself", spellcheck: false});
  const file = h("input", {type: "file", accept: ".json,.ndjson,.jsonl,.csv", required: true});
  const how = select([["POST", "replace documents of the same id"], ["PUT", "add fields to documents of the same id"]], "POST");
  const bar = h("progress", {max: 1, value: 0, hidden: true, "aria-label": "Upload"}), told = h("span", {role: "status"});
  return h("details", {class: "more", open: !all || all.length === 0}, h("summary", null, "Upload a file"), h("form", {class: "bar", onsubmit: async event => {
    event.preventDefault();
    const chosen = file.files[0], type = types[chosen.name.split(".").pop().toLowerCase()];
    if (!type) return say("The name of the file must end with .json, .ndjson, .jsonl or .csv.", true);
    bar.hidden = false;
    try {
      const query = key.value.trim() ? "?primaryKey=" + encodeURIComponent(key.value.trim()) : "";
      const task = await upload(indexPath(into.value.trim(), "/documents" + query), how.value, type, chosen, part => {
        bar.value = part;
        told.textContent = ` ${bytes(part * chosen.size)} of ${bytes(chosen.size)}`;
      });
      bar.removeAttribute("value");
      told.textContent = ` accepted as task ${task.taskUid}; it is being indexed`;
      const done = await ended(task);
      if (done.error) throw new Error(done.error.message);
      await reopen();
      say(`${count(done.details.indexedDocuments)} documents were indexed.`);
    } finally {
      told.textContent = "";
      bar.hidden = true;
    }
  }}, field("File (JSON, NDJSON or CSV)", file), field("Into the index", into), field("Primary key", key), field("Documents that are there", how), h("button", {class: "main"}, "Upload"), bar, told));
}
