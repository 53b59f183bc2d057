// Experimental features: switches for all of them, and an offer where one is missing.
import {ask} from "./api.js";
import {h, say} from "./dom.js";

// Every experimental feature. The server names those of later API versions only while they are on.
const switches = {
  metrics: "GET /metrics for Prometheus",
  logsRoute: "stream and filter logs",
  editDocumentsByFunction: "edit documents with a script",
  containsFilter: "CONTAINS and STARTS WITH in filters",
  dynamicSearchRules: "pin and boost hits by rules",
  network: "several instances share documents and searches",
  getTaskDocumentsRoute: "read the documents of a waiting task",
  taskQueueCompactionRoute: "compact the file of the task queue",
  compositeEmbedders: "different embedders for documents and searches",
  chatCompletions: "chat with a language model over the indexes",
  multimodal: "search with images and other media",
  foreignKeys: "documents that refer to documents of other indexes",
  tasksStreamingRoute: "stream tasks and batches as they change",
  renderRoute: "POST /render-template; svc has it without this switch",
  mcp: "POST /mcp: tools for language models (also mcpRoute)",
  disableDocumentsFetchQueue: "no effect; accepted from clients of later API versions",
  legacySearch: "no effect; accepted from clients of later API versions",
};

/** offer is shown where a feature is missing. It switches the feature on, and calls then. */
export const offer = (feature, then) => h("p", {class: "empty"}, `This needs the experimental feature ${feature}. `, h("button", {type: "button", class: "link", onclick: async event => {
  const {parentNode} = event.target;
  await ask("/experimental-features", {method: "PATCH", body: {[feature]: true}});
  parentNode.remove();
  await then();
}}, "Switch it on"));

/** enabled runs f, or offers the experimental feature that it needs. */
export async function enabled(box, feature, f) {
  try {
    await f();
  } catch (error) {
    if (error.code !== "feature_not_enabled") throw error;
    box.replaceChildren(offer(feature, f));
  }
}

export async function featuresView(box, signal) {
  const on = await ask("/experimental-features", {signal});
  box.replaceChildren(h("p", {class: "about"}, "A change takes effect at once."), h("div", {class: "choices"}, Object.entries(switches).map(([name, does]) => h("label", {class: "check feature"}, h("input", {type: "checkbox", checked: on[name] === true, onchange: async event => {
    try {
      await ask("/experimental-features", {method: "PATCH", body: {[name]: event.target.checked}});
      say(`${name} is switched ${event.target.checked ? "on" : "off"}.`);
    } catch (error) {
      event.target.checked = !event.target.checked;
      throw error;
    }
  }}), " ", name, " ", h("span", {class: "soft"}, does)))));
}
