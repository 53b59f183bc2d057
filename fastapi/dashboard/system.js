// How the server is: what it does just now, what it holds and takes, which features are on.
import {ask, indexPath, turns} from "./api.js";
import {segments, series} from "./chart.js";
import {again, brief, bytes, count, h, redraw, select, tabs} from "./dom.js";
import {chatsView, toolsView} from "./chat.js";
import {copiesView} from "./copies.js";
import {featuresView} from "./features.js";
import {groupView} from "./group.js";
import {logsView} from "./logs.js";
import {networkView} from "./network.js";
import {aliasesView, webhooksView} from "./webhooks.js";

const drawn = 30; // indexes whose segments are drawn: the largest

const views = [["overview", "Overview"], ["aliases", "Aliases"], ["webhooks", "Webhooks"], ["network", "Network"], ["group", "Group"], ["chats", "Chats"], ["mcp", "MCP"], ["logs", "Live log"], ["features", "Experimental features"], ["copies", "Dumps and snapshots"]];
const shows = {overview, aliases: aliasesView, webhooks: webhooksView, network: networkView, group: groupView, chats: chatsView, mcp: toolsView, logs: logsView, features: featuresView, copies: copiesView};

export async function systemView({page, state, signal, remember}) {
  const nav = h("div"), box = h("div"), turn = turns(signal);
  page.append(h("h1", null, "System"), nav, box);
  async function open(id) {
    const own = turn();
    remember({view: id === "overview" ? "" : id});
    nav.replaceChildren(tabs("Parts of the system", views, id, next => open(next).then(() => nav.querySelector("[aria-current]")?.focus())));
    box.replaceChildren();
    await shows[id](box, own);
  }
  await open(views.find(([id]) => id === state.get("view"))?.[0] ?? "overview");
}

const mostRows = 500; // of the table of indexes
const dayPause = 60000; // milliseconds between two looks at the figures of a day

/** held fills gaps with the value before: while no request comes, nothing is measured, and memory and tasks stay as they are. */
function held(values) {
  let last = null;
  return values.map(v => last = v ?? last);
}

