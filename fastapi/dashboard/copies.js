// Dumps and snapshots: make them, download them, and how they are restored.
import {ask, curlFile, download, ended, hasKey, shellQuoted} from "./api.js";
import {brief, bytes, copy, h, say, save, show, when} from "./dom.js";

const tooLarge = 1e9; // bytes that a browser should not hold in memory

/** word is a path in a command, in quotes if it needs them. */
const word = path => /^[\w./-]+$/.test(path) ? path : shellQuoted(path);

const kinds = [
  {what: "dumps", title: "Dumps", button: "Make a dump", restore: name => "svc --import-dump " + word("dumps/" + name),
    about: "Documents, settings, keys and tasks as JSON. Any version of svc, and Meilisearch, can read a dump. Its import indexes all documents again."},
  {what: "snapshots", title: "Snapshot", button: "Make a snapshot", restore: name => "svc --import-snapshot " + word("snapshots/" + name),
    about: "The files of the indexes as they are. The same or a newer version of svc restores a snapshot fast. A new snapshot replaces the one before."},
];

export async function copiesView(box, signal) {
  const views = kinds.map(kind => {
    const list = h("div");
    const make = h("button", {type: "button", onclick: async () => {
      make.disabled = true;
      try {
        const task = await ask("/" + kind.what, {method: "POST"});
        say(`Task ${task.taskUid} makes it…`);
        const done = await ended(task);
        if (done.error) throw new Error(done.error.message);
        await draw(kind, list);
        say("It is ready.");
      } finally {
        make.disabled = false;
      }
    }}, kind.button);
    return [kind, list, h("section", {class: "setting"}, h("h2", null, kind.title), h("p", {class: "about"}, kind.about), h("p", null, make), list)];
  });
  box.replaceChildren(...views.map(([, , node]) => node));
  await Promise.all(views.map(([kind, list]) => draw(kind, list)));

  async function draw(kind, list) {
    let files;
    try {
      files = (await ask("/downloads/" + kind.what, {signal})).results;
    } catch (error) {
      if (error.status !== 403) throw error;
      list.replaceChildren(h("p", {class: "soft"}, "A dump or snapshot contains all documents. Listing and downloading need the master key."));
      return;
    }
    const row = ({name, bytes: size, createdAt}) => {
      const path = `/downloads/${kind.what}/${encodeURIComponent(name)}`;
      const fetched = hasKey() ? h("button", {type: "button", class: "link", onclick: event => fetchInto(event.target, path, name, size)}, "Download") : h("a", {class: "link", href: path, download: name}, "Download");
      return h("tr", null, h("td", {class: "name", dir: "auto"}, brief(name, 80)), h("td", {class: "number time"}, bytes(size)), h("td", {class: "time"}, when(createdAt)), h("td", {class: "time"}, fetched,
        h("button", {type: "button", class: "link", onclick: () => copy(curlFile(path, name, kind.what === "dumps"))}, "Copy as curl"),
        h("button", {type: "button", class: "link", onclick: () => restoring(kind, name)}, "Show restore command")));
    };
    list.replaceChildren(files.length ? h("div", {class: "scroll", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, ["File", "Size", "Created"].map(t => h("th", {scope: "col"}, t)), h("td"))), h("tbody", null, files.map(row)))) : h("p", {class: "empty"}, "There is none in the directory of the server."));
  }

  /**
   * fetchInto downloads a file with the key, which a link cannot send: onto the disk as it comes where the browser can, else through memory.
   * It goes on when this view is left.
   */
  async function fetchInto(button, path, name, size) {
    if (!window.showSaveFilePicker && size > tooLarge && !confirm(`This browser holds the whole file in memory: ${bytes(size)}. “Copy as curl” does not. Download it anyway?`)) return;
    button.disabled = true;
    let file, got = 0;
    try {
      file = await window.showSaveFilePicker?.({suggestedName: name}); // first: browsers show it only right after a click
      const counted = (await download(path)).body.pipeThrough(new TransformStream({transform(part, out) {
        got += part.length;
        button.textContent = size ? `${Math.floor(100 * got / size)}%` : "…";
        out.enqueue(part);
      }}));
      if (file) await counted.pipeTo(await file.createWritable());
      else save(name, "application/octet-stream", [await new Response(counted).blob()]);
      say(`${brief(name, 80)} is downloaded.`);
    } catch (error) {
      if (file?.remove && (await file.getFile()).size === 0) await file.remove(); // the dialog has made it
      throw error;
    } finally {
      button.textContent = "download";
      button.disabled = false;
    }
  }

  function restoring(kind, name) {
    const command = kind.restore(name);
    show("Restore " + brief(name, 80), h("ol", null, h("li", null, "Stop the server, or take another machine. Nothing on this page can restore: the running server keeps its data."),
      h("li", null, "Move the data directory away. A restore refuses one that has data."), h("li", null, "Start the server with this option, and the others that it has:", h("pre", {tabIndex: 0}, command), h("button", {type: "button", onclick: () => copy(command)}, "Copy"))),
    h("p", {class: "soft"}, "The path is that of the file on the machine where svc starts. With another master key, the API keys get other values. See ", h("a", {href: "/docs/backup"}, "Backup and restore"), "."));
  }
}
