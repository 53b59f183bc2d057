// The page: who is asked for a key, which part is shown, and what the address bar remembers of it (never a key).
import {ask, hasKey, indexPath, Silence, useKey, whenBack} from "./api.js";
import {h, later, say, whenFailing} from "./dom.js";
import {searchView} from "./search.js";
import {documentsView} from "./documents.js";
import {settingsView} from "./settings.js";
import {rulesView} from "./rules.js";
import {analyticsView} from "./analytics.js";
import {tasksView} from "./tasks.js";
import {keysView} from "./keys.js";
import {systemView} from "./system.js";

const views = {search: searchView, documents: documentsView, settings: settingsView, rules: rulesView, analytics: analyticsView, tasks: tasksView, keys: keysView, system: systemView};
const main = document.getElementById("main"), nav = document.getElementById("nav"), keyForm = document.getElementById("key"), forget = document.getElementById("forget");

let stop = null; // ends what the view that is shown has going on
let part = "";
let at = ""; // the address of what is shown: as it was opened, or as remember wrote it since
let kept = null; // what the address is to remember, until it does
let index = ""; // that was chosen last

const ofIndex = ["search", "documents", "settings"]; // the parts that show an index
const partOf = link => link.hash.slice(2).split("?")[0];

/** choose has the links to other parts lead to the index that is chosen here. */
function choose(uid) {
  const links = [...nav.querySelectorAll("a")].filter(link => ofIndex.includes(partOf(link))), other = uid && uid !== index;
  index = uid;
  for (const link of links) link.hash = `#/${partOf(link)}${index && "?" + new URLSearchParams({index})}`;
  if (other && links.some(link => link.hidden)) offer(); // the key may open more of this index
}

/** place is the part and its state that the address bar names: #/part?name=value. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return {part: Object.hasOwn(views, path) ? path : "search", state: new URLSearchParams(query ?? "")};
}

/**
 * remember has the state of a part written into the address bar, without leaving it, when it has not changed for a moment: browsers
 * refuse to write more than some addresses a second, and load the icon anew with each.
 */
function remember(state) {
  kept = state;
  if (ofIndex.includes(part)) choose(state.index ?? "");
  writeLater();
}

function write() {
  const state = Object.entries(kept ?? {}).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  if (!kept || location.hash !== at) return; // else a link was followed a moment ago, and open is about to hear of it
  kept = null;
  const query = new URLSearchParams(state).toString();
  history.replaceState(null, "", `#/${part}${query && "?" + query}`);
  at = location.hash;
}
const writeLater = later(write, 300);
addEventListener("click", write, true); // it may be on a link: who comes back finds what was left
// So do those who leave or load the page again by keys, or go back by a button of the mouse.
addEventListener("mousedown", write, true);
addEventListener("keydown", event => (event.altKey || event.ctrlKey || event.metaKey || event.key === "F5") && write(), true);

/** loading is shown, after half a second, until a part has content. */
const loading = () => h("p", {class: "loading soft", role: "status"}, "Loading…");

