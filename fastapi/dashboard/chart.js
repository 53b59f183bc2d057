// Small pictures of numbers over time, and of what an index consists of.
import {attempt, brief, bytes, count, h, svg} from "./dom.js";

const width = 600, height = 90;

/** ago writes how long before now a time of so many seconds began. */
const ago = seconds => seconds < 100 ? `${Math.round(seconds)} s ago` : seconds < 7200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;

/** bars draws how many there are in each bucket of numbers, {from, to, count}; chosen tells which are, and onchoose is told of a click. */
export function bars(name, buckets, chosen, onchoose) {
  const top = Math.max(...buckets.map(b => b.count), 1), w = width / buckets.length, most = buckets.find(b => b.count === top) ?? buckets[0];
  return svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "chart bars", role: "img", preserveAspectRatio: "none",
    "aria-label": `${brief(name)}: ${buckets.length} bars. The highest is from ${most.from} to ${most.to}, with ${count(most.count)}.`}, buckets.map((b, i) => {
    const bar = svg("g", {class: chosen(b) ? "" : "left"}, svg("title", null, `${b.from} to ${b.to}: ${count(b.count)}`),
      svg("rect", {x: i * w, y: 0, width: w, height, class: "slot"}), svg("rect", {x: i * w + w * .08, y: height - b.count / top * (height - 4), width: w * .84, height: b.count / top * (height - 4), class: "bar-of"}));
    bar.addEventListener("click", () => attempt(onchoose, b));
    return bar;
  }));
}

/** roundStep is the next width of bars that people count in: 1, 2 or 5, and so many zeros. */
export function roundStep(width) {
  const power = 10 ** Math.floor(Math.log10(width));
  return (width <= power ? 1 : width <= 2 * power ? 2 : width <= 5 * power ? 5 : 10) * power;
}

/** series draws one or more lines over the same time, the last span seconds or that of ends. lines are [name, values]; null is a gap. shown writes a value. */
export function series(title, lines, shown, span, ends = [ago(span), "now"]) {
  const length = lines[0][1].length, top = Math.max(...lines.flatMap(([, values]) => values.map(v => v ?? 0)), 1e-9);
  const x = i => length > 1 ? i * width / (length - 1) : 0, y = v => height - 4 - v * (height - 8) / top;
  const latest = lines.map(([name, values]) => [name, values.findLast(v => v !== null)]);
  const text = latest.map(([name, v]) => `${name ? name + " " : ""}${v === undefined ? "–" : shown(v)}`).join(", ");
  const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": `${title}: ${text}; at most ${shown(top)}`, preserveAspectRatio: "none"});
  for (const [n, [, values]] of lines.entries()) {
    let path = "", pen = false;
    for (const [i, v] of values.entries()) {
      if (v === null) pen = false;
      else {
        path += `${pen ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
        if (!pen && (values[i + 1] ?? null) === null) path += "h0.01"; // one alone: a dot
        pen = true;
      }
    }
    picture.append(svg("path", {d: path || "M0 0", class: "line line" + n}));
  }
  return h("figure", {class: "graph"}, h("figcaption", null, title, latest.map(([name, v], n) => [" ", h("span", {class: "latest"}, lines.length > 1 && h("span", {class: "key key" + n, "aria-hidden": "true"}), h("strong", null, `${name ? name + " " : ""}${v === undefined ? "–" : shown(v)}`))])),
    h("div", {class: "axes"}, h("span", null, shown(top)), picture, h("span", {class: "zero"}, shown(0)), h("span", {class: "ticks"}, ends.map(text => h("span", null, text)))));
}

/** segments draws the segments of an index side by side, each as wide as its file, with its deleted rows and whether it is being merged. */
export function segments(uid, state) {
  const all = state.segments, total = all.reduce((n, s) => n + s.bytes, 0) || 1;
  const picture = svg("svg", {viewBox: `0 0 ${width} 28`, class: "segments", role: "img", preserveAspectRatio: "none",
    "aria-label": `${uid}: ${all.length} segments, ${state.merges.length} merges`});
  let at = 0;
  for (const s of all) {
    const w = Math.max(s.bytes / total * width, 2), gone = s.rows ? s.deletedRows / s.rows : 0;
    picture.append(svg("g", null,
      svg("title", null, `segment ${s.number}: ${count(s.rows)} rows, ${count(s.deletedRows)} deleted, ${bytes(s.bytes)}${s.merging ? ", is being merged" : ""}`),
      svg("rect", {x: at.toFixed(1), y: 0, width: Math.max(w - 1, 1).toFixed(1), height: 28, class: s.merging ? "segment merging" : "segment"}),
      svg("rect", {x: at.toFixed(1), y: (28 - 28 * gone).toFixed(1), width: Math.max(w - 1, 1).toFixed(1), height: (28 * gone).toFixed(1), class: "gone"})));
    at += w;
  }
  const rows = all.reduce((n, s) => n + s.rows, 0), deleted = all.reduce((n, s) => n + s.deletedRows, 0);
  const merges = state.merges.map(m => `merging ${m.segments.length} segments of ${bytes(m.bytes)} since ${new Date(m.startedAt).toLocaleTimeString()}`);
  return h("figure", {class: "graph"}, h("figcaption", null, h("strong", {dir: "auto"}, brief(uid, 60)), " ",
    h("span", {class: "soft"}, [`${count(all.length)} ${all.length === 1 ? "segment" : "segments"}`, bytes(total === 1 ? 0 : total), `${count(rows - deleted)} ${rows - deleted === 1 ? "document" : "documents"}`, deleted > 0 && `${count(deleted)} deleted rows`, ...merges].filter(Boolean).join(" · "))), picture);
}
