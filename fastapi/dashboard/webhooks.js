// Webhooks and aliases of indexes.
import {ask} from "./api.js";
import {brief, field, h, say, select, show} from "./dom.js";

/** named reads headers: one a line, as "Name: value". A line with an empty value removes the header. */
function named(text) {
  return Object.fromEntries(text.split("\n").map(line => line.trim()).filter(Boolean).map(line => {
    const at = line.indexOf(":");
    if (at < 1) throw new Error(`A header is a name, a colon and a value: ${brief(line, 60)}`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim() || null];
  }));
}

export async function webhooksView(box, signal) {
  async function draw() {
    const {results} = await ask("/webhooks", {signal});
    if (signal.aborted) return;
    box.replaceChildren(h("p", {class: "about"}, "svc sends each webhook the tasks of each batch that has ended, as gzipped NDJSON. It tries again for a day."),
      h("p", null, h("button", {type: "button", class: "main", onclick: () => edit(null)}, "New webhook")),
      ...results.length ? results.map(hook => h("article", {class: "hit"}, h("div", {class: "head"}, h("h2", {dir: "auto"}, brief(hook.url, 200)), !hook.isEditable && h("span", {class: "soft"}, "set by an option of the server"),
        hook.isEditable && [h("button", {type: "button", class: "link", onclick: () => edit(hook)}, "Edit"), h("button", {type: "button", class: "link danger", onclick: async () => {
          if (!confirm(`Delete the webhook ${hook.url}?`)) return;
          await ask("/webhooks/" + hook.uuid, {method: "DELETE"});
          await draw();
          say("Webhook deleted.");
        }}, "Delete")]), h("dl", {class: "narrow"}, h("dt", null, "Headers"), h("dd", {dir: "auto"}, Object.entries(hook.headers).map(([name, value]) => `${name}: ${value}`).join(", ") || "none")))) : [h("p", {class: "empty"}, "There is no webhook.")]);
  }

  function edit(hook) {
    const url = h("input", {type: "url", required: true, value: hook?.url ?? "", placeholder: "https://shop.example/hooks/svc", spellcheck: false}), headers = h("textarea", {rows: 4, spellcheck: false, placeholder: "Authorization: Bearer …"});
    const dialog = show(hook ? "Edit webhook" : "New webhook", h("form", {onsubmit: async event => {
      event.preventDefault();
      await ask(hook ? "/webhooks/" + hook.uuid : "/webhooks", {method: hook ? "PATCH" : "POST", body: {...(!hook || url.value !== hook.url) && {url: url.value}, headers: named(headers.value)}});
      dialog.close();
      await draw();
      say("Webhook saved.");
    }}, h("div", {class: "bar"}, field("Address", url, true)), h("div", {class: "bar"}, field(hook ? "Headers to set, one a line. An empty value removes one; others stay as they are" : "Headers, one a line", headers, true)), h("p", null, h("button", {class: "main"}, "Save webhook"))));
  }

  await draw();
}

export async function aliasesView(box, signal) {
  async function draw() {
    const [{results}, indexes] = await Promise.all([ask("/aliases?limit=1000", {signal}), ask("/indexes?limit=1000", {signal})]);
    if (signal.aborted) return;
    const uids = indexes.results.map(index => index.uid), name = h("input", {required: true, placeholder: "products", spellcheck: false}), target = select(uids, uids[0]);
    const put = async (alias, indexUid) => {
      await ask("/aliases/" + encodeURIComponent(alias), {method: "PUT", body: {indexUid}});
      await draw();
      say(`${alias} is ${indexUid} now.`);
    };
    box.replaceChildren(h("p", {class: "about"}, "An alias is a second name of an index. Build a new index, then move the alias to it: no search fails."),
      h("form", {class: "bar", onsubmit: event => {
        event.preventDefault();
        return put(name.value.trim(), target.value);
      }}, field("Alias", name), field("Index", target), h("button", {class: "main"}, "Create alias")),
      results.length ? h("div", {class: "scroll", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, h("th", {scope: "col"}, "Alias"), h("th", {scope: "col"}, "Index"), h("td"))), h("tbody", null, results.map(({alias, indexUid}) => h("tr", null, h("td", {class: "name", dir: "auto"}, brief(alias, 60)),
        h("td", null, select(uids.includes(indexUid) ? uids : [indexUid, ...uids], indexUid, v => put(alias, v), `Index of ${alias}`)), h("td", null, h("button", {type: "button", class: "link danger", onclick: async () => {
          if (!confirm(`Delete the alias ${alias}? The index stays.`)) return;
          await ask("/aliases/" + encodeURIComponent(alias), {method: "DELETE"});
          await draw();
          say("Alias deleted.");
        }}, "Delete"))))))) : h("p", {class: "empty"}, "There is no alias."));
  }
  await draw();
}
