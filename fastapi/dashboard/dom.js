// Elements are made of text, never of markup: what a document holds cannot become a part of the page.

/** h makes an element: properties, then children, which are nodes, texts or arrays of them; null and false are left out. */
export function h(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && !name.includes("-") && name !== "list" && name !== "form") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(node, child);
    else if (child !== null && child !== undefined && child !== false) node.append(child);
  }
}

const space = "http://www.w3.org/2000/svg";

/** svg makes an element of a picture. */
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) node.setAttribute(name, value);
  append(node, children);
  return node;
}

const said = document.getElementById("said");

/** say tells people something, for as long as nothing else is told. */
export function say(text, bad) {
  said.textContent = text ?? "";
  said.className = bad ? "bad" : "";
}

/** field is a control with its label. */
export function field(label, control, wide) {
  control.id ||= "f" + Math.random().toString(36).slice(2);
  return h("p", {class: wide ? "field wide" : "field"}, h("label", {htmlFor: control.id}, label), control);
}

/** select is a choice; options are values, or pairs of a value and what is shown. */
export function select(options, value, onchange, label) {
  const node = h("select", {onchange: event => onchange?.(event.target.value), "aria-label": label});
  for (const option of options) {
    const [v, text] = Array.isArray(option) ? option : [option, option];
    node.append(new Option(text, v, false, v === value));
  }
  return node;
}

/** count writes a whole number as people do. */
export const count = n => n.toLocaleString("en");

/** bytes writes a size as people do. */
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${n >= 10 || i === 0 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

/** later calls f when nothing has asked for that again for some milliseconds. */
export function later(f, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...given), wait);
  };
}

/** copy puts a text on the clipboard, where the browser lets pages do that, or shows it. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    show("Copy this", h("pre", {tabIndex: 0}, text));
  }
}

/** show opens a dialog, and returns it. */
export function show(title, ...content) {
  const dialog = h("dialog", {"aria-label": title, onclose: () => dialog.remove()},
    h("form", {method: "dialog", class: "head"}, h("h2", null, title), h("button", null, "Close")), content);
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
