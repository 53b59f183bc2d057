// The part of chat-clients in JavaScript: see there.
import assert from "node:assert/strict";
import {passed, step} from "./steps.mjs";

const {Meilisearch} = await import(`${process.env.CLIENTS}/new/node_modules/meilisearch/dist/index.js`);
const older = (await import(`${process.env.CLIENTS}/rules/node_modules/meilisearch/dist/index.js`)).Meilisearch;
const host = process.env.SVC;
const admin = new Meilisearch({host, apiKey: "masterKey"}), rules = new older({host, apiKey: "masterKey"});

await admin.updateExperimentalFeatures({chatCompletions: true, dynamicSearchRules: true, renderRoute: true, tasksStreamingRoute: true});
await admin.index("films").addDocuments([{id: 1, title: "Metropolis"}, {id: 2, title: "Stalker"}, {id: 3, title: "Metropolitan"}]).waitTask();
const kitchen = admin.chat("kitchen");

await step("a workspace is made", async () => {
  const settings = await kitchen.update({source: "vLlm", baseUrl: process.env.PROVIDER, apiKey: "sk-a-secret-of-the-provider", prompts: {system: "Be short."}});
  assert.equal(settings.source, "vLlm");
  assert.equal(settings.prompts.system, "Be short.");
  assert.ok(!settings.apiKey.includes("secret"), settings.apiKey);
});
await step("workspaces are listed, and one is shown", async () => {
  assert.deepEqual((await admin.getChatWorkspaces({limit: 3})).results, [{uid: "kitchen"}]);
  assert.deepEqual(await admin.getChatWorkspace("kitchen"), {uid: "kitchen"});
  assert.equal((await kitchen.get()).baseUrl, process.env.PROVIDER);
});

const chatKey = (await admin.getKeys()).results.find(k => k.name === "Default Chat API Key").key;
const talk = async (content, tools = []) => {
  const stream = await new Meilisearch({host, apiKey: chatKey}).chat("kitchen")
    .streamCompletion({model: "m", messages: [{role: "user", content}], stream: true, tools: tools.map(name => ({type: "function", function: {name}}))});
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of stream) text += decoder.decode(bytes, {stream: true});
  const data = text.split("\n\n").map(e => e.replace(/^retry: \d+\n/, "")).filter(e => e.startsWith("data: ")).map(e => e.slice(6));
  assert.equal(data.pop(), "[DONE]");
  return data.map(d => JSON.parse(d));
};
const said = chunks => chunks.flatMap(c => c.choices ?? []).map(c => c.delta.content ?? "").join("");
await step("a stream says what the model does", async () => assert.equal(said(await talk("héllo wörld")), "héllo wörld"));
await step("a stream with a search shows its progress and its sources", async () => {
  const chunks = await talk("search metropolis", ["_meiliSearchProgress", "_meiliSearchSources"]);
  const calls = chunks.flatMap(c => c.choices ?? []).flatMap(c => c.delta.tool_calls ?? []);
  const sources = calls.filter(c => c.function.name === "_meiliSearchSources").map(c => JSON.parse(c.function.arguments));
  assert.ok(calls.some(c => c.function.name === "_meiliSearchProgress"));
  assert.equal(sources[0].documents[0].title, "Metropolis");
  assert.match(said(chunks), /title: Metropolis/);
});
await step("the admin key cannot chat", async () => {
  const {results} = await admin.getKeys();
  const other = new Meilisearch({host, apiKey: results.find(k => k.name === "Default Admin API Key").key});
  await assert.rejects(other.chat("kitchen").streamCompletion({model: "m", messages: [], stream: true}), e => e.cause?.code === "invalid_api_key");
});
await step("a workspace is reset and deleted", async () => {
  await kitchen.reset();
  assert.equal((await kitchen.get()).apiKey, null);
  await admin.deleteChatWorkspace("kitchen");
  await assert.rejects(kitchen.get(), e => e.cause?.code === "chat_not_found");
});

