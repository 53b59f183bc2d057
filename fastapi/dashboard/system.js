// How the server is: what it holds, what it takes, which features are on.
import {ask} from "./api.js";
import {bytes, count, h, say} from "./dom.js";

export async function systemView({page, signal}) {
  const numbers = h("dl", {class: "numbers"}), table = h("tbody"), features = h("div", {class: "choices"});
  page.append(h("h1", null, "System"), numbers, h("h2", null, "Indexes"),
    h("div", {class: "scroll", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, ["index", "documents", "fields", "vectors", ""].map(t => t ? h("th", {scope: "col"}, t) : h("td")))), table)),
    h("h2", null, "Experimental features"), features,
    h("h2", null, "Copies"), h("p", null, ["dumps", "snapshots"].map(what => [h("button", {type: "button", onclick: async () => {
      try {
        const task = await ask("/" + what, {method: "POST"});
        say(`Task ${task.taskUid} makes it; it lands in the directory of ${what} of the server.`);
      } catch (error) {
        say(error.message, true);
      }
    }}, what === "dumps" ? "Make a dump" : "Make a snapshot"), " "])));

  async function draw() {
    const [health, version, stats] = await Promise.all([ask("/health", {signal}), ask("/version", {signal}), ask("/stats", {signal})]);
    const pair = (name, value) => [h("dt", null, name), h("dd", null, value)];
    numbers.replaceChildren(...[
      pair("health", health.status), pair("svc", version.svcVersion ?? ""), pair("speaks", "v" + version.pkgVersion), pair("commit", String(version.commitSha).slice(0, 12)),
      pair("on disk", bytes(stats.databaseSize)), pair("of it in use", bytes(stats.usedDatabaseSize)), pair("last update", stats.lastUpdate ? new Date(stats.lastUpdate).toLocaleString() : "never"),
    ].flat());
    table.replaceChildren(...Object.entries(stats.indexes).sort(([a], [b]) => a.localeCompare(b)).map(([uid, index]) => h("tr", null,
      h("td", {dir: "auto"}, h("a", {href: "#/search?index=" + encodeURIComponent(uid)}, uid)), h("td", {class: "number"}, count(index.numberOfDocuments)), h("td", {class: "number"}, count(Object.keys(index.fieldDistribution).length)),
      h("td", {class: "number"}, count(index.numberOfEmbeddings ?? 0)), h("td", null, index.isIndexing ? "is being indexed" : ""))));
  }

  async function drawFeatures() {
    try {
      const on = await ask("/experimental-features", {signal});
      features.replaceChildren(...Object.entries(on).map(([name, value]) => h("label", {class: "check"}, h("input", {type: "checkbox", checked: value, onchange: async event => {
        try {
          await ask("/experimental-features", {method: "PATCH", body: {[name]: event.target.checked}});
        } catch (error) {
          event.target.checked = !event.target.checked;
          say(error.message, true);
        }
      }}), " ", name)));
    } catch (error) {
      if (!signal.aborted) features.replaceChildren(h("p", {class: "soft"}, error.message));
    }
  }

  await Promise.all([draw(), drawFeatures()]);
  (async () => {
    while (!signal.aborted) {
      await new Promise(resolve => setTimeout(resolve, 2000));
      if (signal.aborted || document.hidden) continue;
      try {
        await draw();
      } catch (error) {
        if (!signal.aborted) say(error.message, true);
      }
    }
  })();
}
