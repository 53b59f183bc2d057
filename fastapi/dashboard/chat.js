// Chat workspaces with a conversation to try, and the tools of MCP.
import {ask, chunks, hasKey} from "./api.js";
import {brief, copy, field, h, json, say, select, show} from "./dom.js";
import {enabled} from "./features.js";

const sources = [["openAi", "OpenAI"], ["mistral", "Mistral"], ["azureOpenAi", "Azure OpenAI"], ["vLlm", "a server that speaks OpenAI's API"]];
const path = (uid, rest) => `/chats/${encodeURIComponent(uid)}${rest}`;

export async function chatsView(box, signal) {
  async function draw() {
    const {results} = await ask("/chats?limit=1000", {signal});
    if (signal.aborted) return;
    box.replaceChildren(h("p", {class: "about"}, "In a conversation a language model answers questions from the documents that it finds. A workspace says which provider is asked, and how. What the model learns about an index is the setting chat of that index."),
      h("p", null, h("button", {type: "button", class: "main", onclick: () => edit(null)}, "New workspace")),
      ...results.length ? results.map(({uid}) => h("article", {class: "hit"}, h("div", {class: "head"}, h("h2", {dir: "auto"}, brief(uid, 60)), h("button", {type: "button", class: "link", onclick: () => talk(uid, signal)}, "Try it"), h("button", {type: "button", class: "link", onclick: () => edit(uid)}, "Edit"), h("button", {type: "button", class: "link danger", onclick: async () => {
        if (!confirm(`Delete the workspace ${uid}?`)) return;
        await ask(path(uid, ""), {method: "DELETE"});
        await draw();
        say("Workspace deleted.");
      }}, "Delete")))) : [h("p", {class: "empty"}, "There is no workspace.")]);
  }

  async function edit(uid) {
    const before = uid === null ? {source: "openAi", prompts: {}} : await ask(path(uid, "/settings"), {signal}), name = h("input", {value: uid ?? "", required: true, disabled: uid !== null, placeholder: "help", spellcheck: false});
    const text = (value, placeholder, more) => h("input", {value: value ?? "", placeholder, spellcheck: false, ...more}), url = text(before.baseUrl, "the provider's own", {type: "url"}), key = text("", before.apiKey ? `unchanged: ${before.apiKey}` : "none", {type: "password", autocomplete: "off"});
    const others = {orgId: text(before.orgId, "none"), projectId: text(before.projectId, "none"), deploymentId: text(before.deploymentId, "none"), apiVersion: text(before.apiVersion, "none")};
    const openAi = h("div", {class: "bar"}, field("Organization", others.orgId), field("Project", others.projectId)), azure = h("div", {class: "bar"}, field("Deployment", others.deploymentId), field("API version", others.apiVersion));
    const fit = source => {
      openAi.hidden = source !== "openAi";
      azure.hidden = source !== "azureOpenAi";
      url.required = source === "vLlm" || source === "azureOpenAi";
    }, source = select(sources, before.source, fit), system = h("textarea", {rows: 8, value: before.prompts.system ?? "", placeholder: "the default of svc"});
    fit(before.source);
    const dialog = show(uid === null ? "New workspace" : `Edit ${uid}`, h("form", {onsubmit: async event => {
      event.preventDefault();
      const body = {source: source.value, ...url.value.trim() !== (before.baseUrl ?? "") && {baseUrl: url.value.trim() || null}, ...key.value && {apiKey: key.value}, ...system.value !== (before.prompts.system ?? "") && {prompts: {system: system.value.trim() || null}}};
      for (const [member, node] of Object.entries(others)) if (node.value.trim() !== (before[member] ?? "")) body[member] = node.value.trim() || null;
      await ask(path(uid ?? name.value.trim(), "/settings"), {method: "PATCH", body});
      dialog.close();
      await draw();
      say("Workspace saved.");
    }}, h("div", {class: "bar"}, field("Name", name), field("Provider", source), field("Address of its API", url, true)), h("div", {class: "bar"}, field("API key of the provider", key, true)), openAi, azure,
    h("div", {class: "bar"}, field("Role and rules of the model", system, true)), h("p", null, h("button", {class: "main"}, "Save workspace"))));
  }

  await enabled(box, "chatCompletions", draw);
}

