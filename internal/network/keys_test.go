package network

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/outbound"
	"svc/internal/settings"
)

const (
	searchKey = "5ea4c4000000000000000000000000000000000000000000000000000000cafe"
	writeKey  = "3417e0000000000000000000000000000000000000000000000000000000cafe"
)

func keyed(url string) *RemotePatch {
	return &RemotePatch{URL: given(url), SearchAPIKey: given(searchKey), WriteAPIKey: given(writeKey)}
}

func none(string) bool { return false }

// TestKeysAreMasked shows the network to clients that may see all keys, one key and none.
func TestKeysAreMasked(t *testing.T) {
	n := nodeOf(t, Options{}, "http://far.test", nil)
	if err := patch(n, &Patch{Remotes: map[string]*RemotePatch{"far": keyed("http://far.test")}}); err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		sees          func(string) bool
		search, write string
	}{
		"all":  {nil, searchKey, writeKey},
		"none": {none, settings.Redact(searchKey), settings.Redact(writeKey)},
		"one":  {func(key string) bool { return key == writeKey }, settings.Redact(searchKey), writeKey},
	} {
		if got, want := string(n.JSON(tt.sees)), `"searchApiKey":"`+tt.search+`","writeApiKey":"`+tt.write+`"`; !strings.Contains(got, want) {
			t.Errorf("%s: %s lacks %s", what, got, want)
		}
	}
	if !strings.Contains(string(n.JSON(none)), `"me":{"url":"http://me.test","searchApiKey":null,"writeApiKey":null`) {
		t.Errorf("missing keys are shown: %s", n.JSON(none))
	}
}

