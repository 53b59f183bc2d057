package network

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"svc/internal/vfs"
)

// shaped returns a network led by a, with owners of shards by name.
func shaped(self string, remotes string, shards map[string]string) *Network {
	leader := "a"
	n := &Network{Leader: &leader, Version: newVersion(), Remotes: map[string]*Remote{}, Shards: map[string]*Shard{}}
	if self != "" {
		n.Self = &self
	}
	for name := range strings.SplitSeq(remotes, "") {
		n.Remotes[name] = &Remote{URL: "http://" + name + ".test"}
	}
	for name, owners := range shards {
		n.Shards[name] = &Shard{strings.Split(owners, "")}
	}
	return n
}

// TestSources checks which remotes an instance copies which shards from.
func TestSources(t *testing.T) {
	alone := empty()
	before := shaped("b", "abc", map[string]string{"x": "ab", "y": "c", "z": "c"})
	for _, tt := range []struct {
		what              string
		self              string
		network, previous *Network
		rebuilt           []string
		want              string
	}{
		{"from no network", "b", shaped("b", "abc", map[string]string{"x": "ab"}), alone, nil, "a:* c:*"},
		{"nothing is owned", "c", shaped("c", "abc", map[string]string{"x": "ab"}), before, nil, ""},
		{"shards of others", "b", shaped("b", "abc", map[string]string{"x": "a", "y": "b"}), before, nil, "c:y,z"},
		{"a newcomer", "d", shaped("d", "abcd", map[string]string{"w": "d", "x": "a"}), before, nil, "c:y,z " + strings.Join(ranked([]string{"a", "b"}, "x"), "|") + ":x"},
		{"what a newcomer brings", "a", shaped("a", "abcd", map[string]string{"x": "a"}), before, nil, "c:y,z d:*"},
		{"a remote leaves", "a", shaped("a", "ab", map[string]string{"x": "a"}), before, nil, "c!:y,z"},
		{"this instance is rebuilt", "b", shaped("b", "abc", map[string]string{"x": "ab", "y": "bc"}), before, []string{"b"}, "a:x c:y,z"},
		{"another is rebuilt", "a", shaped("a", "abc", map[string]string{"y": "ac"}), before, []string{"c"}, ""},
	} {
		r := &changing{network: tt.network, previous: tt.previous, rebuilt: tt.rebuilt}
		var got []string
		for _, s := range r.sources() {
			who := strings.Join(append([]string{s.name}, s.others...), "|")
			if s.leaves {
				who += "!"
			}
			shards := "*"
			if s.shards != nil {
				shards = strings.Join(s.shards, ",")
			}
			got = append(got, who+":"+shards)
		}
		want := strings.Fields(tt.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s asks %q, want %q", tt.what, tt.self, got, want)
		}
	}
}

// TestPhases goes through a change with a crash at every write of the file.
func TestPhases(t *testing.T) {
	mem := vfs.NewMem()
	open := func() *Node {
		n, err := Open(Options{FS: mem, File: "network.json"})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	a := &announced{Network: shaped("a", "ab", map[string]string{"x": "a", "y": "b"}), Previous: empty()}
	n := open()
	owns := func(n *Node) string {
		if owned := n.Owned(); owned == nil {
			return "all"
		}
		return "some"
	}
	for _, step := range []struct {
		do        func(n *Node) error
		searching bool // whether searches use the new network
		owns      string
		phase     phase
	}{
		{func(n *Node) error { return n.install(7, a) }, false, "all", waiting},
		{func(n *Node) error { return n.install(7, a) }, false, "all", waiting}, // again, after a crash
		{func(n *Node) error { return (&changing{n: n, version: a.Network.Version}).enter(moving) }, false, "some", moving},
		{func(n *Node) error { return (&changing{n: n, version: a.Network.Version}).enter(moved) }, false, "some", moved},
		{func(n *Node) error { return (&changing{n: n, version: newVersion()}).enter(switched) }, false, "some", moved}, // another change
		{func(n *Node) error { return (&changing{n: n, version: a.Network.Version}).enter(switched) }, true, "some", switched},
		{func(n *Node) error { return (&changing{n: n, version: a.Network.Version}).enter(moving) }, true, "some", switched}, // no way back
	} {
		if err := step.do(n); err != nil {
			t.Fatal(err)
		}
		n = open()
		if got := n.state(a.Network.Version); n.Searching().Led() != step.searching || owns(n) != step.owns || got.Phase != step.phase || !n.Network().Led() {
			t.Errorf("in %s: searches by the new network %v, keeps %s, phase %s", step.phase, n.Searching().Led(), owns(n), got.Phase)
		}
		if n.Ring(a.Network.Version.String()) == nil || n.Ring(uuid.NewString()) != nil || n.Ring("?") != nil {
			t.Error("the shards of this version are unknown, or those of another are known")
		}
	}

	canceled := open()
	canceled.giveUp(a.Network.Version)
	again := open()
	if now := again.Network(); now.Led() || now.Version != a.Network.Version || !again.state(a.Network.Version).Canceled {
		t.Errorf("after a cancelation the network is %s, the change %+v", again.JSON(nil), again.state(a.Network.Version))
	}
	if err := again.install(7, a); err != nil || again.Network().Led() {
		t.Errorf("a canceled change begins again: %v", err)
	}
}

// TestAnnouncement checks that the instance which an announcement names can read it.
func TestAnnouncement(t *testing.T) {
	a := &announced{Network: shaped("a", "ab", map[string]string{"x": "a"}), Previous: shaped("a", "abc", map[string]string{"x": "c"})}
	for to, self := range map[string]any{"b": "b", "c": nil} {
		var got map[string]any
		if err := json.Unmarshal(announcement(a, to), &got); err != nil {
			t.Fatal(err)
		}
		if got["self"] != self || got["leader"] != "a" || len(got["previousRemotes"].(map[string]any)) != 3 {
			t.Errorf("%s is told %v", to, got)
		}
	}
	if _, err := decodeAnnounced(encode(a)); err != nil {
		t.Error(err)
	}
	for _, damaged := range []string{``, `{}`, `{"network":{},"previous":null}`, `{"network":{"leader":"a"},"previous":{}}`,
		`{"network":{"leader":"a","shards":{"x":null}},"previous":{}}`, `{"network":{"leader":"a","shards":{"x":{"remotes":[]}}},"previous":{}}`} {
		if _, err := decodeAnnounced([]byte(damaged)); err == nil {
			t.Errorf("%q is read as a change", damaged)
		}
	}
}
