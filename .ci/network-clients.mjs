// The part of network-clients in JavaScript: see there. It makes a network with a leader, and changes it.
import assert from "node:assert/strict";
import {passed, step} from "./steps.mjs";

const {Meilisearch} = await import(`${process.env.CLIENTS}/node_modules/meilisearch/dist/index.js`);
const urls = {a: process.env.A, b: process.env.B, c: process.env.C};
const at = Object.fromEntries(Object.entries(urls).map(([name, host]) => [name, new Meilisearch({host, apiKey: "masterKey"})]));
const remote = name => ({url: urls[name], searchApiKey: "masterKey", writeApiKey: "masterKey"});
const own = async name => (await at[name].index("films").getDocuments({limit: 0, useNetwork: false})).total;
const found = async (name, q) => {
  const r = await at[name].index("films").search(q, {limit: 1000});
  assert.deepEqual(r.remoteErrors, {});
  return r.hits;
};
const films = (from, to) => Array.from({length: to - from}, (_, i) => ({id: from + i, title: `film ${from + i}`}));

await step("a network without its feature is refused", () => assert.rejects(at.a.getNetwork(), e => e.cause?.code === "feature_not_enabled"));
for (const client of Object.values(at)) await client.updateExperimentalFeatures({network: true});
await step("a network is made, and all know it", async () => {
  const task = await at.a.initializeNetwork({self: "a", remotes: {a: remote("a"), b: remote("b")}, shards: {x: {remotes: ["a"]}, y: {remotes: ["b"]}}}).waitTask();
  assert.equal(task.type, "networkTopologyChange");
  assert.equal(task.status, "succeeded");
  const [here, there] = [await at.a.getNetwork(), await at.b.getNetwork()];
  assert.deepEqual([here.self, there.self, there.leader], ["a", "b", "a"]);
  assert.equal(here.version, there.version);
  assert.deepEqual(there.shards, {x: {remotes: ["a"]}, y: {remotes: ["b"]}});
});
await step("documents are dealt out, and the task tells of the other one", async () => {
  const task = await at.a.index("films").addDocuments(films(0, 200)).waitTask();
  assert.equal(task.details.receivedDocuments, 200);
  assert.equal(typeof task.network.remote_tasks.b.taskUid, "number");
  await at.b.tasks.waitForTask(task.network.remote_tasks.b.taskUid);
  const [a, b] = [await own("a"), await own("b")];
  assert.equal(a + b, 200);
  for (const name of ["a", "b"]) assert.equal((await at[name].index("films").getDocuments({limit: 0})).total, 200);
  assert.ok(a > 50 && b > 50, `${a} and ${b}`);
});
await step("a search at each finds all, and says where", async () => {
  for (const name of ["a", "b"]) {
    const hits = await found(name, "film");
    assert.equal(new Set(hits.map(h => h.id)).size, 200);
    assert.deepEqual([...new Set(hits.map(h => h._federation.remote))].sort(), ["a", "b"]);
  }
});
await step("a search can be of one instance alone", async () => {
  const r = await at.b.index("films").search("film", {useNetwork: false});
  assert.equal(r.estimatedTotalHits, await own("b"));
});
await step("a write elsewhere is refused", () => assert.rejects(at.b.index("films").addDocuments([{id: 1}]), e => e.cause?.code === "not_a_leader"));
await step("an instance is added, and documents move to it", async () => {
  await at.a.addRemote({name: "c", remote: remote("c")}).waitTask();
  const task = await at.a.updateNetwork({shards: {z: {remotes: ["c"]}}});
  assert.equal((await at.a.tasks.waitForTask(task.taskUid)).status, "succeeded");
  assert.ok(await own("c") > 20);
  assert.equal((await found("c", "film")).length, 200);
});
await step("a shard gets a second owner, and loses it again", async () => {
  await at.a.addRemotesToShard("x", ["c"]).waitTask();
  assert.equal(await own("a") + await own("b") + await own("c"), 200 + await own("a"));
  assert.equal((await found("b", "film")).length, 200);
  await at.a.removeRemotesFromShard("x", ["c"]).waitTask();
  assert.equal(await own("a") + await own("b") + await own("c"), 200);
});
await step("settings and deletions reach all", async () => {
  await at.a.index("films").updateFilterableAttributes(["id"]).waitTask();
  await at.a.index("films").deleteDocuments({filter: "id >= 100"}).waitTask();
  for (const name of ["b", "c"]) {
    const last = (await at[name].tasks.getTasks({limit: 1})).results[0];
    await at[name].tasks.waitForTask(last.uid);
  }
  assert.equal((await found("c", "film")).length, 100);
});
await step("an instance is taken out", async () => {
  await at.a.updateNetwork({shards: {z: null}}).then(t => at.a.tasks.waitForTask(t.taskUid));
  await at.a.removeRemote({name: "c"}).waitTask();
  assert.equal((await at.c.getNetwork()).self, null);
  assert.equal(await own("a") + await own("b"), 100);
});
await step("errors have their codes", async () => {
  await assert.rejects(at.a.updateNetwork({shards: {x: {remotes: ["nobody"]}}}), e => e.cause?.code === "invalid_network_shards");
  await assert.rejects(at.b.updateNetwork({remotes: {d: remote("c")}}), e => e.cause?.code === "not_a_leader");
});
console.log(`JavaScript: ${passed} steps as expected`);