async function overview(box, signal) {
  let day = null, dayAt = 0; // the last figures of a day, and when they came
  const spans = select([["", "The last five minutes"], ["day", "The last 24 hours"]], "", () => drawLive(), "Time span");
  const numbers = h("dl", {class: "numbers"}), table = h("tbody"), live = h("div", {class: "graphs"}), current = h("dl", {class: "numbers"}), published = h("section", {class: "setting", hidden: true}), parts = h("div", {class: "graphs"});
  box.append(h("div", {class: "pair"}, h("section", {class: "setting"}, h("h2", null, "Server"), numbers), h("section", {class: "setting"}, h("h2", null, "Now"), current)), published, h("div", {class: "bar"}, h("h2", null, "Over time"), spans), live, h("h2", null, "Indexes"),
    h("div", {class: "scroll", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, ["Index", "Documents", "Fields", "Vectors", ""].map((t, i) => t ? h("th", {scope: "col", class: i > 0 && "number"}, t) : h("td")))), table)),
    h("h2", null, "Segments"), parts);

  async function draw() {
    const [health, version, stats] = await Promise.all([ask("/health", {signal}), ask("/version", {signal}), ask("/stats", {signal})]);
    const pair = (name, value) => [h("dt", null, name), h("dd", null, value)];
    numbers.replaceChildren(...[
      pair("Health", health.status), pair("Version", version.svcVersion ?? ""), pair("API version", "v" + version.pkgVersion), pair("Commit", String(version.commitSha).slice(0, 12)),
      pair("Size on disk", bytes(stats.databaseSize)), pair("In use", bytes(stats.usedDatabaseSize)), pair("Last update", stats.lastUpdate ? new Date(stats.lastUpdate).toLocaleString() : "never"),
    ].flat());
    const all = Object.entries(stats.indexes).sort(([a], [b]) => a.localeCompare(b)), more = all.length - mostRows;
    redraw(table, [...all.slice(0, mostRows).map(([uid, index]) => h("tr", null,
      h("td", {class: "name", dir: "auto"}, h("a", {href: "#/search?index=" + encodeURIComponent(uid), "data-at": uid}, brief(uid, 60))), h("td", {class: "number"}, count(index.numberOfDocuments)), h("td", {class: "number"}, count(Object.keys(index.fieldDistribution).length)),
      h("td", {class: "number"}, count(index.numberOfEmbeddings ?? 0)), h("td", null, index.isIndexing ? "is being indexed" : ""))), ...more > 0 ? [h("tr", null, h("td", {class: "soft", colSpan: 5}, `and ${count(more)} more: open one by its name under Search`))] : []]);
    await Promise.all([drawLive(), drawSegments(stats)]);
  }

  /** drawLive shows what the server has done of late; a key may not be allowed to know. */
  async function drawLive() {
    let m;
    try {
      m = await ask("/metrics/recent", {signal});
      if (spans.value && Date.now() - dayAt > dayPause) [day, dayAt] = [await ask("/metrics/recent?day=true", {signal}), Date.now()];
    } catch (error) {
      if (error.status !== 403) throw error;
      live.replaceChildren(h("p", {class: "soft"}, error.message));
      return;
    }
    if (spans.value) m = {...day, now: m.now};
    const rate = v => `${v >= 10 || v === 0 ? Math.round(v) : v.toFixed(1)} a second`, ms = v => `${v >= 10 || v === 0 ? Math.round(v) : v.toFixed(2)} ms`, share = v => `${Math.round(100 * v)}%`;
    const span = m.steps.length * m.stepSeconds, of = f => m.steps.map(f), time = which => of(s => s.searchMs?.[which] ?? null), now = m.now;
    const hits = of(s => s.cacheHits + s.cacheMisses > 0 ? s.cacheHits / (s.cacheHits + s.cacheMisses) : null);
    const pair = (name, value) => [h("dt", null, name), h("dd", null, value)];
    live.replaceChildren(...m.steps.length === 0 ? [h("p", {class: "soft"}, spans.value ? "The first numbers are there in five minutes. They go when the server stops." : "The first numbers are there in a few seconds.")] : [
      series("Searches", [["", of(s => s.searches / m.stepSeconds)]], rate, span), series("All requests", [["", of(s => s.requests / m.stepSeconds)], ["failed", of(s => s.failed / m.stepSeconds)]], rate, span),
      series("Time of a search", [["p50", time("p50")], ["p95", time("p95")], ["p99", time("p99")]], ms, span),
      series("Memory", [["", held(of(s => s.memoryBytes))]], bytes, span), series("Tasks that wait or run", [["", held(of(s => s.tasks))]], count, span), series("Results found in the cache", [["", hits]], share, span)]);
    current.replaceChildren(...[pair("Searches", `${count(now.searchesRunning)} running, ${count(now.searchesWaiting)} waiting of ${count(now.searchQueueSize)}`),
      pair("Tasks", `${count(now.tasksEnqueued)} waiting, ${count(now.tasksProcessing)} running${now.oldestTaskSeconds > 1 ? `, the oldest since ${Math.round(now.oldestTaskSeconds)} s` : ""}`),
      pair("Memory", `${bytes(now.memoryBytes)}${now.residentBytes === null ? "" : `, with mapped files ${bytes(now.residentBytes)}`}`), pair("Memory of requests", `${bytes(now.requestBytes)} of ${bytes(now.requestBytesLimit)}`),
      pair("Result cache", bytes(now.cacheBytes)), pair("Connections", count(now.connections))].flat());
    const p = now.publication;
    published.hidden = !p;
    if (p) published.replaceChildren(h("h2", null, "Publication"), h("dl", {class: "numbers"}, [pair("Bucket", p.store), pair("Position", p.position || "none yet"), pair("Lag", p.lagSeconds === null ? "unknown" : `${p.lagSeconds.toFixed(1)} s`),
      pair("Uploaded since the start", bytes(p.sentBytes)), pair("Failed requests", count(p.errors)), pair("Damaged objects", count(p.damagedObjects)), pair("Problem", p.problem || "none")].flat()));
  }

  async function drawSegments(stats) {
    const largest = Object.entries(stats.indexes).sort(([, a], [, b]) => b.numberOfDocuments - a.numberOfDocuments).slice(0, drawn);
    const all = await Promise.all(largest.map(async ([uid]) => {
      try {
        return segments(uid, await ask(indexPath(uid, "/segments"), {signal}));
      } catch (error) {
        if (signal.aborted) throw error;
        return ""; // deleted since
      }
    }));
    parts.replaceChildren(...all.filter(Boolean));
  }

  await draw();
  again(draw, 2000, signal);
}
