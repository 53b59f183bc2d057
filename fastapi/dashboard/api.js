// Requests to the server that this page comes from. The key is kept in this variable alone: it goes with the page.
import {again} from "./dom.js";

let key = "";

export function useKey(value) { key = value; }
export const hasKey = () => key !== "";
/** hasToken tells whether the key is a tenant token, which may hide documents. */
export const hasToken = () => key.split(".").length === 3;

/** Failure is an error that the server answered with. */
export class Failure extends Error {
  constructor(status, answer) {
    super(answer?.message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = answer?.code;
  }
}

/** Silence is the error of a request that no server answered. */
export class Silence extends Error {}

/** exact keeps numbers that JavaScript would round as they are written, where the browser can do that. */
const exact = (_, value, context) => typeof value === "number" && context?.source !== undefined && JSON.rawJSON && !Number.isSafeInteger(value) && String(value) !== context.source
  ? JSON.rawJSON(context.source) : value;

/** reads tells whether a request changes nothing, by its method and the end of its path. */
const reads = (path, method) => method === "GET" || method === "POST" && /\/(search|multi-search|facet-search|similar|fetch|compare|dynamic-search-rules)$/.test(path);

const pause = (wait, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, wait);
  signal?.addEventListener("abort", () => {
    clearTimeout(timer);
    reject(signal.reason);
  }, {once: true});
});

/**
 * answered sends a request and returns its answer with the text of it. Browsers drop all requests in progress when the network of their
 * machine changes, as with another Wi-Fi, so a request that changes nothing is sent again once.
 */
async function answered(path, options) {
  const send = async () => {
    const answer = await fetch(path, options);
    return [answer, await answer.text()];
  };
  try {
    return await send();
  } catch (error) {
    if (error.name === "AbortError" || !reads(path.split("?")[0], options.method)) throw error;
    await pause(300, options.signal);
    return send();
  }
}

/**
 * ask sends a request and returns the JSON of its answer. options: method, body (an object, or JSON that is sent as it stands), signal,
 * whole (numbers that JavaScript would round become objects of JSON.rawJSON).
 */
export async function ask(path, {method, body, signal, whole} = {}) {
  const headers = {};
  if (key) headers.Authorization = "Bearer " + key;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer, text;
  try {
    [answer, text] = await answered(path, {
      method: method ?? (body === undefined ? "GET" : "POST"), headers, signal, cache: "no-store",
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Silence("The server does not answer. Is it running?", {cause: error});
  }
  let value = null;
  try {
    value = text === "" ? null : JSON.parse(text, whole ? exact : undefined);
  } catch {
    value = text;
  }
  if (!answer.ok) throw new Failure(answer.status, value);
  return value;
}

/** whenBack calls f once a server that did not answer is back, perhaps after a restart. It stops waiting when signal ends. */
export const whenBack = (f, signal) => again(async () => {
  await ask("/health", {signal});
  await f();
}, 2000, signal);

/** turns gives each request of a kind a signal that ends when the next one begins: an older answer is never shown. */
export function turns(signal) {
  let running = null;
  return () => {
    running?.abort();
    running = new AbortController();
    return AbortSignal.any([signal, running.signal]);
  };
}

/** chunks sends a request and yields its streamed answer as texts. named sends a key even if none was entered. */
export async function* chunks(path, body, signal, named) {
  const answer = await fetch(path, {method: "POST", headers: {"Content-Type": "application/json", ...(key || named) && {Authorization: "Bearer " + (key || "none")}}, body: JSON.stringify(body), signal, cache: "no-store"});
  if (!answer.ok) throw new Failure(answer.status, await answer.json().catch(() => null));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let {done, value} = await reader.read(); !done; {done, value} = await reader.read()) yield value;
}

/** download requests a file, and returns the answer before its body has come. */
export async function download(path, signal) {
  const answer = await fetch(path, {headers: key ? {Authorization: "Bearer " + key} : {}, signal, cache: "no-store"});
  if (!answer.ok) throw new Failure(answer.status, await answer.json().catch(() => null));
  return answer;
}

/** send sends a body of any size with headers, and calls progress with the part that is sent, from 0 to 1. */
export function send(path, method, headers, body, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, path);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    if (key) request.setRequestHeader("Authorization", "Bearer " + key);
    request.upload.onprogress = event => event.lengthComputable && progress(event.loaded / event.total);
    request.onerror = () => reject(new Error("The connection broke before the server had everything."));
    request.onload = () => {
      let value = null;
      try { value = JSON.parse(request.responseText); } catch { /* no JSON */ }
      if (request.status < 300) resolve(value);
      else reject(new Failure(request.status, value));
    };
    request.send(body);
  });
}

/** ended waits until a task has ended, and returns it. */
export async function ended(task) {
  for (let pause = 50; ; pause = Math.min(pause * 1.5, 1000)) {
    const now = await ask("/tasks/" + task.taskUid);
    if (now.status !== "enqueued" && now.status !== "processing") return now;
    await new Promise(resolve => setTimeout(resolve, pause));
  }
}

export const indexPath = (uid, rest = "") => `/indexes/${encodeURIComponent(uid)}${rest}`;

/** shellQuoted is a text as a shell takes it. */
export const shellQuoted = text => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * curlFile is the command that downloads a file. resumes: it goes on with a file that is there in part, which is right only if the file never
 * changes: curl does not check that.
 */
export const curlFile = (path, name, resumes) => `curl -f ${resumes ? "-C - " : ""}-o ${shellQuoted(name)} ${key ? "-H \"Authorization: Bearer $KEY\" " : ""}${shellQuoted(location.origin + path)}`;

/** curl is the command that does a search as this page does it. The key's place is named, not filled in. */
export function curl(path, body) {
  return `curl ${shellQuoted(location.origin + path)} \\\n  -H 'Content-Type: application/json' \\\n${key ? "  -H \"Authorization: Bearer $KEY\" \\\n" : ""}  -d ${shellQuoted(JSON.stringify(body))}`;
}
