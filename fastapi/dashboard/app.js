// The page: who is asked for a key, which part is shown, and what the address bar remembers of it (never a key).
import {ask, hasKey, useKey} from "./api.js";
import {h, say} from "./dom.js";
import {searchView} from "./search.js";
import {documentsView} from "./documents.js";
import {settingsView} from "./settings.js";
import {tasksView} from "./tasks.js";
import {keysView} from "./keys.js";
import {systemView} from "./system.js";

const views = {search: searchView, documents: documentsView, settings: settingsView, tasks: tasksView, keys: keysView, system: systemView};
const main = document.getElementById("main"), nav = document.getElementById("nav"), keyForm = document.getElementById("key");

let stop = null; // ends what the view that is shown has going on
let part = "";

/** place is the part and its state that the address bar names: #/part?name=value. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return {part: Object.hasOwn(views, path) ? path : "search", state: new URLSearchParams(query ?? "")};
}

/** remember writes the state of a part into the address bar, without leaving it. */
function remember(state) {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) if (value !== "" && value !== undefined && value !== null) kept.set(name, value);
  const query = kept.toString();
  history.replaceState(null, "", `#/${part}${query && "?" + query}`);
}

async function open() {
  const at = place();
  stop?.abort();
  stop = new AbortController();
  part = at.part;
  for (const link of nav.querySelectorAll("a")) {
    if (link.hash === "#/" + part) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  say("");
  const page = h("div", {class: "view " + part});
  main.replaceChildren(page);
  const own = stop;
  try {
    await views[part]({page, state: at.state, remember: state => own.signal.aborted || remember(state), signal: own.signal, reopen: open});
  } catch (error) {
    if (own.signal.aborted) return;
    if (error.code === "missing_master_key") say(error.message, true);
    else if (error.status === 401 || error.status === 403) refused(error);
    else say(error.message, true);
  }
}

/** refused asks for a key, or for another one. */
function refused(error) {
  keyForm.hidden = false;
  say(hasKey() ? "This key may not do that: " + error.message : "There is a master key. Enter it, or an API key: a search key opens the search, an admin key everything.", hasKey());
  if (!hasKey()) document.getElementById("key-value").focus();
}

keyForm.addEventListener("submit", event => {
  event.preventDefault();
  const input = document.getElementById("key-value");
  useKey(input.value.trim());
  input.value = "";
  document.getElementById("forget").hidden = !hasKey();
  begin();
});
document.getElementById("forget").addEventListener("click", () => {
  useKey("");
  document.getElementById("forget").hidden = true;
  begin();
});
addEventListener("hashchange", open);

/** needs are what a key must be able to read for a part to be of use. */
const needs = {documents: "/indexes?limit=1", settings: "/indexes?limit=1", tasks: "/tasks?limit=1", keys: "/keys?limit=1", system: "/stats"};

/** offer shows the parts that the key opens; without a key, all. */
async function offer() {
  const answers = new Map();
  for (const link of nav.querySelectorAll("a")) {
    const need = hasKey() && needs[link.hash.slice(2)];
    if (need && !answers.has(need)) answers.set(need, ask(need).then(() => true, error => error.status !== 403));
    link.hidden = need ? !await answers.get(need) : false;
  }
}

async function begin() {
  nav.hidden = false;
  offer();
  try {
    const version = await ask("/version");
    document.getElementById("version").textContent = version.svcVersion ?? version.pkgVersion;
  } catch (error) {
    if (error.status === 401 && !hasKey()) {
      nav.hidden = true;
      main.replaceChildren();
      return refused(error);
    }
    keyForm.hidden = false; // a key that may not read the version may search all the same
  }
  await open();
}

begin();
