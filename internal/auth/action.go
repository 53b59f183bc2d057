package auth

import (
	"strings"

	"svc/internal/apierr"
)

// actions are all the rights that a key may hold; those marked read are granted by `*.get`, too.
var actions = []struct {
	name string
	read bool
}{
	{"*", false}, {"*.get", false},
	{"search", true},
	{"documents.*", false}, {"documents.add", false}, {"documents.get", true}, {"documents.delete", false},
	{"indexes.*", false}, {"indexes.create", false}, {"indexes.get", true}, {"indexes.update", false}, {"indexes.delete", false},
	{"indexes.swap", false}, {"indexes.compact", false},
	{"tasks.*", false}, {"tasks.cancel", false}, {"tasks.delete", false}, {"tasks.get", true}, {"tasks.compact", false},
	{"settings.*", false}, {"settings.get", true}, {"settings.update", false},
	{"fields.post", true},
	{"stats.*", false}, {"stats.get", true},
	{"metrics.*", false}, {"metrics.get", true},
	{"dumps.*", false}, {"dumps.create", false},
	{"snapshots.*", false}, {"snapshots.create", false},
	{"version", true},
	{"keys.create", false}, {"keys.get", false}, {"keys.update", false}, {"keys.delete", false},
	{"experimental.get", true}, {"experimental.update", false},
	{"export", true},
	{"network.get", true}, {"network.update", false},
	{"webhooks.*", false}, {"webhooks.get", true}, {"webhooks.create", false}, {"webhooks.update", false}, {"webhooks.delete", false},
	{"chatCompletions", false},
	{"chats.*", false}, {"chats.get", true}, {"chats.delete", false},
	{"chatsSettings.*", false}, {"chatsSettings.get", true}, {"chatsSettings.update", false},
	{"dynamicSearchRules.*", false}, {"dynamicSearchRules.get", true}, {"dynamicSearchRules.create", false},
	{"dynamicSearchRules.update", false}, {"dynamicSearchRules.delete", false},
}

// set holds a bit for each of actions.
type set uint64

// needed is the bit of each action, as routes ask for it.
var needed = func() map[string]set {
	m := make(map[string]set, len(actions))
	for i, a := range actions {
		m[a.name] = 1 << i
	}
	return m
}()

// granted is what a key with an action may do: that itself, and all that a wildcard stands for.
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
	// There is one route that both creates and updates rules.
	m["dynamicSearchRules.create"] |= needed["dynamicSearchRules.update"]
	return m
}()

// CheckAction refuses what is no action (invalid_api_key_actions).
func CheckAction(name string) error {
	if _, ok := needed[name]; ok {
		return nil
	}
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = a.name
	}
	return apierr.New("invalid_api_key_actions", "`%s` is no action of keys. Use some of %s.", name, strings.Join(names, ", "))
}
