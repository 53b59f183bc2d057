package network

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/outbound"
	"svc/internal/vfs"
)

func given(s string) Text { return Text{true, &s} }

func at(url string) *RemotePatch { return &RemotePatch{URL: given(url)} }

func owners(names ...string) *ShardPatch { return &ShardPatch{Remotes: append([]string{}, names...)} }

// led returns a patch that makes a network with a leader.
func led() *Patch {
	return &Patch{Self: given("hq"), Leader: given("hq"),
		Remotes: map[string]*RemotePatch{"hq": at("http://a.test"), "annex": at("http://b.test")},
		Shards:  map[string]*ShardPatch{"east": owners("hq"), "west": owners("annex", "hq")}}
}

// TestPatches applies patches one after the other. A refused patch must have no effect.
func TestPatches(t *testing.T) {
	null := Text{Given: true}
	for _, tt := range []struct {
		what   string
		before *Patch
		p      Patch
		code   apierr.Code
		shards string // of the result, as JSON
	}{
		{"nothing", led(), Patch{}, "", `{"east":{"remotes":["hq"]},"west":{"remotes":["annex","hq"]}}`},
		{"add and remove", led(), Patch{Shards: map[string]*ShardPatch{"east": {Add: []string{"annex", "hq"}, Remove: []string{"hq"}}}}, "", `{"east":{"remotes":["annex"]},"west":{"remotes":["annex","hq"]}}`},
		{"replace, then add", led(), Patch{Shards: map[string]*ShardPatch{"west": {Remotes: []string{"hq"}, Add: []string{"annex"}}}}, "", `{"east":{"remotes":["hq"]},"west":{"remotes":["annex","hq"]}}`},
		{"a shard goes", led(), Patch{Shards: map[string]*ShardPatch{"east": nil, "unknown": nil}}, "", `{"west":{"remotes":["annex","hq"]}}`},
		{"an empty member", led(), Patch{Shards: map[string]*ShardPatch{"east": {}, "new": {}}}, "", `{"east":{"remotes":["hq"]},"west":{"remotes":["annex","hq"]}}`},
		{"the last shard goes", led(), Patch{ClearShards: true}, "invalid_network_shards", ""},
		{"the last remote of a shard goes", led(), Patch{Shards: map[string]*ShardPatch{"east": {Remove: []string{"hq"}}}}, "invalid_network_shards", ""},
		{"a shard without owners", led(), Patch{Shards: map[string]*ShardPatch{"east": owners()}}, "invalid_network_shards", ""},
		{"a shard of an unknown remote", led(), Patch{Shards: map[string]*ShardPatch{"new": owners("far")}}, "invalid_network_shards", ""},
		{"a remote goes", led(), Patch{Remotes: map[string]*RemotePatch{"annex": nil}}, "", `{"east":{"remotes":["hq"]},"west":{"remotes":["hq"]}}`},
		{"a remote goes with its shard", led(), Patch{Remotes: map[string]*RemotePatch{"annex": nil}, Shards: map[string]*ShardPatch{"west": owners("annex")}}, "invalid_network_shards", ""},
		{"the leader goes", led(), Patch{Remotes: map[string]*RemotePatch{"hq": nil}}, "invalid_network_remotes", ""},
		{"another leader", led(), Patch{Leader: given("annex")}, "not_a_leader", ""},
		{"another self", led(), Patch{Self: given("annex")}, "not_a_leader", ""},
		{"no leader", led(), Patch{Leader: null, ClearShards: true}, "", `{}`},
		{"unknown remotes without a leader", nil, Patch{Shards: map[string]*ShardPatch{"a": owners("x", "b", "x"), "b": owners()}}, "", `{"a":{"remotes":["b","x"]}}`},
		{"no address", nil, Patch{Remotes: map[string]*RemotePatch{"a": {}}}, "missing_network_url", ""},
		{"address removed", led(), Patch{Remotes: map[string]*RemotePatch{"annex": {URL: null}}}, "invalid_network_url", ""},
		{"words", nil, Patch{Remotes: map[string]*RemotePatch{"a": at("not a url")}}, "invalid_network_url", ""},
		{"another scheme", nil, Patch{Remotes: map[string]*RemotePatch{"a": at("ftp://a.test")}}, "invalid_network_url", ""},
		{"a query", nil, Patch{Remotes: map[string]*RemotePatch{"a": at("http://a.test/?x=1")}}, "invalid_network_url", ""},
		{"an empty query", nil, Patch{Remotes: map[string]*RemotePatch{"a": at("http://a.test/keys?")}}, "invalid_network_url", ""},
		{"an empty fragment", nil, Patch{Remotes: map[string]*RemotePatch{"a": at("http://a.test/keys#")}}, "invalid_network_url", ""},
		{"a path that goes up", nil, Patch{Remotes: map[string]*RemotePatch{"a": at("http://a.test/base/../x")}}, "invalid_network_url", ""},
		{"an escaped path that goes up", nil, Patch{Remotes: map[string]*RemotePatch{"a": at("http://a.test/base/%2e%2E/x")}}, "invalid_network_url", ""},
		{"a path to itself", nil, Patch{Remotes: map[string]*RemotePatch{"a": at("http://a.test/.")}}, "invalid_network_url", ""},
		{"a backslash", nil, Patch{Remotes: map[string]*RemotePatch{"a": at(`http://a.test/base%5C..%5Cx`)}}, "invalid_network_url", ""},
	} {
		n := empty()
		if tt.before != nil {
			var err error
			if n, err = n.apply(tt.before); err != nil {
				t.Fatal(err)
			}
		}
		was := string(encode(n))
		got, err := n.apply(&tt.p)
		var code apierr.Code
		if err != nil {
			code = apierr.From(err).Code
		}
		if code != tt.code {
			t.Errorf("%s: code %q, want %q (%v)", tt.what, code, tt.code, err)
		}
		if got != nil {
			if shards := string(encode(got.Shards)); shards != tt.shards {
				t.Errorf("%s: shards %s, want %s", tt.what, shards, tt.shards)
			}
		}
		if is := string(encode(n)); is != was {
			t.Errorf("%s: a refused patch changed the network from %s to %s", tt.what, was, is)
		}
	}
}

