package powercut

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// leavings builds what many power cuts leave after the events, and counts the contents of a file; "-" means that it is missing.
func leavings(t *testing.T, file string, events ...Event) map[string]int {
	t.Helper()
	d := NewDisk()
	for i := range events {
		d.Apply(i, &events[i])
	}
	d.Apply(len(events), &Event{Kind: Sync, Since: len(events)}) // sync of the root, which gives data its name
	found := map[string]int{}
	for seed := range uint64(100) {
		dir := filepath.Join(t.TempDir(), "left")
		if err := d.Leave("data", dir, rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, file))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			b = []byte("-")
		case err != nil:
			t.Fatal(err)
		case len(b) > 9:
			b = append(bytes.Clone(b[:4]), b[len(b)-4:]...)
		}
		found[string(b)]++
	}
	return found
}

func TestStatesAfterPowerCuts(t *testing.T) {
	dir := Event{Kind: Mkdir, Node: 1, Name: "data"}
	made := Event{Kind: Create, Node: 2, Dir: 1, Name: "f"}
	written := Event{Kind: Write, Node: 2, Data: []byte("old")}
	syncFile := func(since int) Event { return Event{Kind: Sync, Node: 2, Since: since} }
	syncDir := func(since int) Event { return Event{Kind: Sync, Node: 1, Since: since} }
	big := bytes.Repeat([]byte("abcd"), 4096)
	durable := []Event{dir, made, written, syncFile(3), syncDir(4)}
	for name, c := range map[string]struct {
		events []Event
		want   []string // all possible contents; each must occur
	}{
		"synced":                       {durable, []string{"old"}},
		"a name that was not synced":   {[]Event{dir, made, written, syncFile(3)}, []string{"old", "-"}},
		"bytes that were not synced":   {[]Event{dir, made, written, syncDir(3)}, []string{"old", ""}},
		"a sync that had begun before": {[]Event{dir, made, written, syncFile(2), syncDir(4)}, []string{"old", ""}},
		"overwritten":                  {append(durable[:5:5], Event{Kind: Write, Node: 2, Data: []byte("new")}), []string{"old", "new"}},
		"twice":                        {append(durable[:5:5], Event{Kind: Write, Node: 2, Data: []byte("new")}, Event{Kind: Write, Node: 2, Data: []byte("xyz")}), []string{"old", "new", "xyz"}},
		"cut off":                      {append(durable[:5:5], Event{Kind: Truncate, Node: 2}), []string{"old", ""}},
		"removed":                      {append(durable[:5:5], Event{Kind: Unlink, Dir: 1, Name: "f"}), []string{"old", "-"}},
		"removed for good":             {append(durable[:5:5], Event{Kind: Unlink, Dir: 1, Name: "f"}, syncDir(6)), []string{"-"}},
		"replaced": {append(durable[:5:5], Event{Kind: Create, Node: 3, Dir: 1, Name: "g"}, Event{Kind: Write, Node: 3, Data: []byte("new")},
			Event{Kind: Sync, Node: 3, Since: 7}, Event{Kind: Rename, Node: 3, Dir: 1, Name: "g", ToDir: 1, To: "f"}), []string{"old", "new"}},
		"replaced by what was not synced": {append(durable[:5:5], Event{Kind: Create, Node: 3, Dir: 1, Name: "g"}, Event{Kind: Write, Node: 3, Data: []byte("new")},
			Event{Kind: Rename, Node: 3, Dir: 1, Name: "g", ToDir: 1, To: "f"}), []string{"old", "new", ""}},
		"linked": {append(durable[:5:5], Event{Kind: Unlink, Dir: 1, Name: "f"}, syncDir(6), Event{Kind: Link, Node: 2, ToDir: 1, To: "f"}), []string{"old", "-"}},
	} {
		found := leavings(t, "f", c.events...)
		for _, w := range c.want {
			if found[w] == 0 {
				t.Errorf("%s: never %q: %v", name, w, found)
			}
			delete(found, w)
		}
		if len(found) > 0 {
			t.Errorf("%s: impossible contents %v", name, found)
		}
	}

	// Sectors of a long write survive independently. Bytes before them were never written, and may have any value.
	found := leavings(t, "f", dir, made, syncDir(2), Event{Kind: Write, Node: 2, Data: big})
	for _, want := range []string{"", "abcdabcd", "\x00\x00\x00\x00abcd"} {
		if found[want] == 0 {
			t.Errorf("never %q: %v", want, found)
		}
	}
}

// TestADirectoryMayBeLost checks that a directory whose name was not synced may be lost with its durable content.
func TestADirectoryMayBeLost(t *testing.T) {
	d := NewDisk()
	d.Apply(0, &Event{Kind: Mkdir, Node: 1, Name: "data"})
	there := 0
	for seed := range uint64(100) {
		dir := filepath.Join(t.TempDir(), "left")
		if err := d.Leave("data", dir, rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); err == nil {
			there++
		}
	}
	if there == 0 || there == 100 {
		t.Errorf("the directory exists %d times of 100", there)
	}
}
