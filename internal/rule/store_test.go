package rule

import (
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

var silent = slog.New(slog.DiscardHandler)

func open(t testing.TB, fsys vfs.FS) *Store {
	t.Helper()
	s, err := Open(Options{FS: fsys, File: "rules.json", Kept: "kept/rules", Log: silent})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pinning returns a change that pins a document.
func pinning(id string, position uint32) Change {
	return Change{Actions: []Action{{Selector: Selector{ID: &id}, Pin: &position}}, GivesActions: true}
}

// shown returns all rules of a store as shown.
func (s *Store) shown() string {
	var b strings.Builder
	for _, r := range s.Dump() {
		b.Write(r)
		b.WriteByte('\n')
	}
	return b.String()
}

func TestPut(t *testing.T) {
	fsys := vfs.NewMem()
	s := open(t, fsys)
	if _, _, err := s.Put("r", Change{}); code(err) != codeActions {
		t.Errorf("without actions: %v", err)
	}
	if _, _, err := s.Put("no uid", pinning("1", 0)); code(err) != "dynamic_search_rule_not_found" {
		t.Errorf("with a bad uid: %v", err)
	}
	off, text, seven := false, "text", uint64(7)
	description, priority := &text, &seven
	full := pinning("1", 2)
	full.Active, full.Description, full.Priority = &off, &description, &priority
	full.Conditions = &[]Condition{{Query: &QueryCondition{Contains: &text}}}
	const pin = `"actions":[{"selector":{"id":"1"},"action":{"type":"pin","position":2}}]}`
	on := true
	for i, tt := range []struct {
		c    Change
		want string
	}{
		{full, `{"uid":"r","description":"text","priority":7,"active":false,"conditions":[{"scope":"query","contains":"text"}],` + pin},
		{Change{}, `{"uid":"r","description":"text","priority":7,"active":false,"conditions":[{"scope":"query","contains":"text"}],` + pin},
		{Change{Active: &on}, `{"uid":"r","description":"text","priority":7,"active":true,"conditions":[{"scope":"query","contains":"text"}],` + pin},
		{Change{Description: new(*string), Priority: new(*uint64)}, `{"uid":"r","active":true,"conditions":[{"scope":"query","contains":"text"}],` + pin},
		{Change{Conditions: &[]Condition{}}, `{"uid":"r","active":true,"conditions":[],` + pin},
		{pinning("2", 0), `{"uid":"r","active":true,"conditions":[],"actions":[{"selector":{"id":"2"},"action":{"type":"pin","position":0}}]}`},
	} {
		r, created, err := s.Put("r", tt.c)
		must(t, err)
		if got := string(r.AppendJSON(nil)); got != tt.want || created != (i == 0) {
			t.Errorf("%d: %s, created %t, want %s", i, got, created, tt.want)
		}
		if got := open(t, fsys).shown(); got != tt.want+"\n" {
			t.Errorf("%d: %s is stored, want %s", i, got, tt.want)
		}
	}
	for _, uid := range []string{"b", "a", "z"} {
		if _, created, err := s.Put(uid, pinning("1", 0)); !created || err != nil {
			t.Errorf("%s: %t, %v", uid, created, err)
		}
	}
	var uids []string
	for _, r := range open(t, fsys).Set().List() {
		uids = append(uids, r.UID)
	}
	if got := strings.Join(uids, " "); got != "a b r z" {
		t.Errorf("List returns %s", got)
	}
	must(t, s.Delete("b"))
	for _, uid := range []string{"b", "", "ä"} {
		_, err := s.Get(uid)
		if code(err) != "dynamic_search_rule_not_found" || code(s.Delete(uid)) != "dynamic_search_rule_not_found" {
			t.Errorf("%q is found: %v", uid, err)
		}
	}
}

func TestValidUID(t *testing.T) {
	for uid, want := range map[string]bool{"a": true, "A-z_09": true, "": false, "a b": false, "ä": false, "a/b": false, "a*": false,
		strings.Repeat("a", 400): true, strings.Repeat("a", 401): false} {
		if ValidUID(uid) != want {
			t.Errorf("%q", uid)
		}
	}
}

// TestPowerFailure cuts the power at every step of a change and of a deletion: the rules must be the old or the new ones, and the new ones
// once the change was acknowledged.
func TestPowerFailure(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	mem := vfs.NewMem()
	_, _, err := open(t, mem).Put("a", pinning("1", 0))
	must(t, err)
	var clones []*vfs.MemFS
	s := open(t, vfs.Hook(mem, func(o vfs.Op) error {
		if o.Kind.Changes() {
			clones = append(clones, mem.CrashClone(rng), mem.CrashClone(nil))
		}
		return nil
	}))
	for _, change := range []func() error{
		func() error { _, _, err := s.Put("b", pinning("2", 1)); return err },
		func() error { _, _, err := s.Put("a", pinning("3", 1)); return err },
		func() error { return s.Delete("b") },
		func() error {
			_, err := s.Apply([]Update{{"c", []byte(`{"precedence":1}`), noon}, {"d", []byte(`{"conditions":{"query":{"words":"x"}}}`), noon}, {"a", nil, noon}})
			return err
		},
		func() error { _, err := s.Clear(); return err },
	} {
		before := s.shown()
		clones = nil
		must(t, change())
		after := s.shown()
		for i, c := range clones {
			if got := open(t, c).shown(); got != before && got != after {
				t.Errorf("after the failure before step %d: %s", i, got)
			}
		}
		if got := open(t, mem.CrashClone(nil)).shown(); got != after {
			t.Errorf("an acknowledged change is lost after a failure: %s", got)
		}
		if len(clones) < 6 {
			t.Errorf("only %d steps", len(clones))
		}
	}
}

func TestFullDisk(t *testing.T) {
	full := errors.New("no space left")
	for n := range int64(3) { // the write, its sync and the rename
		mem := vfs.NewMem()
		_, _, err := open(t, mem).Put("a", pinning("1", 0))
		must(t, err)
		s := open(t, vfs.Hook(mem, vfs.FailFrom(n, 1, func(o vfs.Op) bool {
			return o.Kind == vfs.OpWrite || o.Kind == vfs.OpSync || o.Kind == vfs.OpRename
		}, full)))
		before := s.shown()
		if _, _, err := s.Put("a", pinning("2", 0)); !errors.Is(err, full) {
			t.Errorf("%d: %v", n, err)
		}
		if s.shown() != before || open(t, mem).shown() != before {
			t.Errorf("%d: a failed change has an effect", n)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	const rule = `{"uid":"b","active":true,"conditions":[],"actions":[{"selector":{},"action":{"type":"pin","position":0}}]}`
	for _, b := range []string{`{}`, `[null]`, `[1]`, `[{"uid":"a"}]`, `[` + rule + `,` + rule + `]`} {
		fsys := vfs.NewMem()
		must(t, sealedjson.Write(fsys, "rules.json", formatVersion, []byte(b)))
		if _, err := Open(Options{FS: fsys, File: "rules.json", Kept: "kept", Log: silent}); !errors.As(err, new(*apierr.Corruption)) {
			t.Errorf("%s: %v", b, err)
		}
	}
	fsys := vfs.NewMem()
	must(t, vfs.WriteFile(fsys, "rules.json", []byte(`[`+rule+`]`)))
	if _, err := Open(Options{FS: fsys, File: "rules.json", Kept: "kept", Log: silent}); !errors.As(err, new(*apierr.Corruption)) {
		t.Errorf("not sealed: %v", err)
	}
}

// TestTakeIn opens a store beside rules that an import left, and cuts the power at every step.
func TestTakeIn(t *testing.T) {
	mem := vfs.NewMem()
	_, _, err := open(t, mem).Put("b", pinning("own", 0))
	must(t, err)
	must(t, mem.MkdirAll("kept/rules"))
	kept := func(uid string) string {
		return `{"uid":"` + uid + `","active":true,"conditions":[],"actions":[{"selector":{"id":"kept"},"action":{"type":"pin","position":0}}]}`
	}
	strange := `{"uid":"s","conditions":{"mood":{"is":"x"}},"actions":{"pin":[]}}`
	for name, b := range map[string]string{"0.json": kept("a"), "1.json": kept("b"), "2.json": strange, "3.json": kept("c"), "4.txt": "no rule"} {
		must(t, vfs.WriteFile(mem, "kept/rules/"+name, []byte(b)))
	}
	for _, dir := range []string{"kept/rules", "kept", "."} {
		must(t, mem.SyncDir(dir))
	}
	want := kept("a") + "\n" + strings.Replace(kept("b"), `"kept"`, `"own"`, 1) + "\n" + kept("c") + "\n"
	var clones []*vfs.MemFS
	s := open(t, vfs.Hook(mem, func(o vfs.Op) error {
		if o.Kind.Changes() {
			clones = append(clones, mem.CrashClone(nil))
		}
		return nil
	}))
	for i, fsys := range append(clones, mem) {
		if got := open(t, fsys).shown(); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
		if b, err := vfs.ReadFile(fsys, "kept/rules/2.json"); string(b) != strange {
			t.Errorf("%d: the part that is not understood is %q, %v", i, b, err)
		}
		if _, err := fsys.Stat("kept/rules/0.json"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d: the imported file is left: %v", i, err)
		}
	}
	if s.shown() != want || len(clones) < 5 {
		t.Errorf("%s after %d steps", s.shown(), len(clones))
	}
	// A deleted rule does not come back.
	must(t, s.Delete("a"))
	if _, err := open(t, mem).Get("a"); code(err) != "dynamic_search_rule_not_found" {
		t.Errorf("deleted: %v", err)
	}
}

// TestReload reads what another store has written, and then a damaged file.
func TestReload(t *testing.T) {
	fsys := vfs.NewMem()
	s, other := open(t, fsys), open(t, fsys)
	_, _, err := other.Put("a", pinning("1", 0))
	must(t, err)
	must(t, s.Reload())
	if s.shown() != other.shown() || s.shown() == "" {
		t.Errorf("the rules are %s, want %s", s.shown(), other.shown())
	}
	must(t, vfs.WriteFile(fsys, "rules.json", nil))
	if err := s.Reload(); !apierr.IsCorruption(err) || s.shown() != other.shown() {
		t.Errorf("a damaged file leaves %s: %v", s.shown(), err)
	}
}
