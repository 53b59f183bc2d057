package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/vfs"
)

func open(t *testing.T, fsys vfs.FS) *Log {
	t.Helper()
	l, err := Open(fsys, "audit.log")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func entry(n int) Entry {
	uid := uint32(n)
	return Entry{Time: time.Unix(int64(n), 5).In(time.FixedZone("", 3600)), Key: Master, Action: "keys.create", Method: "POST", Route: "/keys", Object: fmt.Sprint(n),
		Address: "127.0.0.1:9", Status: 201, Outcome: Done, Task: &uid}
}

func appendTo(t *testing.T, l *Log, entries ...int) {
	t.Helper()
	for _, n := range entries {
		if err := l.Append(entry(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// objects returns the objects of the complete lines of a file.
func objects(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return "none"
	}
	var all []string
	for line := range bytes.Lines(b) {
		var e Entry
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &e) != nil {
			all = append(all, "?")
			continue
		}
		all = append(all, e.Object)
	}
	return strings.Join(all, " ")
}

func TestLine(t *testing.T) {
	mem := vfs.NewMem()
	appendTo(t, open(t, mem), 7)
	b, err := vfs.ReadFile(mem, "audit.log")
	const want = `{"time":"1970-01-01T00:00:07.000000005Z","key":"master","action":"keys.create","method":"POST","route":"/keys","object":"7",` +
		`"address":"127.0.0.1:9","status":201,"outcome":"done","task":7}` + "\n"
	if err != nil || string(b) != want {
		t.Errorf("got  %s\nwant %s%v", b, want, err)
	}
}

func TestRotation(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, mem)
	l.maxBytes = 400 // two lines
	for n := range 30 {
		if n == 13 { // a restart continues in the same file
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l = open(t, mem)
			l.maxBytes = 400
		}
		appendTo(t, l, n)
	}
	for name, want := range map[string]string{"audit.log": "28 29", "audit.log.1": "26 27", "audit.log.10": "8 9", "audit.log.11": "none"} {
		if got := objects(t, mem, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestMoved renames, removes and truncates the file between entries, as programs that rotate logs do.
func TestMoved(t *testing.T) {
	name := filepath.ToSlash(filepath.Join(t.TempDir(), "audit.log"))
	l, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, x := range []struct {
		move func() error
		want string // afterwards in the file
	}{
		{func() error { return os.Rename(name, name+".moved") }, "1"},
		{func() error { return os.Remove(name) }, "2"},
		{func() error { return os.Truncate(name, 0) }, "3"},
		{func() error { return errors.Join(os.Rename(name, name+".old"), os.WriteFile(name, nil, 0o600)) }, "4"},
		{func() error { return nil }, "4 5"},
	} {
		if l.size == 0 {
			appendTo(t, l, 0)
		}
		if err := x.move(); err != nil {
			t.Fatal(err)
		}
		appendTo(t, l, int(x.want[len(x.want)-1]-'0'))
		if got := objects(t, vfs.OS, name); got != x.want {
			t.Errorf("the file has %q, want %q", got, x.want)
		}
	}
	if got := objects(t, vfs.OS, name+".moved"); got != "0" {
		t.Errorf("the renamed file has %q", got)
	}
}

// TestCrashesLoseNoEntry crashes before each operation. Entries for which Append has returned must be there, in order.
func TestCrashesLoseNoEntry(t *testing.T) {
	type state struct {
		fs   vfs.FS
		done int
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	mem := vfs.NewMem()
	var states []state
	done := 0
	l := open(t, vfs.Hook(mem, func(vfs.Op) error {
		states = append(states, state{mem.CrashClone(rng), done}, state{mem.CrashClone(nil), done})
		return nil
	}))
	l.maxBytes = 400
	for ; done < 12; done++ {
		appendTo(t, l, done)
	}
	if len(states) < 60 {
		t.Fatalf("only %d states", len(states))
	}
	for i, st := range states {
		appendTo(t, open(t, st.fs), 99)
		var all []string
		for n := 11; n >= 0; n-- {
			if got := objects(t, st.fs, (&Log{name: "audit.log"}).numbered(n)); got != "none" && got != "" {
				all = append(all, got)
			}
		}
		got := strings.Fields(strings.Join(all, " "))
		for n := range st.done {
			if !slices.Contains(got, fmt.Sprint(n)) {
				t.Errorf("state %d of %d, after %d entries: %d is missing in %s", i, len(states), st.done, n, got)
			}
		}
		if last := strings.Fields(objects(t, st.fs, "audit.log")); last[len(last)-1] != "99" {
			t.Errorf("state %d of %d, after %d entries: the log cannot continue: %s", i, len(states), st.done, got)
		}
	}
}

// TestErrors fails each operation once: only the entry of that operation may be missing.
func TestErrors(t *testing.T) {
	for n := int64(1); ; n++ {
		mem := vfs.NewMem()
		failed := errors.New("failed")
		armed := false
		fail := vfs.FailFrom(n, 1, func(op vfs.Op) bool { return armed && op.Kind.Changes() }, failed)
		l := open(t, vfs.Hook(mem, fail))
		l.maxBytes = 400
		armed = true
		var lost []int
		for i := range 6 {
			if err := l.Append(entry(i)); err != nil {
				if !errors.Is(err, failed) || !strings.Contains(err.Error(), "audit log") {
					t.Fatal(err)
				}
				lost = append(lost, i)
			}
		}
		if len(lost) == 0 {
			if n < 10 {
				t.Errorf("only %d operations", n)
			}
			return
		}
		var all string
		for i := 11; i >= 0; i-- {
			all += objects(t, mem, l.numbered(i)) + " "
		}
		for i := range 6 {
			if len(lost) > 1 || lost[0] != i && !strings.Contains(all, fmt.Sprint(i)) {
				t.Fatalf("operation %d failed: lost %d: %s", n, lost, all)
			}
		}
	}
}
