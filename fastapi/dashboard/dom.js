// Elements are made of text, never of markup: what a document holds cannot become a part of the page.

let failed = error => say(error.message, true);

/** whenFailing names who is told of what went wrong behind a control; without it, say is. */
export function whenFailing(f) { failed = f; }

/** attempt calls f, and tells of its failure. What was given up on purpose is none. */
export async function attempt(f, ...given) {
  try {
    await f(...given);
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  }
}

/**
 * h makes an element: properties, then children, which are nodes, texts or arrays of them; null and false are left out. What a
 * listener fails with is told: nobody clicks and learns nothing.
 */
export function h(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), event => attempt(value, event));
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

/** say tells people something, for as long as nothing else is told: in the dialog that is open, as that covers the rest. */
export function say(text, bad) {
  const said = [...document.querySelectorAll("dialog[open] > .said")].at(-1) ?? document.getElementById("said");
  text = brief(text, 1000);
  if (said.textContent !== text) said.textContent = text; // told once
  said.classList.toggle("bad", !!bad);
}

/** redraw replaces what is in a node, and leaves the focus on the control of the same data-at. */
export function redraw(node, children) {
  const at = node.contains(document.activeElement) ? document.activeElement.dataset.at : undefined;
  node.replaceChildren(...children);
  if (at !== undefined) [...node.querySelectorAll("[data-at]")].find(other => other.dataset.at === at)?.focus({preventScroll: true});
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

/** tabs are the views of a part: pairs of an id and a title. */
export const tabs = (label, views, chosen, onchoose) => h("nav", {class: "tabs", "aria-label": label},
  views.map(([id, title]) => h("button", {type: "button", "data-at": id, "aria-current": id === chosen && "true", onclick: () => onchoose(id)}, title)));

/**
 * menu is a button that opens a list of choices: pairs of a text and a function. Arrow keys move between them, Escape closes the list.
 * The list exists only while it is open: a page has many such buttons.
 */
export function menu(text, label, choices) {
  const button = h("button", {type: "button", class: "link", "aria-haspopup": "menu", "aria-label": label, onclick: () => {
    const list = h("div", {class: "menu", role: "menu", popover: "auto", "aria-label": label,
      ontoggle: event => event.newState === "closed" && list.remove(),
      onkeydown: event => {
        const items = [...list.children], at = items.indexOf(document.activeElement);
        const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1}[event.key];
        if (to === undefined) return;
        event.preventDefault();
        items.at(to % items.length).focus();
      }}, choices.filter(Boolean).map(([name, f]) => h("button", {type: "button", role: "menuitem", onclick: () => {
      list.hidePopover();
      return f();
    }}, name)));
    button.after(list);
    list.showPopover();
    const at = button.getBoundingClientRect(), below = at.bottom + 4 + list.offsetHeight < innerHeight;
    list.style.left = Math.max(4, Math.min(at.left, innerWidth - list.offsetWidth - 8)) + "px";
    list.style.top = (below ? at.bottom + 4 : Math.max(4, at.top - list.offsetHeight - 4)) + "px";
    list.firstChild.focus();
  }}, text);
  return button;
}

/** brief is the beginning of a text that may be very long. */
export const brief = (text, most = 100) => text.length > most ? text.slice(0, most).replace(/[\ud800-\udbff]$/, "") + "…" : text;

/** json writes a value for people to read and edit: characters that change the direction of writing are seen as what they are. */
export const json = (value, indent = 2) => JSON.stringify(value, null, indent)?.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

/** apart puts texts in a row, each on its own: one that changes the direction of writing changes no other. */
export const apart = (texts, between) => texts.map((text, i) => [i > 0 && between, h("bdi", null, text)]);

/** count writes a whole number as people do. */
export const count = n => n.toLocaleString("en");

/** bytes writes a size as people do. */
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${n >= 10 || i === 0 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

/** later calls f when nothing has asked for that again for some milliseconds, and tells of its failure. */
export function later(f, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => attempt(f, ...given), wait);
  };
}

/** again calls f every wait milliseconds while the page is seen, until signal ends or the server refuses the key. */
export async function again(f, wait, signal) {
  for (let broken = false;;) {
    await new Promise(resolve => setTimeout(resolve, wait));
    if (signal.aborted) return;
    if (document.hidden) continue;
    try {
      await f();
      if (broken && !signal.aborted) say("");
      broken = false;
    } catch (error) {
      if (signal.aborted) return;
      if (error.name === "AbortError") continue; // a newer request took its place
      failed(error);
      if (error.status === 401 || error.status === 403) return;
      broken = true;
    }
  }
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
    h("form", {method: "dialog", class: "head"}, h("h2", {dir: "auto"}, brief(title)), h("button", null, "Close")), h("p", {class: "said", role: "status"}), content);
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** save has the browser store texts or blobs as one file. */
export function save(name, type, parts) {
  const link = h("a", {href: URL.createObjectURL(new Blob(parts, {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** when writes a moment: the time today, else the day and the time. */
export function when(text) {
  const at = new Date(text);
  return at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString() : at.toLocaleString();
}
