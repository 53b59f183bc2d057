// What changed between two texts, line by line.
import {h} from "./dom.js";

const most = 400; // lines that are compared
const context = 2; // lines around a change that are shown

/** pairs are the lines of both texts in turn: [sign, line], where the sign is " ", "-" or "+". It finds a longest common subsequence. */
export function pairs(a, b) {
  const length = Array.from({length: a.length + 1}, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  const out = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push([" ", a[i++]]);
      j++;
    } else if (j === b.length || i < a.length && length[i + 1][j] >= length[i][j + 1]) out.push(["-", a[i++]]);
    else out.push(["+", b[j++]]);
  }
  return out;
}

/** diff draws the lines that differ between two texts, with some around them. A comma at the end of a line makes no difference. */
export function diff(before, after) {
  const lines = text => text.split("\n").slice(0, most).map(line => line.replace(/,$/, ""));
  const all = pairs(lines(before), lines(after));
  const near = i => all.slice(Math.max(0, i - context), i + context + 1).some(([sign]) => sign !== " ");
  const rows = all.map(([sign, line], i) => near(i) ? h(sign === "-" ? "del" : sign === "+" ? "ins" : "span", null, `${sign} ${line}\n`) : near(i - 1) && "  …\n").filter(Boolean);
  return h("pre", {class: "diff", tabIndex: 0}, rows.length ? rows : "No difference");
}
