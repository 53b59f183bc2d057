// Tasks as they come and end, with their progress, and what to do about those that failed.
import {ask, indexPath, turns} from "./api.js";
import {again, apart, brief, count, field, h, json, redraw, say, select, show} from "./dom.js";

const types = ["documentAdditionOrUpdate", "documentEdition", "documentDeletion", "settingsUpdate", "indexCreation", "indexUpdate", "indexDeletion", "indexSwap", "taskCancelation", "taskDeletion", "dumpCreation", "snapshotCreation", "export", "indexCompaction"];

/** retries send what a failed task was asked to do again, where its details say all of it. */
const retries = {
  settingsUpdate: t => [indexPath(t.indexUid, "/settings"), {method: "PATCH", body: t.details}],
  indexCreation: t => ["/indexes", {body: {uid: t.indexUid, primaryKey: t.details?.primaryKey ?? null}}],
  indexUpdate: t => t.details?.newIndexUid === undefined && [indexPath(t.indexUid), {method: "PATCH", body: {primaryKey: t.details?.primaryKey ?? null}}],
  indexDeletion: t => [indexPath(t.indexUid), {method: "DELETE"}],
  indexSwap: t => ["/swap-indexes", {body: t.details?.swaps}],
  documentDeletion: t => t.details?.originalFilter && [indexPath(t.indexUid, "/documents/delete"), {body: {filter: JSON.parse(t.details.originalFilter)}}],
  dumpCreation: () => ["/dumps", {method: "POST"}],
  snapshotCreation: () => ["/snapshots", {method: "POST"}],
};

const statuses = ["enqueued", "processing", "succeeded", "failed", "canceled"];

/** since is when a task came: the time today, else the day and the time. */
function since(task) {
  const at = new Date(task.enqueuedAt);
  return at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString() : at.toLocaleString();
}

/** took is how long a task ran, for people. */
function took(task) {
  if (!task.startedAt || !task.finishedAt) return "";
  const ms = new Date(task.finishedAt) - new Date(task.startedAt);
  return ms < 1000 ? `${ms} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60000)} min ${Math.round(ms % 60000 / 1000)} s`;
}

/** waitsFor says why a task waits although it is its turn, and since when. */
function waitsFor(parked) {
  const at = text => { const t = new Date(text); return t.toDateString() === new Date().toDateString() ? t.toLocaleTimeString() : t.toLocaleString(); };
  const what = parked.reason.code === "vector_embedding_error" ? "Waiting for the embedder" : "Waiting for the machine";
  return [`${what} since ${at(parked.since)}, tried ${parked.tries} ${parked.tries === 1 ? "time" : "times"}, next at ${at(parked.nextTryAt)}: `, h("bdi", null, brief(parked.reason.message, 500))];
}

