package auth

import (
	"slices"
	"strings"
	"testing"

	"svc/internal/apierr"
)

// opens is the reference implementation of wildcards in actions.
func opens(held, wanted string) bool {
	reads := []string{
		"search", "documents.get", "indexes.get", "tasks.get", "settings.get", "fields.post", "stats.get", "metrics.get", "analytics.get", "version",
		"experimental.get", "group.get", "network.get", "webhooks.get", "chats.get", "chatsSettings.get", "dynamicSearchRules.get",
	}
	group, _, _ := strings.Cut(wanted, ".")
	switch {
	case held == "*" || held == wanted:
		return true
	case held == "*.get":
		return slices.Contains(reads, wanted)
	case held == "dynamicSearchRules.create":
		return wanted == "dynamicSearchRules.update"
	}
	return held == group+".*"
}

func TestActionsOpen(t *testing.T) {
	if len(actions) > 64 {
		t.Fatalf("%d actions do not fit a set", len(actions))
	}
	for _, held := range actions {
		for _, wanted := range actions {
			c := &Caller{key: &entry{may: granted[held.name]}}
			if got, want := c.may(wanted.name), opens(held.name, wanted.name); got != want {
				t.Errorf("a key with %s: %s is open: %t, want %t", held.name, wanted.name, got, want)
			}
		}
	}
	if c := (&Caller{key: &entry{may: granted["*"]}}); c.may("no.such") || c.may("") {
		t.Error("an action that does not exist is open")
	}
}

func TestCheckAction(t *testing.T) {
	for _, name := range []string{"*", "*.get", "search", "documents.*", "keys.get", "version", "dynamicSearchRules.create"} {
		if err := CheckAction(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "keys.*", "experimental.*", "network.*", "search.*", "version.get", "Search", "documents", "*.*", "documents.get "} {
		if err := CheckAction(name); codeOf(err) != "invalid_api_key_actions" {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern        string
		valid          bool
		covers, leaves []string
	}{
		{"*", true, []string{"a", "film", "_"}, nil},
		{"film", true, []string{"film"}, []string{"films", "fil", "Film"}},
		{"film_*", true, []string{"film_", "film_fr"}, []string{"film", "filmography"}},
		{"a-Z_9", true, []string{"a-Z_9"}, []string{"a"}},
		{"", false, nil, []string{"a"}},
		{"two words", false, nil, []string{"two", "words"}},
		{"mid*dle", false, nil, []string{"middle", "mid"}},
		{"*end", false, nil, []string{"end", "bend"}},
		{"a**", false, nil, []string{"a", "ab"}},
		{"é", false, nil, []string{"e"}},
		{strings.Repeat("a", 401), false, nil, []string{"a"}},
	} {
		if err := CheckPattern(tt.pattern); (err == nil) != tt.valid || err != nil && codeOf(err) != "invalid_api_key_indexes" {
			t.Errorf("%q: %v", tt.pattern, err)
		}
		for _, uid := range tt.covers {
			if !matches(tt.pattern, uid) {
				t.Errorf("%q does not cover %s", tt.pattern, uid)
			}
		}
		for _, uid := range tt.leaves {
			if matches(tt.pattern, uid) {
				t.Errorf("%q covers %s", tt.pattern, uid)
			}
		}
	}
}

// TestScope tries each action on some indexes and on all: actions on the whole instance need a key for all indexes.
func TestScope(t *testing.T) {
	indexed := []string{
		"*", "*.get", "search", "documents.*", "documents.add", "documents.get", "documents.delete",
		"indexes.*", "indexes.create", "indexes.get", "indexes.update", "indexes.delete", "indexes.swap", "indexes.compact",
		"tasks.*", "tasks.cancel", "tasks.delete", "tasks.get", "settings.*", "settings.get", "settings.update",
		"fields.post", "stats.*", "stats.get", "analytics.get", "analytics.delete", "chatCompletions",
	}
	for _, a := range actions {
		want := apierr.Code("index_scoped_api_key_with_global_action")
		if slices.Contains(indexed, a.name) {
			want = ""
		}
		for _, indexes := range [][]string{{"a"}, {"a*", "b"}} {
			if err := CheckScope([]string{"search", a.name}, indexes); codeOf(err) != want {
				t.Errorf("%s on %q: %v, want %q", a.name, indexes, err, want)
			}
		}
		for _, indexes := range [][]string{{"*"}, {"a", "*"}, {}} {
			if err := CheckScope([]string{a.name}, indexes); err != nil {
				t.Errorf("%s on %q: %v", a.name, indexes, err)
			}
		}
	}
}
