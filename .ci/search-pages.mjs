// The part of search-pages in JavaScript: see there.
import assert from "node:assert/strict";
import {createServer} from "node:http";
import {writeFileSync} from "node:fs";
import {buildSync} from "esbuild";
import {chromium} from "playwright-core";
import {passed, step} from "./steps.mjs";

const host = process.env.SVC;
const send = async (method, path, body) => (await fetch(host + path, {method, headers: {Authorization: "Bearer masterKey", "Content-Type": "application/json"}, body: body && JSON.stringify(body)})).json();
const fill = async (index, settings, documents) => {
  await send("PATCH", `/indexes/${index}/settings`, settings);
  const {taskUid} = await send("POST", `/indexes/${index}/documents`, documents);
  let task;
  do task = await send("GET", "/tasks/" + taskUid); while (["enqueued", "processing"].includes(task.status));
  assert.equal(task.status, "succeeded");
};
const key = (await send("GET", "/keys")).results.find(k => k.actions.join() === "search").key;

const titles = ["The General", "Metropolis", "The Gold Rush", "Nosferatu", "A Trip to the Moon", "Sunrise", "City Lights", "Faust"];
await fill("films", {filterableAttributes: ["genres", "year"], sortableAttributes: ["year"]}, titles.map((title, id) => ({id, title, year: title.startsWith("A Trip") ? 1902 : 1920 + id, genres: id % 2 ? ["horror"] : ["comedy", "drama"]})));
const levels = {hierarchy_lvl2: null, hierarchy_lvl3: null, hierarchy_lvl4: null, hierarchy_lvl5: null, hierarchy_lvl6: null};
await fill("pages", {filterableAttributes: ["genres", "year"]}, [{objectID: "1", hierarchy_lvl0: "Guide", hierarchy_lvl1: "Install", ...levels, content: "Install a package.", url: "https://example.com/install", anchor: "install"}]);

const client = `import {instantMeiliSearch} from "@meilisearch/instant-meilisearch"; const {searchClient} = instantMeiliSearch("${host}", "${key}", {finitePagination: true, keepZeroFacets: true});`;
const sources = {
  plain: `import instantsearch from "instantsearch.js"; import {searchBox, hits, refinementList, sortBy, pagination, stats, rangeInput, clearRefinements, configure, index} from "instantsearch.js/es/widgets"; ${client}
    const at = id => { const node = document.createElement("div"); node.id = id; document.body.append(node); return node; };
    const search = instantsearch({indexName: "films", searchClient});
    search.addWidgets([searchBox({container: at("box")}), stats({container: at("stats")}), refinementList({container: at("genres"), attribute: "genres", searchable: true}),
      sortBy({container: at("sort"), items: [{label: "relevance", value: "films"}, {label: "oldest", value: "films:year:asc"}]}), rangeInput({container: at("year"), attribute: "year"}),
      clearRefinements({container: at("clear")}), configure({hitsPerPage: 3}), pagination({container: at("pages")}),
      hits({container: at("hits"), templates: {item: (hit, {html, components}) => html\`\${components.Highlight({hit, attribute: "title"})}\`}}),
      index({indexName: "pages"}).addWidgets([hits({container: at("others")})])]);
    search.start();`,
  react: `import React from "react"; import {createRoot} from "react-dom/client"; import {InstantSearch, SearchBox, Hits, RefinementList, Highlight} from "react-instantsearch"; ${client}
    const e = React.createElement;
    createRoot(document.getElementById("root")).render(e(InstantSearch, {indexName: "films", searchClient}, e(SearchBox), e(RefinementList, {attribute: "genres"}), e(Hits, {hitComponent: ({hit}) => e(Highlight, {hit, attribute: "title"})})));`,
  vue: `import {createApp} from "vue/dist/vue.esm-bundler.js"; import InstantSearch from "vue-instantsearch/vue3/es"; ${client}
    createApp({data: () => ({searchClient}), template: '<ais-instant-search index-name="films" :search-client="searchClient"><ais-search-box/><ais-refinement-list attribute="genres"/><ais-hits><template v-slot:item="{item}"><ais-highlight :hit="item" attribute="title"/></template></ais-hits></ais-instant-search>'}).use(InstantSearch).mount("#root");`,
  autocomplete: `import {autocomplete} from "@algolia/autocomplete-js"; import {meilisearchAutocompleteClient, getMeilisearchResults} from "@meilisearch/autocomplete-client";
    const searchClient = meilisearchAutocompleteClient({url: "${host}", apiKey: "${key}"});
    autocomplete({container: "#root", detachedMediaQuery: "none", getSources: ({query}) => [{sourceId: "films", getItems: () => getMeilisearchResults({searchClient, queries: [{indexName: "films", query}]}),
      templates: {item: ({item, components, html}) => html\`<p class="item">\${components.Highlight({hit: item, attribute: "title"})}</p>\`}}]});`,
  documentation: `import docsSearchBar from "docs-searchbar.js"; docsSearchBar({hostUrl: "${host}", apiKey: "${key}", indexUid: "pages", inputSelector: "#field", debug: true});`,
};
const pages = createServer((request, answer) => {
  const name = request.url.slice(1);
  if (!name.endsWith(".js")) return answer.setHeader("Content-Type", "text/html").end(`<!doctype html><meta charset="utf-8"><input id="field"><div id="root"></div><script src="/${name}.js"></script>`);
  const source = name.slice(0, -3) + ".entry.js";
  writeFileSync(source, sources[name.slice(0, -3)] ?? "");
  answer.setHeader("Content-Type", "text/javascript").end(buildSync({entryPoints: [source], bundle: true, write: false, define: {"process.env.NODE_ENV": '"production"', global: "window"}}).outputFiles[0].contents);
}).listen(0, "127.0.0.1");
const browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ["--no-sandbox"]}), page = await browser.newPage();
page.setDefaultTimeout(10000);
page.on("pageerror", error => { throw error; });
const open = name => page.goto(`http://127.0.0.1:${pages.address().port}/${name}`);
const sees = (selector, text) => page.locator(selector).filter({hasText: text}).first().waitFor();

