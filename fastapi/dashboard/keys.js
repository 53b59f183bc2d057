// API keys: who may do what, and tokens that narrow a key to a tenant.
import {ask} from "./api.js";
import {brief, copy, field, h, say, show} from "./dom.js";

const presets = {"search only": ["search"], "search and documents": ["search", "documents.*", "indexes.get", "tasks.get"], "everything": ["*"]};

const limitNames = {searchesPerSecond: "searches per second", writesPerSecond: "writes per second", concurrent: "requests at once"};

const limit = () => h("input", {type: "number", min: 1, max: 1000000, placeholder: "no limit"});

export async function keysView({page, signal}) {
  const list = h("div");
  const name = h("input", {required: true, placeholder: "shop front-end"}), actions = h("input", {value: "search", spellcheck: false, required: true}), on = h("input", {value: "*", spellcheck: false, required: true}), until = h("input", {type: "date"});
  const limits = {searchesPerSecond: limit(), writesPerSecond: limit(), concurrent: limit()};
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
    const listed = input => input.value.split(",").map(v => v.trim()).filter(Boolean);
    const rateLimit = Object.fromEntries(Object.entries(limits).filter(([, input]) => input.value).map(([name, input]) => [name, Number(input.value)]));
    await ask("/keys", {body: {name: name.value, actions: listed(actions), indexes: listed(on), expiresAt: until.value || null, ...Object.keys(rateLimit).length && {rateLimit}}});
    await draw();
    say("The key is made.");
  }}, field("Name", name), field("May", actions), field("On indexes", on), field("Until (empty: for ever)", until),
  field("Searches per second", limits.searchesPerSecond), field("Writes per second", limits.writesPerSecond), field("Requests at once", limits.concurrent), h("button", {class: "main"}, "Make"),
  h("p", {class: "soft"}, "Usual rights: ", Object.entries(presets).map(([text, set]) => [h("button", {type: "button", class: "link", onclick: () => { actions.value = set.join(", "); }}, text), " "])))), list);

  async function draw() {
    const keys = (await ask("/keys?limit=1000", {signal})).results;
    list.replaceChildren(...keys.map(key => h("article", {class: "hit"}, h("div", {class: "head"}, h("h2", {dir: "auto"}, brief(key.name ?? key.uid)),
      key.key && h("button", {type: "button", class: "link", onclick: () => copy(key.key)}, "copy"),
      key.key && key.actions.some(a => a === "search" || a === "*" || a === "chatCompletions") && h("button", {type: "button", class: "link", onclick: () => token(key)}, "tenant token"),
      h("button", {type: "button", class: "link danger", onclick: async () => {
        if (!confirm(`Revoke ${key.name ?? key.uid}? Whoever uses it is shut out at once.`)) return;
        await ask("/keys/" + key.uid, {method: "DELETE"});
        await draw();
        say(`${key.name ?? key.uid} is revoked.`);
      }}, "revoke")),
    h("dl", null, h("dt", null, "may"), h("dd", null, key.actions.join(", ")), h("dt", null, "on"), h("dd", {dir: "auto"}, brief(key.indexes.join(", "), 400)), h("dt", null, "until"), h("dd", null, key.expiresAt ? new Date(key.expiresAt).toLocaleString() : "for ever"),
      key.rateLimit && [h("dt", null, "at most"), h("dd", null, Object.entries(key.rateLimit).map(([name, n]) => n.toLocaleString() + " " + limitNames[name]).join(", "))], key.description && [h("dt", null, "for"), h("dd", {dir: "auto"}, brief(key.description, 400))]))));
  }
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
