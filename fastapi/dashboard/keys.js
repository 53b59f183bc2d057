// API keys: who may do what, and tokens that narrow a key to a tenant.
import {ask} from "./api.js";
import {brief, copy, field, h, say, show} from "./dom.js";
import {chips} from "./forms.js";
import {indexes} from "./indexes.js";

const presets = {"search only": ["search"], "search and documents": ["search", "documents.*", "indexes.get", "tasks.get"], "read everything": ["*.get"], "everything": ["*"]};

/** actions are the rights of keys, by what they are about. The first of a line may stand for the others. */
const actions = [["*"], ["*.get"], ["search"], ["documents.*", "documents.add", "documents.get", "documents.delete"], ["indexes.*", "indexes.create", "indexes.get", "indexes.update", "indexes.delete", "indexes.swap", "indexes.compact"],
  ["settings.*", "settings.get", "settings.update"], ["fields.post"], ["tasks.*", "tasks.get", "tasks.cancel", "tasks.delete", "tasks.compact"], ["dynamicSearchRules.*", "dynamicSearchRules.get", "dynamicSearchRules.create", "dynamicSearchRules.update", "dynamicSearchRules.delete"],
  ["analytics.get", "analytics.delete"], ["stats.*", "stats.get"], ["metrics.*", "metrics.get"], ["dumps.*", "dumps.create"], ["snapshots.*", "snapshots.create"], ["export"], ["keys.get", "keys.create", "keys.update", "keys.delete"],
  ["webhooks.*", "webhooks.get", "webhooks.create", "webhooks.update", "webhooks.delete"], ["experimental.get", "experimental.update"], ["chatCompletions", "chats.*", "chats.get", "chats.delete", "chatsSettings.*", "chatsSettings.get", "chatsSettings.update"],
  ["network.get", "network.update", "group.get", "group.update"], ["version"]];

/** rights chooses actions with checkboxes: what a star includes is checked, and cannot be taken out alone. */
export function rights(chosen, changed) {
  let set = new Set(chosen);
  const boxes = new Map(), includes = (whole, action) => whole !== action && (whole === "*" || whole === "*.get" && action.endsWith(".get") || whole.endsWith(".*") && action.startsWith(whole.slice(0, -1)));
  const draw = () => {
    for (const [action, box] of boxes) {
      const covered = [...set].some(whole => includes(whole, action));
      box.checked = covered || set.has(action);
      box.disabled = covered;
    }
  };
  const node = h("fieldset", {class: "rights"}, h("legend", null, "May"), actions.map(line => h("div", null, line.map(action => {
    const box = h("input", {type: "checkbox", value: action, onchange: () => {
      if (box.checked) set.add(action);
      else set.delete(action);
      draw();
      changed([...set]);
    }});
    boxes.set(action, box);
    return h("label", {class: "check"}, box, " ", action === "*" ? "everything" : action === "*.get" ? "read everything" : action.endsWith(".*") ? h("strong", null, action) : action);
  }))));
  draw();
  return {node, set(next) {
    set = new Set(next);
    draw();
    changed(next);
  }};
}

const limitNames = {searchesPerSecond: "searches per second", writesPerSecond: "writes per second", concurrent: "requests at once"};

const limit = () => h("input", {type: "number", min: 1, max: 1000000, placeholder: "no limit"});