const progress = "_svcSearchProgress", found = "_svcSearchSources", append = "_svcAppendConversationMessage";

/** talk opens a conversation in a workspace. The page remembers it while the dialog is open; svc does not. */
function talk(uid, signal) {
  const messages = [], lines = h("div", {class: "talk", role: "log", tabIndex: 0}), model = h("input", {required: true, placeholder: "name of the model", spellcheck: false}), text = h("textarea", {rows: 2, required: true, placeholder: "Ask a question", "aria-label": "Message"}), closed = new AbortController();
  const line = (who, ...content) => {
    const node = h("div", {class: "said-by " + who}, content);
    lines.append(node);
    lines.scrollTop = lines.scrollHeight;
    return node;
  };
  const send = h("button", {class: "main"}, "Send"), form = h("form", {onsubmit: async event => {
    event.preventDefault();
    const question = text.value.trim();
    if (!question) return;
    messages.push({role: "user", content: question});
    line("user", question);
    text.value = "";
    send.disabled = true;
    let answer = null, rest = "";
    /** take shows one event of the stream. */
    const take = event => {
      if (event.type === "error") line("bad", event.error.message); // the conversation may go on
      const delta = event.choices?.[0]?.delta;
      for (const call of delta?.tool_calls ?? []) {
        const given = JSON.parse(call.function.arguments);
        if (call.function.name === progress) {
          const asked = JSON.parse(given.function_parameters);
          line("search", `Searching ${asked.index_uid} for “${asked.q}”${asked.filter ? ` with ${asked.filter}` : ""}`);
        } else if (call.function.name === found) line("search", h("details", null, h("summary", null, `${given.documents.length} documents found`), h("pre", {tabIndex: 0}, json(given.documents).slice(0, 50000))));
        else if (call.function.name === append) messages.push(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)));
      }
      if (!delta?.content) return;
      answer ??= {node: line("assistant"), text: ""};
      answer.node.textContent = answer.text += delta.content;
      lines.scrollTop = lines.scrollHeight;
    };
    try {
      const body = {model: model.value.trim(), stream: true, messages, tools: [progress, found, append].map(name => ({type: "function", function: {name}}))};
      for await (const chunk of chunks(path(uid, "/chat/completions"), body, AbortSignal.any([signal, closed.signal]), true)) {
        const events = (rest + chunk).split("\n\n");
        rest = events.pop();
        for (const event of events) {
          const data = event.split("\n").filter(l => l.startsWith("data: ")).map(l => l.slice(6)).join("\n");
          if (data && data !== "[DONE]") take(JSON.parse(data));
        }
      }
      if (answer) messages.push({role: "assistant", content: answer.text});
    } catch (error) {
      if (error.name !== "AbortError") line("bad", error.message);
    } finally {
      send.disabled = false;
      text.focus();
    }
  }}, h("div", {class: "bar"}, field("Model", model)), lines, h("div", {class: "bar"}, field("Message", text, true), send));
  show(`Conversation in ${uid}`, form).addEventListener("close", () => closed.abort());
}

/** toolsView lists the tools of MCP, and what programs need to use them. */
export async function toolsView(box, signal) {
  await enabled(box, "mcp", async () => {
    const answer = await ask("/mcp", {body: {jsonrpc: "2.0", id: 1, method: "tools/list"}, signal});
    if (signal.aborted) return;
    if (answer.error) throw new Error(answer.error.message);
    const config = json({mcpServers: {svc: {type: "http", url: location.origin + "/mcp", ...hasKey() && {headers: {Authorization: "Bearer KEY"}}}}});
    box.replaceChildren(h("p", {class: "about"}, "Assistants and editors search through the Model Context Protocol. Give each a key that allows no more than it needs: the key decides which of these tools it sees."),
      h("pre", {tabIndex: 0}, config), h("p", null, h("button", {type: "button", onclick: () => copy(config)}, "Copy")),
      h("h2", null, "Tools that this key sees"), h("dl", null, answer.result.tools.map(tool => [h("dt", null, tool.name), h("dd", null, tool.description)])));
  });
}
