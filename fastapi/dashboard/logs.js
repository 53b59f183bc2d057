// The log of the server as it is written.
import {chunks} from "./api.js";
import {brief, field, h, say, select} from "./dom.js";
import {offer} from "./features.js";

const most = 500; // lines that are kept

/** lineOf shows a line of the log: time, level, message or request, and the other fields. */
function lineOf(text) {
  let line;
  try {
    line = JSON.parse(text);
  } catch {
    return h("li", null, brief(text, 2000));
  }
  const {message, ...others} = line.fields ?? {}, span = line.span ?? {}, request = span.name === "request" && [span.method, span.route, span.status_code].filter(v => v !== undefined).join(" ");
  return h("li", {class: ["ERROR", "WARN"].includes(line.level) ? "bad" : ""}, h("time", {class: "soft"}, line.timestamp?.slice(11, 23) ?? ""), " ", h("strong", null, line.level ?? ""), " ", h("bdi", null, brief(request || (message ?? ""), 500)), " ",
    h("span", {class: "soft"}, Object.entries(others).map(([name, value]) => [h("bdi", null, brief(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`, 300)), " "])));
}

export async function logsView(box, signal) {
  const list = h("ol", {class: "log", tabIndex: 0, "aria-label": "Log"}), words = h("input", {type: "search", placeholder: "all lines", spellcheck: false, oninput: () => [...list.children].forEach(narrow)});
  const level = select([["error", "errors"], ["warn", "errors and warnings"], ["info", "everything"], ["debug", "everything, with details"]], "info"), button = h("button", {type: "button", class: "main", onclick: () => running ? end() : listen()});
  let running = null; // ends the stream

  function narrow(line) {
    line.hidden = !line.textContent.toLowerCase().includes(words.value.trim().toLowerCase());
  }
  function end() {
    running?.abort();
    running = null;
    level.disabled = false;
    button.textContent = "Show the log";
  }
  function add(texts) {
    const follows = list.scrollTop + list.clientHeight >= list.scrollHeight - 8;
    const lines = texts.map(lineOf);
    lines.forEach(narrow);
    list.append(...lines);
    while (list.children.length > most) list.firstChild.remove();
    if (follows) list.scrollTop = list.scrollHeight;
  }
  async function listen() {
    const mine = running = new AbortController();
    level.disabled = true;
    button.textContent = "Stop";
    say("");
    let rest = "";
    try {
      for await (const chunk of chunks("/logs/stream", {mode: "json", target: level.value}, AbortSignal.any([signal, mine.signal]))) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop();
        add(lines.filter(Boolean));
      }
      say("The server ended the stream.");
    } catch (error) {
      if (error.name === "AbortError" || mine.signal.aborted) return;
      if (error.code !== "feature_not_enabled") throw error;
      list.before(offer("logsRoute", listen));
    } finally {
      if (running === mine) end();
    }
  }
  end();
  box.append(h("p", {class: "about"}, `The last ${most} lines from now on. Only one reader at a time can follow the log.`), h("div", {class: "bar"}, field("Lines", level), field("That contain", words, true), button), list);
}
