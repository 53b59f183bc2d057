// The network: which instances belong to it, who owns which shard, and what waits for one that is away.
import {ask, ended} from "./api.js";
import {again, brief, bytes, count, field, h, redraw, say, select, show} from "./dom.js";
import {enabled} from "./features.js";

/** change changes the network. If the server answers with a task, change waits for it. */
async function change(body) {
  const made = await ask("/network", {method: "PATCH", body});
  if (made.taskUid === undefined) return;
  say(`Task ${made.taskUid} changes the network…`);
  const done = await ended(made);
  if (done.error) throw new Error(done.error.message);
}

/** outbox returns the writes that wait for each instance; none without the right to read them. */
async function outbox(signal) {
  try {
    return (await ask("/network/outbox", {signal})).remotes;
  } catch (error) {
    if (error.status === 403 || error.status === 400 || error.status === 404) return {};
    throw error;
  }
}

export async function networkView(box, signal) {
  let shown = "";

  async function draw() {
    const [network, waiting] = await Promise.all([ask("/network", {signal}), outbox(signal)]), now = JSON.stringify([network, waiting]);
    if (signal.aborted || now === shown) return;
    shown = now;
    const names = Object.keys(network.remotes), act = async (body, told) => {
      await change(body);
      await draw();
      say(told);
    };
    redraw(box, [h("p", {class: "about"}, "Instances of a network search together. With a leader they also share the documents: each shard is owned by one or more instances, and writes go to the leader."),
      h("dl", {class: "numbers"}, h("dt", null, "This instance"), h("dd", {dir: "auto"}, network.self ?? "has no name in the network"), h("dt", null, "Leader"), h("dd", {dir: "auto"}, network.leader ?? "none: each instance keeps its own documents")),
      h("p", {class: "bar"}, h("button", {type: "button", class: "main", "data-at": "add", onclick: () => edit(network, "", act)}, "Add an instance"),
        names.length > 0 && h("button", {type: "button", "data-at": "shard", onclick: () => editShard(network, "", act)}, "Add a shard"),
        network.leader && h("button", {type: "button", class: "danger", "data-at": "end", onclick: async () => {
          if (confirm("End the network? Each instance keeps the documents that it has.")) await act({leader: null}, "The network has no leader now.");
        }}, "End the network")),
      h("h2", null, "Instances"),
      names.length ? h("div", {class: "scroll", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, ["Name", "Address", "Status", "Writes that wait for it", ""].map(t => t ? h("th", {scope: "col"}, t) : h("td")))), h("tbody", null, names.map(name => {
        const remote = network.remotes[name], kept = waiting[name];
        return h("tr", null, h("td", {class: "name", dir: "auto"}, brief(name, 60)), h("td", {class: "long", dir: "ltr"}, brief(remote.url, 200)),
          h("td", null, h("span", {class: remote.status === "available" ? "status succeeded" : "status failed"}, remote.status ?? "")),
          h("td", null, kept?.pendingTasks ? `${count(kept.pendingTasks)} tasks, ${bytes(kept.pendingBytes)}` : "none"),
          h("td", null, h("button", {type: "button", class: "link", "data-at": "edit " + name, onclick: () => edit(network, name, act)}, "Edit"), h("button", {type: "button", class: "link danger", "data-at": "remove " + name, onclick: async () => {
            if (confirm(`Remove ${name} from the network? Give its shards to others first.`)) await act({remotes: {[name]: null}}, `${name} was removed.`);
          }}, "Remove")));
      })))) : h("p", {class: "empty"}, "This server is in no network."),
      Object.keys(network.shards).length > 0 && [h("h2", null, "Shards"), h("div", {class: "scroll", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, ["Shard", "Owners", ""].map(t => t ? h("th", {scope: "col"}, t) : h("td")))),
        h("tbody", null, Object.entries(network.shards).map(([name, shard]) => h("tr", null, h("td", {class: "name", dir: "auto"}, brief(name, 60)), h("td", {class: "long", dir: "auto"}, shard.remotes.join(", ")),
          h("td", null, h("button", {type: "button", class: "link", "data-at": "owners " + name, onclick: () => editShard(network, name, act)}, "Edit")))))))]].flat().filter(Boolean));
  }

  await enabled(box, "network", async () => {
    await draw();
    again(draw, 3000, signal);
  });
}

/** edit changes an instance of the network, or adds one. Keys are sent only if they were typed. */
function edit(network, name, act) {
  const remote = network.remotes[name], called = h("input", {value: name, required: true, disabled: Boolean(remote), placeholder: "a", spellcheck: false}), url = h("input", {type: "url", value: remote?.url ?? "", required: true, placeholder: "http://10.0.0.2:7700", spellcheck: false});
  const keyBox = () => h("input", {type: "password", autocomplete: "off", placeholder: remote ? "unchanged" : "none", spellcheck: false}), search = keyBox(), write = keyBox(), self = h("input", {type: "checkbox", checked: remote ? network.self === name : network.self === null});
  const dialog = show(remote ? `Edit ${name}` : "Add an instance", h("form", {onsubmit: async event => {
    event.preventDefault();
    const entry = {url: url.value.trim(), ...search.value && {searchApiKey: search.value}, ...write.value && {writeApiKey: write.value}}, uid = remote ? name : called.value.trim();
    await act({remotes: {[uid]: entry}, ...self.checked && network.self !== uid && {self: uid}}, `${uid} was saved.`);
    dialog.close();
  }}, h("div", {class: "bar"}, field("Name", called), field("Address", url, true)), h("div", {class: "bar"}, field("Key for searches there", search), field("Key for writes there", write)),
  h("p", null, h("label", {class: "check"}, self, " This server is that instance")), h("p", null, h("button", {class: "main"}, "Save"))));
}

/** editShard changes the owners of a shard, or adds one. The first shard makes this network share documents, and needs a leader. */
function editShard(network, name, act) {
  const shard = network.shards[name], called = h("input", {value: name, required: true, disabled: Boolean(shard), placeholder: "x", spellcheck: false}), names = Object.keys(network.remotes);
  const boxes = names.map(remote => h("input", {type: "checkbox", value: remote, checked: shard?.remotes.includes(remote)})), leader = select(names, network.self ?? names[0]);
  const dialog = show(shard ? `Owners of ${name}` : "Add a shard", h("form", {onsubmit: async event => {
    event.preventDefault();
    const owners = boxes.filter(node => node.checked).map(node => node.value), uid = shard ? name : called.value.trim();
    if (owners.length === 0) throw new Error("A shard needs at least one owner.");
    await act({shards: {[uid]: {remotes: owners}}, ...!network.leader && {leader: leader.value}}, `The shard ${uid} was saved.`);
    dialog.close();
  }}, h("div", {class: "bar"}, field("Name of the shard", called), !network.leader && field("Leader, which takes all writes", leader)),
  h("div", {class: "choices", role: "group", "aria-label": "Owners"}, boxes.map(node => h("label", {class: "check"}, node, " ", h("bdi", null, node.value)))), h("p", null, h("button", {class: "main"}, "Save"))));
}
