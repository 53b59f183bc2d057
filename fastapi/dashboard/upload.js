// Uploads a file of documents: shows its fields, lets people choose the primary key, filters and sort orders, and tells the progress.
import {ask, ended, indexPath, send} from "./api.js";
import {brief, bytes, count, field, h, say, select} from "./dom.js";
import {fieldsOf, inspect, pieces, untyped} from "./pieces.js";

const formats = {"application/json": "JSON", "application/x-ndjson": "NDJSON", "text/csv": "CSV"};
const longestWait = 15; // seconds between two tries

/** uidOf makes the name of an index from that of a file. */
const uidOf = name => name.toLowerCase().replace(/(\.(json|ndjson|jsonl|csv|gz|gzip|zst|zstd))+$/, "").replace(/[^a-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 100) || "documents";

/** likelyKey is the field that holds ids by its name; "" leaves the choice to svc, which looks for a name that ends with id. Else it is the first that fits. */
function likelyKey(fields) {
  const fit = fields.filter(f => f.fitsId);
  return fit.find(f => /(^|[^a-z])id$|Id$/i.test(f.name))?.name ?? fit.find(f => /(^|[^a-z])(sku|uuid|guid|key|code|slug|isbn|ean|gtin)$/i.test(f.name))?.name ??
    (fields.some(f => /id$/i.test(f.name)) ? "" : fit[0]?.name ?? "");
}

/**
 * uploader lets people choose or drop a file, shows what is in it, and sends it. options: all (the indexes, or null), index (the uid that
 * is offered), open, signal (ends what is shown; an upload goes on until its piece is sent), done(uid) when all is indexed.
 */
export function uploader({all, index, open, signal, done}) {
  const input = h("input", {type: "file", accept: ".json,.ndjson,.jsonl,.csv,.gz,.zst", onchange: () => input.files[0] && choose(input.files[0])}), plan = h("div");
  const zone = h("div", {class: "drop", ondragover: event => {
    event.preventDefault();
    zone.classList.add("over");
  }, ondragleave: () => zone.classList.remove("over"), ondrop: event => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files[0]) return choose(event.dataTransfer.files[0]);
  }}, field("Choose a file, or drop it here: JSON, NDJSON or CSV, also packed with gzip or zstd", input));
  let chosen = 0;

  async function choose(file) {
    const mine = ++chosen;
    plan.replaceChildren();
    const found = await inspect(file);
    if (mine !== chosen || signal.aborted) return;
    say("");
    plan.replaceChildren(planOf(file, found));
    plan.querySelector("input").focus();
  }

  const present = uid => all?.find(other => other.uid === uid);

  function planOf(file, found) {
    const fields = fieldsOf(found.documents), types = found.packed ? new Map() : untyped(found), choices = new Map();
    // A file without the ids of an index is for another one.
    const fits = uid => !present(uid)?.primaryKey || fields.length === 0 || fields.some(f => f.name === present(uid).primaryKey);
    const into = h("input", {value: index && fits(index) ? index : uidOf(file.name), spellcheck: false, required: true, onchange: () => known()});
    const key = select([["", "found by svc"], ...fields.filter(f => f.fitsId).map(f => f.name)], "", undefined);
    const how = select([["POST", "replace the documents with the same id"], ["PUT", "add the fields to the documents with the same id"]], "POST");
    const filters = new Map(), sorts = new Map(), told = h("p", {role: "status", class: "soft"}), bar = h("progress", {max: 1, value: 0, hidden: true, "aria-label": "Upload"});
    const box = (boxes, name, what) => {
      boxes.set(name, h("input", {type: "checkbox", "aria-label": `${what} ${brief(name, 60)}`}));
      return h("td", null, boxes.get(name));
    };
    /** typeOf is the choice of the type of a column of CSV. */
    const typeOf = name => {
      choices.set(name, select(["text", "number"], types.get(name) ? "number" : "text", undefined, "Type of " + brief(name, 60)));
      return choices.get(name);
    };
    const table = fields.length > 0 && h("div", {class: "scroll fieldlist", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, ["Field", "Values", "Example", "Filter by it", "Sort by it"].map(t => h("th", {scope: "col"}, t)))),
      h("tbody", null, fields.map(f => {
        const flat = !f.kinds.includes("object");
        return h("tr", null, h("td", {class: "name", dir: "auto"}, brief(f.name, 60)), h("td", null, types.has(f.name) ? typeOf(f.name) : f.kinds.join(", ")), h("td", {class: "long", dir: "auto"}, brief(typeof f.example === "string" ? f.example : JSON.stringify(f.example) ?? "", 60)),
          box(filters, f.name, "filter by"), flat ? box(sorts, f.name, "sort by") : h("td"));
      }))));
    let before = {filterableAttributes: [], sortableAttributes: []};

    /** known looks up what the index has already: its settings, and the field of its ids. */
    async function known() {
      const uid = into.value.trim();
      before = {filterableAttributes: [], sortableAttributes: []};
      try {
        if (present(uid)) before = await ask(indexPath(uid, "/settings"), {signal});
      } catch (error) {
        if (error.status !== 403) throw error; // such a key can still add documents
      }
      const has = (list, name) => list.some(item => item === name || item === "*" || item.attributePatterns?.includes(name));
      for (const [boxes, list] of [[filters, before.filterableAttributes], [sorts, before.sortableAttributes]]) {
        for (const [name, node] of boxes) node.checked = node.disabled = has(list, name);
      }
      const primary = present(uid)?.primaryKey;
      if (primary && ![...key.options].some(option => option.value === primary)) key.add(new Option(primary, primary));
      key.value = primary ?? likelyKey(fields);
      key.disabled = Boolean(primary);
    }

    const form = h("form", {class: "plan", onsubmit: async event => {
      event.preventDefault();
      const button = form.querySelector("button.main"), uid = into.value.trim(), more = {};
      for (const [setting, boxes] of [["filterableAttributes", filters], ["sortableAttributes", sorts]]) {
        const added = [...boxes].filter(([, node]) => node.checked && !node.disabled).map(([name]) => name);
        if (added.length) more[setting] = [...before[setting], ...added];
      }
      button.disabled = true;
      bar.hidden = false;
      try {
        if (Object.keys(more).length) await ask(indexPath(uid, "/settings"), {method: "PATCH", body: more});
        const query = new URLSearchParams();
        if (key.value && !key.disabled) query.set("primaryKey", key.value);
        if (found.delimiter && found.delimiter !== ",") query.set("csvDelimiter", found.delimiter);
        const numbers = new Set([...choices].filter(([, node]) => node.value === "number").map(([name]) => name));
        const tasks = await sendAll(file, {...found, numbers}, indexPath(uid, "/documents" + (query.size ? "?" + query : "")), how.value, {bar, told, signal});
        bar.removeAttribute("value");
        told.textContent = `svc has the file and is indexing it (${tasks.length === 1 ? `task ${tasks[0].taskUid}` : `tasks ${tasks[0].taskUid} to ${tasks.at(-1).taskUid}`}).`;
        let documents = 0;
        for (const task of tasks) {
          const end = await ended(task);
          if (end.error) throw new Error(`Task ${end.uid} failed${tasks.length > 1 ? ", and its part of the file is missing" : ""}: ${end.error.message}`);
          documents += end.details.indexedDocuments;
        }
        if (signal.aborted) return;
        await done(uid);
        say(`${count(documents)} documents were indexed.`);
      } finally {
        button.disabled = false;
        bar.hidden = true;
        told.textContent = "";
      }
    }}, h("h2", {dir: "auto"}, brief(file.name, 80)), h("p", {class: "about"}, `${formats[found.type]}${found.packed && ", packed with " + found.packed}, ${bytes(file.size)}. `,
      found.documents.length ? `The table shows the first ${count(found.documents.length)} documents. You can change filters and sort orders later, under Settings.` : "A browser cannot look into zstd files."),
    h("div", {class: "bar"}, field("Into the index", into), field("Field of the ids", key), field("Documents that exist", how)), table, h("p", null, h("button", {class: "main"}, "Upload")), bar, told);
    known().catch(error => signal.aborted || say(error.message, true));
    return form;
  }

  return h("details", {class: "more", open}, h("summary", null, "Upload a file"), zone, plan);
}

/** sendAll sends the pieces of a file in order and returns their tasks. It repeats a piece until it is acknowledged; no piece is indexed twice. */
async function sendAll(file, found, path, method, {bar, told, signal}) {
  const upload = crypto.getRandomValues(new Uint32Array(4)).join("-"), tasks = [];
  for await (const piece of pieces(file, found)) {
    for (let wait = 1; ; wait = Math.min(2 * wait, longestWait)) {
      try {
        tasks.push(await send(path, method, {"Content-Type": found.type, "Idempotency-Key": `${upload}-${tasks.length}`, ...found.packed && {"Content-Encoding": found.packed}}, piece.body, part => {
          const at = piece.from + part * (piece.to - piece.from);
          bar.value = at / file.size;
          told.textContent = `${bytes(at)} of ${bytes(file.size)}`;
        }));
        break;
      } catch (error) {
        if (error.status !== undefined && error.status < 500 && error.status !== 429 || signal.aborted) throw error;
        told.textContent = `${error.message} Trying again in ${wait} s, from ${bytes(piece.from)} on.`;
        await new Promise(resolve => setTimeout(resolve, 1000 * wait));
      }
    }
  }
  return tasks;
}