// TestNode checks that the network survives restarts and failures of the disk.
func TestNode(t *testing.T) {
	mem := vfs.NewMem()
	open := func(fsys vfs.FS) *Node {
		n, err := Open(Options{FS: fsys, File: "network.json"})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := open(mem)
	if !strings.Contains(string(n.JSON(nil)), `"version":"00000000-0000-0000-0000-000000000000"`) {
		t.Errorf("a new network: %s", n.JSON(nil))
	}
	key := "secret"
	p := &Patch{Self: given("a"), Remotes: map[string]*RemotePatch{"a": {URL: given("http://a.test"), SearchAPIKey: Text{true, &key}}}}
	if err := patch(n, p); err != nil {
		t.Fatal(err)
	}
	first := string(n.JSON(nil))
	if want := `"remotes":{"a":{"url":"http://a.test","searchApiKey":"secret","writeApiKey":null,"status":"available"}}`; !strings.Contains(first, want) {
		t.Errorf("%s lacks %s", first, want)
	}
	broken := open(failing{mem})
	if err := patch(broken, &Patch{Self: given("b")}); err == nil || string(broken.JSON(nil)) != first {
		t.Errorf("a network that cannot be stored is visible: %v, %s", err, broken.JSON(nil))
	}
	if again := open(mem); string(again.JSON(nil)) != first {
		t.Errorf("after a restart %s, want %s", again.JSON(nil), first)
	}
	version := n.Network().Version
	if err := patch(n, &Patch{}); err != nil || n.Network().Version.String() <= version.String() {
		t.Errorf("the version after %s is %s (%v)", version, n.Network().Version, err)
	}
	var dumped Network
	if err := json.Unmarshal(n.DumpJSON(), &dumped); err != nil || *dumped.Remotes["a"].SearchAPIKey != key {
		t.Errorf("the dump has %s", n.DumpJSON())
	}
}

// TestVersionsRise checks that a new version is later than all known ones, here and at remotes, although the clock is behind them.
func TestVersionsRise(t *testing.T) {
	ahead := uuid.MustParse("7fffffff-ffff-7000-8000-000000000000") // thousands of years
	for _, others := range [][]uuid.UUID{nil, {uuid.Nil}, {ahead}, {ahead, newVersion()}, {newVersion(ahead), ahead}, {newVersion(), newVersion(newVersion(ahead)), uuid.Nil}} {
		v := newVersion(others...)
		for _, o := range others {
			if !newer(v, o) {
				t.Errorf("%s is not later than %s", v, o)
			}
		}
		if v.Version() != 7 || v.Variant() != uuid.RFC4122 {
			t.Errorf("%s is no UUID of version 7", v)
		}
	}
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, map[string]string{
			"/experimental-features": `{"network":true}`,
			"/tasks":                 `{"results":[]}`,
			"/network/change":        `{"phase":"waiting","version":"` + ahead.String() + `"}`,
		}[r.URL.Path])
	}))
	defer remote.Close()
	n := nodeOf(t, Options{Allowed: outbound.Any(), AnswerTimeout: time.Minute}, remote.URL, nil)
	far := map[string]*Remote{"far": n.Network().Remotes["far"]}
	if known, err := n.checkRemotes(context.Background(), empty(), &Network{Remotes: far}, nil); err != nil || !slices.Contains(known, ahead) {
		t.Errorf("the remote has %v, %v, want %s", known, err, ahead)
	}
	if err := n.update(func(s *stored) { s.Network.Version = ahead }); err != nil {
		t.Fatal(err)
	}
	if err := patch(n, &Patch{}); err != nil || !newer(n.Network().Version, ahead) {
		t.Errorf("after %s the version is %s (%v)", ahead, n.Network().Version, err)
	}
}

// failing is a file system that fails to create files.
type failing struct{ vfs.FS }

func (failing) Create(string) (vfs.File, error) { return nil, errors.New("no more files") }

func patch(n *Node, p *Patch) error {
	_, err := n.Patch(context.Background(), p)
	return err
}

// TestReload reads a network that another node has written, and then a damaged file.
func TestReload(t *testing.T) {
	fsys := vfs.NewMem()
	open := func() *Node {
		t.Helper()
		n, err := Open(Options{FS: fsys, File: "network.json"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n
	}
	n, other := open(), open()
	err := other.update(func(s *stored) {
		w := *s.Network
		w.Remotes = map[string]*Remote{"a": {URL: "http://a.test"}}
		s.Network = &w
	})
	if err != nil {
		t.Fatal(err)
	}
	want := string(other.DumpJSON())
	if err := n.Reload(); err != nil || string(n.DumpJSON()) != want || n.Network().Remotes["a"] == nil {
		t.Errorf("the network is %s, want %s: %v", n.DumpJSON(), want, err)
	}
	if err := vfs.WriteFile(fsys, "network.json", nil); err != nil {
		t.Fatal(err)
	}
	if err := n.Reload(); !apierr.IsCorruption(err) || string(n.DumpJSON()) != want {
		t.Errorf("a damaged file leaves %s: %v", n.DumpJSON(), err)
	}
}
