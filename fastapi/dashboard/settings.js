// The settings of an index, each as JSON, with what a change means for the documents that are there.
import {ask, ended, indexPath} from "./api.js";
import {chooser, indexes} from "./indexes.js";
import {h, say} from "./dom.js";

const words = "all documents are read and indexed again", columns = "values of the new fields are gathered from all documents", nothing = "nothing is indexed again";

/** costs say what happens when a setting changes. */
const costs = {
  searchableAttributes: words + ", unless only the order changes", displayedAttributes: nothing, filterableAttributes: columns, sortableAttributes: columns, rankingRules: nothing,
  stopWords: words, nonSeparatorTokens: words, separatorTokens: words, dictionary: words, synonyms: nothing, distinctAttribute: nothing, proximityPrecision: nothing,
  typoTolerance: nothing, faceting: nothing, pagination: nothing, embedders: "vectors are made for documents that lack them: this may call a provider, and cost money", searchCutoffMs: nothing,
  localizedAttributes: words, facetSearch: nothing, prefixSearch: words, chat: nothing, foreignKeys: nothing,
};

const kebab = name => name.replace(/[A-Z]/g, letter => "-" + letter.toLowerCase());

export async function settingsView({page, state, remember, signal, reopen}) {
  const all = await indexes(signal);
  let index = state.get("index") ?? all?.[0]?.uid ?? "";
  const list = h("div");
  page.append(h("h1", null, "Settings"), h("div", {class: "bar"}, chooser(all, index, uid => {
    index = uid;
    draw();
  }), h("button", {type: "button", class: "danger", onclick: async () => {
    if (!index || prompt(`Deleting ${index} deletes its documents and settings. Type its name to do it.`) !== index) return;
    try {
      await ended(await ask(indexPath(index), {method: "DELETE"}));
      remember({});
      location.hash = "#/settings";
      reopen();
    } catch (error) {
      say(error.message, true);
    }
  }}, "Delete the index")), list);

  async function draw() {
    remember({index});
    if (!index) return;
    let settings;
    try {
      settings = await ask(indexPath(index, "/settings"), {signal});
    } catch (error) {
      if (!signal.aborted) say(error.message, true);
      return list.replaceChildren();
    }
    list.replaceChildren(...Object.entries(settings).map(([name, value]) => one(name, value)));
  }

  function one(name, value) {
    const written = JSON.stringify(value, null, 2);
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
      try {
        const done = await ended(await ask(indexPath(index, "/settings"), {method: "PATCH", body: {[name]: body}}));
        if (done.error) throw new Error(done.error.message);
        say(`${name} of ${index} is changed.`);
        await draw();
      } catch (error) {
        wrong.textContent = error.message;
        say("");
      }
    };
    const save = h("button", {type: "button", class: "main", disabled: true, onclick: () => change(JSON.parse(text.value))}, "Save");
    return h("section", {class: "setting", id: kebab(name)}, h("h2", null, name), text, wrong,
      h("p", {class: "bar"}, save, h("button", {type: "button", onclick: () => change(null)}, "Back to the default"), h("span", {class: "soft"}, `On a change ${costs[name] ?? "some documents may be indexed again"}.`)));
  }

  await draw();
}
