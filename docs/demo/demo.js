// InstantSearch over svc: the widgets come from what the index answers. The key stays in memory.
(() => {
  "use strict";
  const {widgets} = instantsearch;
  const form = document.getElementById("open"), main = document.querySelector("main"), said = document.getElementById("said");
  const index = document.getElementById("index"), key = document.getElementById("key");
  const shown = 6; // fields of a hit
  let running = null;

  async function ask(path, body) {
    const headers = {"Content-Type": "application/json"};
    if (key.value) headers.Authorization = "Bearer " + key.value;
    const answer = await fetch(path, body ? {method: "POST", headers, body: JSON.stringify(body)} : {headers});
    const value = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(value.message), {status: answer.status});
    return value;
  }

  /** box adds an element to the list of facets. */
  function box(name) {
    const place = document.createElement("div"), title = document.createElement("h2");
    title.textContent = name;
    document.getElementById("facets").append(title, place);
    return place;
  }

  /** one is a hit: a title and its first fields, with what matched. */
  function one(hit, {html, components}) {
    const names = Object.keys(hit._highlightResult ?? {}).filter(name => !name.startsWith("_"));
    const title = ["title", "name"].find(name => typeof hit[name] === "string") ?? names[0];
    const text = name => typeof hit[name] === "string" ? components.Highlight({hit, attribute: [name]}) : Array.isArray(hit[name]) ? hit[name].map(v => typeof v === "object" ? JSON.stringify(v) : String(v)).join(", ") : JSON.stringify(hit[name]);
    return html`<h3>${title === undefined ? "" : text(title)}</h3><dl>${names.filter(name => name !== title).slice(0, shown).map(name => html`<dt>${name}</dt><dd>${text(name)}</dd>`)}</dl>`;
  }

  async function open() {
    said.textContent = "";
    let known;
    try {
      known = await ask(`/indexes/${encodeURIComponent(index.value)}/search`, {limit: 0, facets: ["*"]});
    } catch (error) {
      main.hidden = true;
      said.textContent = error.message;
      return;
    }
    running?.dispose();
    for (const id of ["box", "facets", "stats", "hits", "pages"]) document.getElementById(id).replaceChildren();
    const made = instantMeiliSearch(location.origin, key.value, {placeholderSearch: true, finitePagination: true});
    running = instantsearch({indexName: index.value, searchClient: made.searchClient ?? made});
    running.on("error", ({error}) => { said.textContent = error.message; });
    running.addWidgets([
      widgets.searchBox({container: "#box", placeholder: "Search", autofocus: true}), widgets.stats({container: "#stats"}), widgets.configure({hitsPerPage: 10}),
      widgets.hits({container: "#hits", escapeHTML: true, templates: {item: one, empty: (_, {html}) => html`Nothing matches.`}}), widgets.pagination({container: "#pages"}),
      ...Object.keys(known.facetDistribution ?? {}).filter(name => !name.startsWith("_geo")).sort().map(name => known.facetStats?.[name]
        ? widgets.rangeInput({container: box(name), attribute: name, templates: {separatorText: () => "to", submitText: () => "Go"}})
        : widgets.refinementList({container: box(name), attribute: name, limit: 10})),
    ]);
    running.start();
    main.hidden = false;
  }

  form.addEventListener("submit", event => {
    event.preventDefault();
    open();
  });

  (async () => {
    index.value = new URLSearchParams(location.search).get("index") ?? "";
    try {
      index.value ||= (await ask("/indexes?limit=1")).results[0]?.uid ?? "";
      if (index.value) await open();
      else {
        const link = document.createElement("a");
        link.href = "/";
        link.textContent = "Load sample films";
        said.replaceChildren("There is no index yet. ", link, " on the dashboard, then reload this page.");
      }
    } catch (error) {
      said.textContent = error.status === 401 ? "There is a master key: enter the name of an index and a search key." : error.message;
    }
  })();
})();