await open("plain");
await step("hits of two indexes", async () => { await sees("#hits", "The General"); await sees("#others", "Install"); });
await step("a typo, highlighted", async () => { await page.fill("#box input", "metropolsi"); await sees("#hits mark", "Metropolis"); });
await step("facets", async () => {
  await page.fill("#box input", "");
  await page.locator("#genres input[type=checkbox]").first().check();
  await sees("#stats", "4 results");
  await page.locator("#clear button").click();
  await sees("#stats", "8 results");
});
await step("a search for facet values", async () => {
  await page.fill("#genres input[type=search]", "horr");
  await page.waitForFunction(() => document.querySelectorAll("#genres li").length === 1);
  await page.fill("#genres input[type=search]", "");
});
await step("an order", async () => { await page.selectOption("#sort select", "films:year:asc"); await page.waitForFunction(() => document.querySelector("#hits li")?.textContent.trim() === "A Trip to the Moon"); });
await step("a page", async () => { await page.locator("#pages a").filter({hasText: "2"}).first().click(); await page.waitForFunction(() => document.querySelector("#hits li")?.textContent.trim() === "The Gold Rush" || document.querySelector("#hits li")?.textContent.trim() === "Nosferatu"); });
await step("a range", async () => { await page.locator("#year input").first().fill("1920"); await page.locator("#year button").click(); await sees("#stats", "7 results"); });
for (const name of ["react", "vue"]) {
  await open(name);
  await step(name, async () => { await sees("#root", "The General"); await sees("#root", "horror"); await page.fill("#root input[type=search]", "nosferatoo"); await sees("#root mark", "Nosferatu"); });
}
await open("autocomplete");
await step("autocomplete", async () => { await page.fill("#root input", "metropo"); await sees(".item mark", "Metropo"); });
await open("documentation");
await step("docs-searchbar", async () => { await page.locator("#field").pressSequentially("instal"); await sees("body", "Install a package"); });
assert.ok(passed > 0);
console.log(`${passed} steps work`);
await browser.close();
pages.close();
