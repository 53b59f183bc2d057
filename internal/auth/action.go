package auth

import (
	"slices"
	"strings"

	"svc/internal/apierr"
)

// actions are all rights that a key may hold. Those marked read are also granted by `*.get`. Those marked whole act on the whole
// instance, or on things without an index: a key that is limited to some indexes cannot use them.
var actions = []struct {
	name        string
	read, whole bool
}{
	{name: "*", whole: true}, {name: "*.get"},
	{name: "search", read: true},
	{name: "documents.*"}, {name: "documents.add"}, {name: "documents.get", read: true}, {name: "documents.delete"},
	{name: "indexes.*"}, {name: "indexes.create"}, {name: "indexes.get", read: true}, {name: "indexes.update"}, {name: "indexes.delete"},
	{name: "indexes.swap"}, {name: "indexes.compact"},
	{name: "tasks.*"}, {name: "tasks.cancel"}, {name: "tasks.delete"}, {name: "tasks.get", read: true}, {name: "tasks.compact", whole: true},
	{name: "settings.*"}, {name: "settings.get", read: true}, {name: "settings.update"},
	{name: "fields.post", read: true},
	{name: "stats.*"}, {name: "stats.get", read: true},
	{name: "metrics.*", whole: true}, {name: "metrics.get", read: true, whole: true},
	{name: "analytics.get", read: true}, {name: "analytics.delete"},
	{name: "dumps.*"}, {name: "dumps.create", whole: true},
	{name: "snapshots.*"}, {name: "snapshots.create", whole: true},
	{name: "version", read: true, whole: true},
	{name: "keys.create", whole: true}, {name: "keys.get", whole: true}, {name: "keys.update", whole: true}, {name: "keys.delete", whole: true},
	{name: "experimental.get", read: true, whole: true}, {name: "experimental.update", whole: true},
	// It reads, but it sends what it read to any host that the caller names.
	{name: "export", whole: true},
	{name: "group.get", read: true, whole: true}, {name: "group.update", whole: true},
	{name: "network.get", read: true, whole: true}, {name: "network.update", whole: true},
	{name: "webhooks.*"}, {name: "webhooks.get", read: true, whole: true}, {name: "webhooks.create", whole: true},
	{name: "webhooks.update", whole: true}, {name: "webhooks.delete", whole: true},
	{name: "chatCompletions"},
	{name: "chats.*"}, {name: "chats.get", read: true, whole: true}, {name: "chats.delete", whole: true},
	{name: "chatsSettings.*"}, {name: "chatsSettings.get", read: true, whole: true}, {name: "chatsSettings.update", whole: true},
	{name: "dynamicSearchRules.*"}, {name: "dynamicSearchRules.get", read: true, whole: true}, {name: "dynamicSearchRules.create", whole: true},
	{name: "dynamicSearchRules.update", whole: true}, {name: "dynamicSearchRules.delete", whole: true},
}

// set holds a bit for each of actions.
type set uint64

// needed has the bit of each action, as routes ask for it.
var needed = func() map[string]set {
	m := make(map[string]set, len(actions))
	for i, a := range actions {
		m[a.name] = 1 << i
	}
	return m
}()

// reading is the set of actions that change nothing.
var reading = func() (s set) {
	for i, a := range actions {
		if a.read || strings.HasSuffix(a.name, ".get") {
			s |= 1 << i
		}
	}
	return s
}()

// granted has what a key with an action may do: the action itself, or all actions that a wildcard stands for.
var granted = func() map[string]set {
	m := make(map[string]set, len(actions))
	for _, a := range actions {
		s := needed[a.name]
		group, wild := strings.CutSuffix(a.name, "*")
		for _, other := range actions {
			if wild && strings.HasPrefix(other.name, group) || a.name == "*.get" && other.read {
				s |= needed[other.name]
			}
		}
		m[a.name] = s
	}
	// One route both creates and updates rules.
	m["dynamicSearchRules.create"] |= needed["dynamicSearchRules.update"]
	return m
}()

// whole is the set of actions on the instance as a whole.
var whole = func() (all set) {
	for _, a := range actions {
		if a.whole {
			all |= needed[a.name]
		}
	}
	return all
}()

// rights returns what a key with these actions may do.
func rights(names []string) (may set) {
	for _, name := range names {
		may |= granted[name]
	}
	return may
}

// instanceOnly is the set of actions that grant nothing on an index: those on the whole instance, and wildcards that cover only
// these.
var instanceOnly = func() set {
	var only, wildcards set
	for _, a := range actions {
		if strings.HasSuffix(a.name, "*") {
			wildcards |= needed[a.name]
		}
	}
	for _, a := range actions {
		if a.name != "*" && granted[a.name]&^wildcards&^whole == 0 {
			only |= needed[a.name]
		}
	}
	return only
}()

// CheckScope refuses a new key that is limited to some indexes but has an action on the whole instance, which it could never use
// (index_scoped_api_key_with_global_action).
func CheckScope(actions, indexes []string) error {
	if len(indexes) == 0 || slices.Contains(indexes, "*") {
		return nil
	}
	for _, name := range actions {
		if needed[name]&instanceOnly != 0 {
			return apierr.New("index_scoped_api_key_with_global_action", "The action `%s` concerns the whole instance, but the key is limited to some indexes. "+
				"Remove the action, or create a second key for it with `indexes` `*`.", name)
		}
	}
	return nil
}

// CheckAction refuses unknown actions (invalid_api_key_actions).
func CheckAction(name string) error {
	if _, ok := needed[name]; ok {
		return nil
	}
	return apierr.New("invalid_api_key_actions", "`%s` is not an action of keys. Use some of %s.", name, strings.Join(Actions(), ", "))
}

// Actions returns the names of all actions, including wildcards.
func Actions() []string {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = a.name
	}
	return names
}
