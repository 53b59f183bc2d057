"""The part of network-clients in Python: see there. Its network has no leader: remotes are named by queries."""
import os
import sys

from meilisearch import Client
from meilisearch.errors import MeilisearchApiError

hosts = {"a": os.environ["A"], "b": os.environ["B"], "c": os.environ["C"]}
at = {name: Client(host, "masterKey") for name, host in hosts.items()}
steps, failures = 0, 0


def step(what, holds):
    global steps, failures
    try:
        assert holds()
        steps += 1
    except Exception as e:  # the next step may tell more
        failures += 1
        print(f"Python: {what}: {e!r}", file=sys.stderr)


def refused(f, code):
    try:
        f()
    except MeilisearchApiError as e:
        return e.code == code


step("a network without its feature is refused", lambda: refused(at["a"].get_all_networks, "feature_not_enabled"))
for number, (name, client) in enumerate(at.items()):
    client.update_experimental_features({"network": True})
    task = client.index("films").add_documents([{"id": 10 * number + i, "title": f"film {i}", "kind": name} for i in range(4)])
    client.wait_for_task(task.task_uid)
    client.wait_for_task(client.index("films").update_filterable_attributes(["kind"]).task_uid)

remotes = {name: {"url": host, "searchApiKey": "masterKey"} for name, host in hosts.items()}
made = at["a"].add_or_update_networks({"self": "a", "remotes": remotes})
step("a network is made", lambda: made["self"] == "a" and sorted(made["remotes"]) == ["a", "b", "c"])
step("it is shown", lambda: at["a"].get_all_networks()["remotes"]["b"]["url"] == hosts["b"])

by_name = at["a"].multi_search([{"indexUid": "films", "q": "film", "federationOptions": {"remote": name}} for name in hosts],
                               federation={"limit": 20, "facetsByIndex": {"films": ["kind"]}})
step("queries go to the remotes that they name", lambda: len(by_name["hits"]) == 12 and by_name["remoteErrors"] == {}
     and all(h["_federation"]["remote"] == h["kind"] for h in by_name["hits"]))
step("facets are those of all", lambda: by_name["facetsByIndex"]["films"]["distribution"]["kind"] == {"a": 4, "b": 4, "c": 4})
everywhere = at["a"].index("films").search("film", {"useNetwork": True, "limit": 5, "offset": 5})
step("a plain search takes in the network", lambda: len(everywhere["hits"]) == 5 and everywhere["estimatedTotalHits"] == 12)
step("it does not by default", lambda: at["a"].index("films").search("film")["estimatedTotalHits"] == 4)
step("a remote that there is not", lambda: refused(lambda: at["a"].multi_search(
    [{"indexUid": "films", "federationOptions": {"remote": "nobody"}}], federation={}), "invalid_multi_search_remote"))
at["a"].add_or_update_networks({"remotes": {"c": {"url": hosts["c"], "searchApiKey": "wrong"}}})
partly = at["a"].index("films").search("film", {"useNetwork": True})
step("what fails is named, and others answer", lambda: partly["estimatedTotalHits"] == 8 and partly["remoteErrors"]["c"]["code"] == "remote_invalid_api_key")
step("a remote is taken out", lambda: "c" not in at["a"].add_or_update_networks({"remotes": {"c": None}})["remotes"])
print(f"Python: {steps} steps as expected")
sys.exit(failures)