export async function keysView({page, signal}) {
  const list = h("div");
  const name = h("input", {required: true, placeholder: "shop front-end"}), purpose = h("input", {placeholder: "searches of the shop"}), until = h("input", {type: "date"});
  const limits = {searchesPerSecond: limit(), writesPerSecond: limit(), concurrent: limit()};
  let may = ["search"], on = ["*"];
  const all = await indexes(signal), choices = rights(may, next => { may = next; });
  page.append(h("h1", null, "Keys"));
  try {
    await draw();
  } catch (error) {
    if (error.code !== "missing_master_key") throw error;
    page.append(h("p", null, "This server has no master key: it has no API keys either, and whoever reaches it may do everything. Start it with ", h("code", null, "--master-key"), " to decide who may do what."));
    return;
  }
  page.append(h("details", {class: "more"}, h("summary", null, "New key"), h("form", {class: "bar", onsubmit: async event => {
    event.preventDefault();
    if (may.length === 0) throw new Error("Choose at least one action.");
    if (on.length === 0) throw new Error("Name at least one index, or * for all.");
    const rateLimit = Object.fromEntries(Object.entries(limits).filter(([, input]) => input.value).map(([name, input]) => [name, Number(input.value)]));
    const made = await ask("/keys", {body: {name: name.value, description: purpose.value || null, actions: may, indexes: on, expiresAt: until.value || null, ...Object.keys(rateLimit).length && {rateLimit}}});
    await draw();
    name.value = purpose.value = "";
    show(`Key ${brief(made.name, 60)}`, h("p", null, "Copy the value now. The list hides it."), h("pre", {tabIndex: 0}, made.key), h("p", null, h("button", {type: "button", class: "main", onclick: () => copy(made.key)}, "Copy")));
  }}, field("Name", name), field("Purpose", purpose), field("Expires (empty: never)", until),
  field("Searches per second", limits.searchesPerSecond), field("Writes per second", limits.writesPerSecond), field("Requests at once", limits.concurrent), h("div", {class: "field wide"}, h("p", {class: "soft"}, "On indexes (a name, a pattern such as shop-*, or * for all)"), chips(on, {label: "indexes", placeholder: "products", suggestions: (all ?? []).map(index => index.uid), changed: next => { on = next; }})),
  h("p", {class: "soft whole"}, "Usual rights: ", Object.entries(presets).map(([text, set]) => [h("button", {type: "button", class: "link", onclick: () => choices.set(set)}, text), " "])), choices.node, h("p", {class: "whole"}, h("button", {class: "main"}, "Create key")))), list);

  async function draw() {
    const keys = (await ask("/keys?limit=1000", {signal})).results;
    list.replaceChildren(...keys.map(key => h("article", {class: "hit"}, h("div", {class: "head"}, h("h2", {dir: "auto"}, brief(key.name ?? key.uid)),
      key.key && h("button", {type: "button", class: "link", onclick: () => copy(key.key)}, "Copy"),
      key.key && key.actions.some(a => a === "search" || a === "*" || a === "chatCompletions") && h("button", {type: "button", class: "link", onclick: () => token(key)}, "Create tenant token"),
      h("button", {type: "button", class: "link", onclick: () => edit(key, draw)}, "Edit"),
      h("button", {type: "button", class: "link danger", onclick: async () => {
        if (!confirm(`Revoke ${key.name ?? key.uid}? Whoever uses it is shut out at once.`)) return;
        await ask("/keys/" + key.uid, {method: "DELETE"});
        await draw();
        say(`${key.name ?? key.uid} is revoked.`);
      }}, "Revoke")),
    h("dl", null, h("dt", null, "Actions"), h("dd", null, key.actions.join(", ")), h("dt", null, "Indexes"), h("dd", {dir: "auto"}, brief(key.indexes.join(", "), 400)), h("dt", null, "Expires"), h("dd", null, key.expiresAt ? new Date(key.expiresAt).toLocaleString() : "never"),
      key.rateLimit && [h("dt", null, "Limits"), h("dd", null, Object.entries(key.rateLimit).map(([name, n]) => n.toLocaleString() + " " + limitNames[name]).join(", "))], key.description && [h("dt", null, "Description"), h("dd", {dir: "auto"}, brief(key.description, 400))]))));
  }
}

/** edit changes the name and the purpose of a key: its rights stay what they are. */
function edit(key, done) {
  const name = h("input", {value: key.name ?? ""}), purpose = h("input", {value: key.description ?? ""});
  const dialog = show(`Edit ${key.name ?? key.uid}`, h("form", {onsubmit: async event => {
    event.preventDefault();
    await ask("/keys/" + key.uid, {method: "PATCH", body: {name: name.value || null, description: purpose.value || null}});
    dialog.close();
    await done();
    say("Key saved.");
  }}, h("div", {class: "bar"}, field("Name", name, true), field("Purpose", purpose, true)), h("p", {class: "soft"}, "The rights of a key cannot be changed. Create another key, and revoke this one."), h("p", null, h("button", {class: "main"}, "Save key"))));
}

/** token makes tenant tokens here, in the page: JSON web tokens signed by the key, HMAC-SHA256. */
function token(key) {
  const rules = h("textarea", {rows: 5, spellcheck: false, value: JSON.stringify({"*": {filter: "tenant = 42"}}, null, 2)}), hours = h("input", {type: "number", min: 1, value: 24}), out = h("pre", {tabIndex: 0});
  show("Tenant token of " + (key.name ?? key.uid), field("Rules: for each index, null or a filter", rules, true), field("Hours", hours),
    h("p", null, h("button", {type: "button", class: "main", onclick: async () => {
      out.textContent = "";
      if (!crypto.subtle) throw new Error("The browser signs only on pages that came by HTTPS or from localhost.");
      const text = value => encode(new TextEncoder().encode(JSON.stringify(value)));
      const head = text({alg: "HS256", typ: "JWT"}) + "." + text({apiKeyUid: key.uid, searchRules: JSON.parse(rules.value), exp: Math.floor(Date.now() / 1000 + Number(hours.value) * 3600)});
      const secret = await crypto.subtle.importKey("raw", new TextEncoder().encode(key.key), {name: "HMAC", hash: "SHA-256"}, false, ["sign"]);
      out.textContent = head + "." + encode(new Uint8Array(await crypto.subtle.sign("HMAC", secret, new TextEncoder().encode(head))));
      say("");
    }}, "Make"), " ", h("button", {type: "button", onclick: () => copy(out.textContent)}, "Copy")), out);
}

const encode = bytes => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
