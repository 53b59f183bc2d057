// The settings of an index, each as JSON, with what a change means for the documents that are there.
import {ask, ended, indexPath, turns} from "./api.js";
import {chooser, indexes} from "./indexes.js";
import {h, json, say} from "./dom.js";

const words = "all documents are read and indexed again", columns = "values of the new fields are gathered from all documents", nothing = "nothing is indexed again";

/** costs say what happens when a setting changes. */
const costs = {
  searchableAttributes: words + ", unless only the order or the groups change", displayedAttributes: nothing, filterableAttributes: columns, sortableAttributes: columns, rankingRules: nothing,
  stopWords: words, nonSeparatorTokens: words, separatorTokens: words, dictionary: words, synonyms: nothing, distinctAttribute: nothing, proximityPrecision: nothing,
  typoTolerance: nothing, faceting: nothing, pagination: nothing, embedders: "vectors are made for documents that lack them: this may call a provider, and cost money", searchCutoffMs: nothing,
  localizedAttributes: words, facetSearch: nothing, prefixSearch: words, chat: nothing, foreignKeys: nothing,
  timeToLive: columns + ", and expired documents are hidden at once and deleted later", scoreFunctions: columns,
};

const kebab = name => name.replace(/[A-Z]/g, letter => "-" + letter.toLowerCase());

/** changes are what a task is told, as settings of several members are not replaced but merged: an embedder that is gone is null, and a key that was shown masked is left out. */
function changes(name, now, wanted) {
  if (name !== "embedders" || !wanted || !now) return wanted;
  const told = Object.fromEntries(Object.keys(now).map(embedder => [embedder, null]));
  for (const [embedder, source] of Object.entries(wanted)) {
    const {apiKey, ...rest} = source ?? {};
    told[embedder] = source && (apiKey === now[embedder]?.apiKey ? rest : source);
  }
  return told;
}

export async function settingsView({page, state, remember, signal, reopen}) {
  const all = await indexes(signal);
  let index = state.get("index") ?? all?.[0]?.uid ?? "";
  const list = h("div"), turn = turns(signal);
  page.append(h("h1", null, "Settings"));
  if (all?.length === 0) return page.append(h("p", {class: "soft"}, "There is no index yet: it is made with its first document."));
  page.append(h("div", {class: "bar"}, chooser(all, index, uid => {
    index = uid;
    return draw();
  }), h("button", {type: "button", class: "danger", onclick: async () => {
    if (!index || prompt(`Deleting ${index} deletes its documents and settings. Type its name to do it.`) !== index) return;
    say("Waiting for the task…");
    const done = await ended(await ask(indexPath(index), {method: "DELETE"}));
    if (done.error) throw new Error(done.error.message);
    remember({});
    await reopen();
  }}, "Delete the index")), list);

  async function draw() {
    const own = turn(), uid = index;
    remember({index});
    list.replaceChildren();
    if (!uid) return;
    const settings = await ask(indexPath(uid, "/settings"), {signal: own});
    if (own.aborted) return;
    say("");
    list.replaceChildren(...Object.entries({timeToLive: null, scoreFunctions: null, ...settings}).map(([name, value]) => one(uid, name, value)));
  }

  /** one is a setting of an index; saving it leaves what is typed in others alone. */
  function one(uid, name, value) {
    const written = json(value);
    const text = h("textarea", {value: written, rows: Math.min(14, written.split("\n").length), spellcheck: false, "aria-label": name, oninput: () => {
      save.disabled = text.value === written;
      try {
        JSON.parse(text.value);
        wrong.textContent = "";
      } catch (error) {
        wrong.textContent = error.message;
        save.disabled = true;
      }
    }});
    const wrong = h("p", {class: "bad", role: "alert"});
    const change = async body => {
      say("Waiting for the task…");
      wrong.textContent = "";
      try {
        const done = await ended(await ask(indexPath(uid, "/settings"), {method: "PATCH", body: {[name]: body}}));
        if (done.error) throw new Error(done.error.message);
        const now = (await ask(indexPath(uid, "/settings")))[name];
        if (section.isConnected) section.replaceWith(one(uid, name, now));
        say(`${name} of ${uid} is changed.`);
      } catch (error) {
        say("");
        wrong.textContent = error.message;
        if (error.status === 401 || error.status === 403) throw error; // another key is asked for
      }
    };
    const cost = costs[name] ?? "some documents may be indexed again";
    const save = h("button", {type: "button", class: "main", disabled: true, onclick: () => change(changes(name, value, JSON.parse(text.value)))}, "Save");
    const section = h("section", {class: "setting", id: kebab(name)}, h("h2", null, name), text, wrong,
      h("p", {class: "bar"}, save, h("button", {type: "button", onclick: () => confirm(`Set ${name} of ${uid} back to its default? On a change ${cost}.`) && change(null)}, "Back to the default"), h("span", {class: "soft"}, `On a change ${cost}.`)));
    return section;
  }

  await draw();
}
