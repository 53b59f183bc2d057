"""The part of chat-clients in Python: see there."""
import os
import sys

from meilisearch import Client
from meilisearch.errors import MeilisearchApiError

host, provider = os.environ["SVC"], os.environ["PROVIDER"]
admin = Client(host, "masterKey")
chat, everything = (Client(host, next(k.key for k in admin.get_keys().results if k.name == name)) for name in ("Default Chat API Key", "Default Admin API Key"))
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


def talk(content, client=chat):
    chunks = client.create_chat_completion("kitchen", [{"role": "user", "content": content}], model="m")
    return "".join(choice["delta"].get("content") or "" for c in chunks for choice in c.get("choices", []))


admin.update_experimental_features({"chatCompletions": True, "dynamicSearchRules": True, "renderRoute": True})
settings = admin.update_chat_workspace_settings("kitchen", {"source": "vLlm", "baseUrl": provider, "apiKey": "sk-a-secret-of-the-provider"})
step("a workspace is made", lambda: settings["source"] == "vLlm" and "secret" not in settings["apiKey"])
step("workspaces are listed", lambda: admin.get_chat_workspaces(limit=3)["results"] == [{"uid": "kitchen"}])
step("settings are shown", lambda: admin.get_chat_workspace_settings("kitchen")["baseUrl"] == provider)
step("a stream says what the model does", lambda: talk("héllo wörld") == "héllo wörld")
step("a stream searches", lambda: "title: Metropolis" in talk("search metropolis"))
step("the master key chats", lambda: "héllo" in talk("héllo", admin))
step("the admin key cannot chat", lambda: refused(lambda: list(everything.create_chat_completion("kitchen", [])), "invalid_api_key"))
step("a workspace that is not there", lambda: refused(lambda: list(chat.create_chat_completion("none", [])), "chat_not_found"))
step("search rules are listed", lambda: admin.get_dynamic_search_rules({"limit": 3}).results == [])
step("a search rule that is not there", lambda: refused(lambda: admin.get_dynamic_search_rule("none"), "dynamic_search_rule_not_found"))
rendered = admin.render_template({"kind": "inlineDocumentTemplate", "inline": "{{doc.a}}"}, {"kind": "inlineDocument", "inline": {"a": "b"}})
step("a template is rendered", lambda: rendered == {"template": "{{doc.a}}", "rendered": "b"})
print(f"Python: {steps} steps as expected")
sys.exit(failures)
