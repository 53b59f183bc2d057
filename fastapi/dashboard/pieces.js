// Files of documents: their format and fields, and the pieces in which they are sent.
import {delimiterOf, fromCSV, recordEnd, toCSV} from "./csv.js";

const types = {json: "application/json", ndjson: "application/x-ndjson", jsonl: "application/x-ndjson", csv: "text/csv"};
const beginning = 256 << 10; // bytes of a file that are read for its format and fields
const looked = 200; // documents that are read for that
const pieceSize = 16 << 20; // bytes

/** objects returns the objects of a JSON array, or the one object, at the beginning of a text that may be cut off. */
export function objects(text) {
  const found = [];
  let depth = 0, from = -1, inText = false;
  for (let i = 0; i < text.length && found.length < looked; i++) {
    const c = text[i];
    if (inText) {
      if (c === "\\") i++;
      else if (c === '"') inText = false;
    } else if (c === '"') inText = true;
    else if (c === "{" && depth++ === 0) from = i;
    else if (c === "}" && --depth === 0) found.push(JSON.parse(text.slice(from, i + 1)));
  }
  return found;
}

/** unpacked returns the beginning of a gzipped file. */
async function unpacked(file) {
  const reader = file.slice(0, 4 * beginning).stream().pipeThrough(new DecompressionStream("gzip")).getReader(), parts = [];
  let size = 0;
  try {
    while (size < beginning) {
      const {done, value} = await reader.read();
      if (done) break;
      parts.push(value);
      size += value.length;
    }
  } catch (error) {
    if (size === 0) throw new Error("This file begins like gzip, but it cannot be unpacked.", {cause: error});
  }
  reader.cancel().catch(() => {});
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/**
 * inspect looks at the beginning of a file. It returns its format (json, ndjson or csv), how it is packed ("", gzip or zstd), its
 * delimiter and header (CSV), and documents of the beginning; none if the browser cannot unpack it.
 */
export async function inspect(file) {
  const magic = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  const packed = magic[0] === 0x1f && magic[1] === 0x8b ? "gzip" : magic[0] === 0x28 && magic[1] === 0xb5 && magic[2] === 0x2f && magic[3] === 0xfd ? "zstd" : "";
  const named = types[file.name.toLowerCase().replace(/\.(gz|gzip|zst|zstd)$/, "").split(".").pop()];
  if (packed === "zstd") {
    if (!named) throw new Error("The name of a zstd file must end with .json.zst, .ndjson.zst, .jsonl.zst or .csv.zst.");
    return {type: named, packed, documents: []};
  }
  const head = packed ? await unpacked(file) : new Uint8Array(await file.slice(0, beginning).arrayBuffer()), whole = !packed && head.length === file.size;
  if (head.includes(0)) throw new Error("This is not a text file. Choose a file of JSON, NDJSON or CSV; it may be packed with gzip or zstd.");
  const text = new TextDecoder().decode(head).replace(/^\ufeff/, ""), first = text.trimStart()[0];
  if (first === undefined) throw new Error("The file is empty.");
  if (first === "[") return {type: types.json, packed, documents: objects(text)};
  if (first === "{") {
    const lines = text.split("\n");
    if (!whole) lines.pop();
    try {
      return {type: types.ndjson, packed, documents: lines.filter(line => line.trim()).slice(0, looked).map(line => JSON.parse(line))};
    } catch (error) { // one object on several lines, or what the server will refuse, too
      if (named === types.ndjson) throw new Error("A line of the file is not a JSON object: " + error.message, {cause: error});
      return {type: types.json, packed, documents: objects(text)};
    }
  }
  const delimiter = delimiterOf(text), [header, ...records] = fromCSV(text, delimiter, !whole);
  if (named !== types.csv && (!header || header.length < 2)) throw new Error("The file must contain JSON objects, or CSV with a first line that names the fields.");
  const columns = header.map(name => name.match(/^(.*?)(?::(number|boolean|string))?$/s));
  return {type: types.csv, packed, delimiter, header, documents: records.slice(0, looked).map(record => Object.fromEntries(columns.map(([, name, type], i) =>
    [name, type === "number" ? Number(record[i]) : type === "boolean" ? record[i] === "true" : record[i] ?? ""])))};
}

/** kindOf says in a word what a value is. */
const kindOf = v => v === null ? "null" : Array.isArray(v) ? "list" : typeof v === "object" ? "object" : typeof v === "string" ? "text" : typeof v;

/** fieldsOf lists the fields of documents: name, kinds of values, an example, and whether the field can be the primary key. */
export function fieldsOf(documents) {
  const all = new Map();
  for (const document of documents) {
    for (const [name, value] of Object.entries(document)) {
      const f = all.get(name) ?? {name, kinds: new Set(), example: undefined, seen: new Set(), unfit: false, count: 0};
      all.set(name, f);
      f.count++;
      f.kinds.add(kindOf(value));
      f.example ??= value ?? undefined;
      const id = typeof value === "number" && Number.isInteger(value) && value >= 0 || typeof value === "string" && /^[A-Za-z0-9_-]{1,511}$/.test(value);
      if (!id || f.seen.has(String(value))) f.unfit = true;
      f.seen.add(String(value));
    }
  }
  return [...all.values()].map(({name, kinds, example, unfit, count}) => ({name, kinds: [...kinds].filter(kind => kind !== "null" || kinds.size === 1), example, fitsId: !unfit && count === documents.length}));
}

/** untyped are the columns of a CSV file whose header names no type, and whether all their values are numbers. A number with a zero before it is a code. */
export function untyped({header, documents}) {
  const number = text => text === "" || /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text);
  return new Map((header ?? []).filter(name => !/:(number|boolean|string)$/.test(name)).map(name => [name, documents.every(d => number(d[name])) && documents.some(d => d[name] !== "")]));
}

/**
 * pieces cuts a file between records into pieces of about 16 MiB. A compressed file and a JSON array are one piece. numbers are columns of a
 * CSV file that become numbers: its header says so.
 */
export async function* pieces(file, {type, packed, header: names, delimiter, numbers}) {
  const csv = type === types.csv && !packed, typed = csv && numbers?.size > 0;
  if (!typed && (packed || type === types.json || file.size <= pieceSize)) {
    yield {from: 0, to: file.size, body: file};
    return;
  }
  let header = new Uint8Array(), start = 0;
  if (csv) {
    const head = new Uint8Array(await file.slice(0, pieceSize).arrayBuffer());
    start = recordEnd(head, true);
    header = typed ? toCSV([names.map(name => numbers.has(name) ? name + ":number" : name)], delimiter) : head.slice(0, start);
  }
  for (let from = start, size = pieceSize; from < file.size;) {
    let to = Math.min(from + size, file.size);
    if (to < file.size) {
      const bytes = new Uint8Array(await file.slice(from, to).arrayBuffer()), end = csv ? recordEnd(bytes) : bytes.lastIndexOf(10) + 1;
      if (end === 0) { // a record is larger than that
        size *= 2;
        continue;
      }
      to = from + end;
    }
    yield {from: from === start ? 0 : from, to, body: new Blob([header, file.slice(from, to)])};
    from = to;
    size = pieceSize;
  }
}