async function open() {
  const opened = place();
  stop?.abort();
  stop = new AbortController();
  at = location.hash;
  kept = null;
  part = opened.part;
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close(); // it was of the part that is left
  for (const link of nav.querySelectorAll("a")) {
    if (partOf(link) === part) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  say("");
  const page = h("div", {class: "view " + part});
  const hint = loading();
  main.replaceChildren(page, hint);
  const {signal} = stop;
  const reopen = () => {
    if (signal.aborted) return;
    write(); // what the part is opened with
    return open();
  };
  try {
    await views[part]({page, state: opened.state, signal, remember: state => signal.aborted || remember(state), reopen});
    hint.remove();
  } catch (error) {
    hint.remove();
    if (signal.aborted) return;
    failed(error);
    if (error instanceof Silence) whenBack(() => {
      write();
      return begin();
    }, signal);
  }
}

/** wrong reports whether the server knows no such key. One that lacks a right has the same code. */
const wrong = error => hasKey() && error.code === "invalid_api_key" && error.message === "The API key is unknown.";

/** failed tells what went wrong; where the key is why, also one that was revoked since, it asks for another. */
function failed(error) {
  if (error.status !== 401 && error.status !== 403) return say(error.message, true);
  keyForm.hidden = false;
  document.getElementById("key-value").setAttribute("aria-invalid", String(wrong(error)));
  if (wrong(error)) return say("The server refuses this key: it is wrong, or it was revoked. Check that you copied all of it.", true);
  if (hasKey()) return say("The server refuses this key: " + error.message, true);
  say("This server has a master key. Enter it or an API key. A search key opens the search; an admin key opens everything.");
  document.getElementById("key-value").focus();
}
whenFailing(failed);

keyForm.addEventListener("submit", event => {
  event.preventDefault();
  const input = document.getElementById("key-value");
  useKey(input.value.trim());
  input.removeAttribute("aria-invalid");
  input.value = "";
  begin();
});
forget.addEventListener("click", () => {
  useKey("");
  begin();
});
addEventListener("hashchange", open);

// The address keeps the colors, before the part that is shown: browser storage holds nothing of this page.
const themes = [["", "◐", "as the system"], ["light", "☀", "light"], ["dark", "☾", "dark"]];
const toggle = document.getElementById("theme"), themeNow = () => Math.max(0, themes.findIndex(([name]) => name === new URLSearchParams(location.search).get("theme")));

function paint() {
  const [name, sign, told] = themes[themeNow()], root = document.documentElement;
  if (name) root.dataset.theme = name;
  else delete root.dataset.theme;
  toggle.textContent = sign;
  toggle.setAttribute("aria-label", "Colors: " + told);
}
paint();
toggle.addEventListener("click", () => {
  const [name] = themes[(themeNow() + 1) % themes.length];
  history.replaceState(null, "", location.pathname + (name && "?theme=" + name) + location.hash);
  paint();
});

/** needs are what a key must be able to read for a part to be of use; a function takes the uid of an index. */
const needs = {
  documents: uid => indexPath(uid, "/documents?limit=0"), settings: uid => indexPath(uid, "/settings"), rules: "/dynamic-search-rules",
  analytics: "/analytics/filters?limit=1", tasks: "/tasks?limit=1", keys: "/keys?limit=1", system: "/stats",
};

/** sample returns an index to try a key on: the chosen one, or the first; "" if there is none, null if the key may not list them. */
async function sample() {
  const chosen = index || place().state.get("index");
  if (chosen) return chosen;
  try {
    return (await ask("/indexes?limit=1")).results[0]?.uid ?? "";
  } catch (error) {
    return error.status === 403 ? null : "";
  }
}

let offers = 0;

/** offer shows the parts that the key opens; without a key, all. */
async function offer() {
  const mine = ++offers, uid = hasKey() && sample(), opens = async need => {
    if (!hasKey() || !need) return true;
    const named = typeof need === "function" ? await uid : need;
    if (!named) return named === ""; // without an index, Documents offers to upload a file
    try {
      await ask(named === need ? need : need(named), need === needs.rules ? {body: {limit: 1}} : {});
      return true;
    } catch (error) {
      return error.status !== 403;
    }
  };
  await Promise.all([...nav.querySelectorAll("a")].map(async link => {
    const opened = await opens(needs[partOf(link)]);
    if (mine === offers) link.hidden = !opened; // no other key was entered since
  }));
}

async function begin() {
  nav.hidden = false;
  document.body.classList.remove("locked");
  if (!main.querySelector(".view")) main.replaceChildren(loading());
  offer();
  try {
    const version = await ask("/version");
    document.getElementById("version").textContent = version.svcVersion ?? version.pkgVersion;
  } catch (error) {
    if (error.status === 401 || wrong(error)) {
      nav.hidden = true;
      forget.hidden = true;
      document.body.classList.add("locked");
      stop?.abort();
      main.replaceChildren();
      return failed(error);
    }
    // A key that may not read the version may search all the same.
  }
  forget.hidden = !hasKey();
  if (keyForm.contains(document.activeElement)) main.focus(); // it is hidden
  keyForm.hidden = true;
  await open();
}

begin();