await step("a search rule pins a document", async () => {
  const made = await rules.updateDynamicSearchRule("top", {description: "d", priority: 1, active: true, conditions: [{scope: "query", contains: "metro"}],
    actions: [{selector: {indexUid: "films", id: "2"}, action: {type: "pin", position: 0}}]});
  assert.equal(made.uid, "top");
  assert.deepEqual((await rules.index("films").search("metropolis")).hits.map(h => h.id), [2, 1, 3]);
});
await step("search rules are listed, shown and deleted", async () => {
  assert.equal((await rules.getDynamicSearchRules({filter: {active: true}})).results.length, 1);
  assert.equal((await rules.getDynamicSearchRule("top")).priority, 1);
  await rules.deleteDynamicSearchRule("top"); // with v1.54 a task
  await admin.tasks.waitForTasks((await admin.tasks.getTasks({statuses: ["enqueued", "processing"]})).results.map(t => t.uid));
  await assert.rejects(rules.getDynamicSearchRule("top"), e => e.cause?.code === "dynamic_search_rule_not_found");
});
await step("search rules of the newest form are written as tasks", async () => {
  const done = await admin.updateDynamicSearchRule("refund", {description: "Refunds of winter", precedence: 1, active: true,
    conditions: {query: {words: "money back"}, time: {start: "2020-01-01T00:00:00Z", end: "2100-01-01T00:00:00Z"}},
    actions: [{selector: {indexUid: "films", id: "2"}, action: {type: "pin", position: 0}}]}).waitTask();
  assert.deepEqual([done.status, done.type, done.indexUid, done.details.updatedRules], ["succeeded", "dsrUpdate", ".meili_dsr", 1]);
  const filtered = await admin.updateDynamicSearchRule("filtered", {precedence: 2, conditions: {filter: {values: {title: "Stalker"}}},
    actions: [{selector: {id: "2"}, action: {type: "pin", position: 0}}]}).waitTask();
  assert.equal(filtered.status, "succeeded");
  const partial = await admin.updateDynamicSearchRule("filtered", {description: "by title"}).waitTask();
  assert.equal(partial.status, "succeeded");
});
await step("they are read in the form in which they were written", async () => {
  const rule = await admin.getDynamicSearchRule("refund");
  assert.ok(!isNaN(Date.parse(rule.lastUpdatedAt)), rule.lastUpdatedAt);
  delete rule.lastUpdatedAt;
  assert.deepEqual(rule, {uid: "refund", description: "Refunds of winter", precedence: 1, active: true,
    conditions: {query: {words: "money back"}, time: {start: "2020-01-01T00:00:00Z", end: "2100-01-01T00:00:00Z"}},
    actions: [{selector: {indexUid: "films", id: "2"}, action: {type: "pin", position: 0}}]});
  const uids = async parameters => (await admin.getDynamicSearchRules(parameters)).results.map(r => r.uid);
  assert.deepEqual(await uids(), ["filtered", "refund"]);
  assert.deepEqual(await uids({filter: {query: "wintre", active: true}}), ["refund"]);
  assert.deepEqual(await uids({limit: 1, offset: 1}), ["refund"]);
});
await step("searches follow them", async () => {
  const ids = async (q, parameters) => (await admin.index("films").search(q, parameters)).hits.map(h => h.id);
  assert.deepEqual(await ids("back money metropolis"), [2]);
  assert.deepEqual(await ids("metropolis"), [1, 3]);
  await admin.index("films").updateFilterableAttributes(["title"]).waitTask();
  assert.deepEqual(await ids("metropolis", {filter: "title IN [Stalker, Metropolis]"}), [2, 1]);
  assert.deepEqual(await ids("metropolis", {filter: "title = Metropolis"}), [1]);
});
await step("they are deleted one by one and together", async () => {
  for (const uid of ["refund", "never"]) assert.equal((await admin.deleteDynamicSearchRule(uid).waitTask().catch(e => ({status: e.cause?.code}))).status, uid === "refund" || process.env.API === "1.54" ? "succeeded" : "dynamic_search_rule_not_found");
  const cleared = await admin.deleteAllDynamicSearchRules().waitTask();
  assert.deepEqual([cleared.status, cleared.type, cleared.details.deletedDocuments], ["succeeded", "dsrClear", 1]);
  assert.deepEqual((await admin.getDynamicSearchRules()).results, []);
});
await step("bad rules are refused", async () => {
  for (const [rule, code] of [[{precedence: -1}, "invalid_dynamic_search_rule_priority"], [{precedence: 1, priority: 1}, "bad_request"],
    [{precedence: 1, conditions: {query: {isEmpty: true, words: "x"}}}, "bad_request"], [{precedence: 1, actions: "x"}, "invalid_dynamic_search_rule_actions"]])
    await assert.rejects(admin.updateDynamicSearchRule("bad", rule), e => e.cause?.code === code, code);
});
await step("a template is rendered", async () => {
  const r = await admin.renderTemplate({template: {kind: "inlineDocumentTemplate", inline: "{{doc.title}}"}, input: {kind: "indexDocument", indexUid: "films", id: "1"}});
  assert.deepEqual(r, {template: "{{doc.title}}", rendered: "Metropolis"});
});
console.log(`JavaScript: ${passed} steps as expected`);