// TestMaskedKeysStay sends keys back masked or leaves them out, with the old URL and with others, as a client that sees no keys and as one
// that sees all.
func TestMaskedKeysStay(t *testing.T) {
	masked := RemotePatch{SearchAPIKey: given(settings.Redact(searchKey)), WriteAPIKey: given(settings.Redact(writeKey))}
	to := func(p RemotePatch, url string) RemotePatch { p.URL = given(url); return p }
	null := Text{Given: true}
	for _, tt := range []struct {
		what          string
		change        RemotePatch
		sees          func(string) bool
		code          apierr.Code
		search, write string
	}{
		{"masked", masked, none, "", searchKey, writeKey},
		{"masked, same url", to(masked, "http://far.test"), none, "", searchKey, writeKey},
		{"masked, same origin", to(masked, "HTTP://FAR.test:80/base"), none, "", searchKey, writeKey},
		{"masked, other port", to(masked, "http://far.test:81"), none, "invalid_network_url", "", ""},
		{"masked, other scheme", to(masked, "https://far.test"), none, "invalid_network_url", "", ""},
		{"left out, other host", to(RemotePatch{}, "http://evil.test"), none, "invalid_network_url", "", ""},
		{"one left out, other host", to(RemotePatch{SearchAPIKey: given("x")}, "http://evil.test"), none, "invalid_network_url", "", ""},
		{"visible one left out", to(RemotePatch{SearchAPIKey: given("x")}, "http://evil.test"), func(key string) bool { return key == writeKey }, "", "x", writeKey},
		{"new ones, other host", to(RemotePatch{SearchAPIKey: given("x"), WriteAPIKey: null}, "http://evil.test"), none, "", "x", ""},
		{"left out, other host, keys visible", to(RemotePatch{}, "http://moved.test"), nil, "", searchKey, writeKey},
		{"masked, other host, keys visible", to(masked, "http://moved.test"), nil, "", searchKey, writeKey},
		{"another mask", RemotePatch{SearchAPIKey: given("abcdeXXXXXX...")}, none, "", "abcdeXXXXXX...", writeKey},
		{"reset", RemotePatch{SearchAPIKey: null}, none, "", "", writeKey},
	} {
		n, err := empty().apply(&Patch{Remotes: map[string]*RemotePatch{"far": keyed("http://far.test")}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := n.apply(&Patch{Remotes: map[string]*RemotePatch{"far": &tt.change}, Sees: tt.sees})
		var code apierr.Code
		if err != nil {
			code = apierr.From(err).Code
		}
		if code != tt.code {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.code)
		}
		if err == nil && (textOf(got.Remotes["far"].SearchAPIKey) != tt.search || textOf(got.Remotes["far"].WriteAPIKey) != tt.write) {
			t.Errorf("%s: the keys are %v", tt.what, string(encode(got.Remotes["far"])))
		}
		if err != nil && (strings.Contains(err.Error(), searchKey) || strings.Contains(err.Error(), writeKey)) {
			t.Errorf("%s: the error shows a key: %v", tt.what, err)
		}
	}
}

// TestMaskedKeysElsewhere reads the network from a remote that masks keys: this instance fills in the keys that have not changed.
func TestMaskedKeysElsewhere(t *testing.T) {
	var there *Node
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(there.JSON(none)) }))
	defer remote.Close()
	here := nodeOf(t, Options{Allowed: outbound.Any()}, remote.URL, nil)
	there = nodeOf(t, Options{}, remote.URL, nil)
	other := given("another0000000000000000000000000000000000000000000000000000000000")
	for n, remotes := range map[*Node]map[string]*RemotePatch{
		here:  {"far": keyed(remote.URL), "changed": keyed("http://b.test")},
		there: {"far": keyed(remote.URL), "changed": {URL: given("http://b.test"), SearchAPIKey: other, WriteAPIKey: given(writeKey)}, "new": keyed("http://c.test"), "open": at("http://d.test")},
	} {
		if err := patch(n, &Patch{Remotes: remotes}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := here.networkAt(t.Context(), "far", here.Network().Remotes["far"])
	if err != nil {
		t.Fatal(err)
	}
	if r := got.Remotes["far"]; textOf(r.SearchAPIKey) != searchKey || textOf(r.WriteAPIKey) != writeKey {
		t.Errorf("unchanged keys are %s", encode(r))
	}
	if r := got.Remotes["open"]; r.SearchAPIKey != nil || r.WriteAPIKey != nil {
		t.Errorf("keys of a remote without keys are %s", encode(r))
	}
	if unknown := got.unknownKeys(); !slices.Equal(unknown, []string{"changed", "new"}) {
		t.Errorf("the remotes with unknown keys are %q", unknown)
	}
	// A leader cannot lead such a network until it gets the missing keys.
	if err := here.update(func(s *stored) { s.Network = got }); err != nil {
		t.Fatal(err)
	}
	lead := Patch{Self: given("me"), Leader: given("me"), Shards: map[string]*ShardPatch{"x": owners("me")}}
	if err := patch(here, &lead); err == nil || !strings.Contains(err.Error(), "`changed`") || !strings.Contains(err.Error(), "`remotes.changed`") {
		t.Errorf("a network with unknown keys: %v", err)
	}
	lead.Remotes = map[string]*RemotePatch{"changed": {SearchAPIKey: given(searchKey)}, "new": keyed("http://c.test")}
	if err := patch(here, &lead); err == nil || strings.Contains(err.Error(), "snapshot") {
		t.Errorf("a network with its keys, whose remotes do not answer: %v", err)
	}
}

// TestIsSearchKey checks that other instances search this one with the key in its own entry, and no other key.
func TestIsSearchKey(t *testing.T) {
	n := nodeOf(t, Options{}, "http://far.test", nil)
	if n.IsSearchKey("") || n.IsSearchKey("the-key") {
		t.Error("the key of another remote, or none, is accepted")
	}
	if err := patch(n, &Patch{Remotes: map[string]*RemotePatch{"me": keyed("http://me.test"), "": keyed("http://nameless.test")}}); err != nil {
		t.Fatal(err)
	}
	if !n.IsSearchKey(searchKey) || n.IsSearchKey(writeKey) || n.IsSearchKey(settings.Redact(searchKey)) {
		t.Error("the search key of the own entry is refused, or another text is accepted")
	}
	if err := patch(n, &Patch{Self: Text{Given: true}}); err != nil || n.IsSearchKey(searchKey) {
		t.Errorf("an instance without a name accepts a key (%v)", err)
	}
}