export async function tasksView({page, state, remember, signal}) {
  const s = {status: state.get("status") ?? "", type: state.get("type") ?? "", index: state.get("index") ?? "", from: null};
  let shown = "", first; // the answers that are drawn, and the oldest task that has not ended
  const turn = turns(signal);
  const progress = h("div"), body = h("tbody"), pages = h("nav", {class: "pages", "aria-label": "Pages"}), summary = h("p", {class: "summary"});
  const index = h("input", {value: s.index, placeholder: "all", spellcheck: false, onchange: () => { s.index = index.value.trim(); s.from = null; return draw(); }});
  page.append(h("h1", null, "Tasks"), h("div", {class: "bar"},
    field("Status", select([["", "all"], ...statuses], s.status, v => { s.status = v; s.from = null; return draw(); })), field("Type", select([["", "all"], ...types], s.type, v => { s.type = v; s.from = null; return draw(); })), field("Index", index), summary,
    h("button", {type: "button", class: "danger", onclick: async () => {
      if (!confirm(`Cancel all tasks${s.index && " of " + s.index} that have not ended?`)) return;
      await ask("/tasks/cancel?statuses=enqueued,processing" + (s.index ? "&indexUids=" + encodeURIComponent(s.index) : ""), {method: "POST"});
      await draw();
    }}, "Cancel unfinished tasks")), progress,
  h("div", {class: "scroll", tabIndex: 0}, h("table", {class: "cards"}, h("thead", null, h("tr", null, ["Task", "Status", "Type", "Index", "Details", "Since", "Duration", ""].map(t => t ? h("th", {scope: "col"}, t) : h("td")))), body)), pages);

  async function draw() {
    const own = turn();
    remember({status: s.status, type: s.type, index: s.index});
    const query = new URLSearchParams({limit: 25});
    if (s.status) query.set("statuses", s.status);
    if (s.type) query.set("types", s.type);
    if (s.index) query.set("indexUids", s.index);
    if (s.from !== null) query.set("from", s.from);
    const [tasks, batches] = await Promise.all([ask("/tasks?" + query, {signal: own}), ask("/batches?statuses=processing&limit=10", {signal: own})]);
    first = tasks.results.some(task => task.status === "enqueued") ? (await ask("/tasks?statuses=enqueued,processing&reverse=true&limit=1", {signal: own})).results[0] : undefined;
    const now = JSON.stringify([tasks, batches, first]);
    if (own.aborted || now === shown) return; // what is selected stays so
    shown = now;
    summary.textContent = `${count(tasks.total)} ${tasks.total === 1 ? "task" : "tasks"}`;
    redraw(body, tasks.results.map(row));
    pages.replaceChildren(...s.from !== null ? [h("button", {type: "button", onclick: () => { s.from = null; return draw(); }}, "Newest")] : [],
      ...tasks.next !== null ? [h("button", {type: "button", onclick: () => { s.from = tasks.next; return draw(); }}, "Older")] : []);
    progress.replaceChildren(...batches.results.filter(batch => batch.progress).map(running));
  }

  /** running shows where a batch stands, and what its embedders answered. */
  function running(batch) {
    const p = batch.progress, calls = batch.stats.embedderRequests;
    return h("div", {class: "running"}, h("p", null, `Batch ${batch.uid}: ${p.steps.map(step => `${step.currentStep} ${count(step.finished)} of ${count(step.total)}`).join(" · ")}`),
      h("progress", {max: 100, value: p.percentage, "aria-label": `Progress of batch ${batch.uid}`}),
      calls && h("p", {class: calls.failed ? "bad" : "soft"}, `Embedder requests: ${count(calls.total)}, ${count(calls.failed)} failed`,
        calls.lastError && [". Last error: ", h("bdi", null, brief(calls.lastError, 500))]));
  }

  function row(task) {
    const details = Object.entries(task.details ?? {}).filter(([, v]) => v !== null).map(([k, v]) => brief(`${k}: ${typeof v === "object" ? json(v, 0) : v}`, 120));
    const waits = task.status === "enqueued" || task.status === "processing";
    return h("tr", null, h("td", {class: "number"}, task.uid), h("td", null, h("span", {class: "status " + task.status}, task.status)), h("td", null, task.type),
      h("td", {class: "name", dir: "auto"}, brief(task.indexUid ?? "–", 60)),
      h("td", {class: "long"}, apart(details, ", "),
        task.error && h("p", {class: "bad"}, h("bdi", null, brief(task.error.message, 500)), " ", h("span", {class: "soft"}, task.error.code)), task.parked ? h("p", {class: "bad"}, waitsFor(task.parked)) : task.status === "enqueued" && first && first.uid < task.uid && h("p", {class: "soft"}, `Waits for earlier tasks. The first is ${first.uid}: ${first.type}`, first.indexUid && [" of ", h("bdi", null, brief(first.indexUid, 60))], "."),
        task.status === "failed" && task.type === "documentAdditionOrUpdate" && h("p", {class: "soft"}, "svc does not store the documents of failed tasks: send them again.")),
      h("td", {class: "time"}, since(task)), h("td", {class: "time"}, took(task)),
      h("td", null, task.status === "failed" && retry(task), waits ? h("button", {type: "button", class: "link", "data-at": task.uid, onclick: async () => {
        await ask(`/tasks/cancel?uids=${task.uid}`, {method: "POST"});
        await draw();
      }}, "Cancel") : h("button", {type: "button", class: "link", "data-at": task.uid, onclick: () => show("Task " + task.uid, h("pre", {tabIndex: 0}, json(task)))}, "JSON")));
  }

  /** retry is a button that sends a failed task again; none where that cannot be done. */
  function retry(task) {
    const request = retries[task.type]?.(task);
    return request && h("button", {type: "button", class: "link", "data-at": "retry" + task.uid, onclick: async () => {
      const made = await ask(...request);
      await draw();
      say(`Task ${made.taskUid} tries it again.`);
    }}, "Retry");
  }

  await draw();
  again(() => s.from === null && draw(), 1000, signal);
}
