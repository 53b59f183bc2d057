package publish

import (
	"bytes"
	"log/slog"
	"math"
	"math/rand/v2"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/group"
	"svc/internal/vfs"
)

func TestUnreached(t *testing.T) {
	at := func(run uint32, index uint64) group.Position { return group.Position{Term: 1, Run: run, Index: index} }
	logs := func(some ...logRef) []logRef { return some }
	before := logRef{first: at(1, 1), last: 4, at: 10}
	middle := logRef{first: at(1, 5), last: 8, at: 20}
	after := logRef{first: at(1, 9), last: 9, at: 30}
	next := logRef{first: at(2, 1), last: 3, at: 40}
	for _, x := range []struct {
		name  string
		logs  []logRef
		to    uint64 // of run 1
		limit int64
		want  *logRef
	}{
		{"the end", logs(before, middle, after), 9, math.MaxInt64, nil},
		{"the end of an image without entries", logs(), 4, math.MaxInt64, nil},
		{"a time inside an object", logs(before, middle, after), 6, 15, nil},
		{"a time between objects", logs(before, middle, after), 4, 15, nil},
		{"a gap", logs(before, after), 4, math.MaxInt64, &after},
		{"a time in a gap", logs(before, after), 4, 25, &after},
		{"a gap behind an image", logs(after), 4, math.MaxInt64, &after},
		{"a gap at the end", logs(before), 4, math.MaxInt64, nil},
		{"a later run", logs(before, next), 4, math.MaxInt64, &next},
		{"a run that is later than the time", logs(before, next), 4, 39, nil},
		{"a gap and a later run", logs(before, after, next), 4, math.MaxInt64, &after},
		{"an earlier run", logs(before, next), 0, math.MaxInt64, nil},
		{"overlapping objects", logs(before, logRef{first: at(1, 3), last: 8, at: 20}, after), 4, 15, nil},
	} {
		got, why := (&history{logs: x.logs}).unreached(at(1, x.to), x.limit)
		if (got == nil) != (x.want == nil) || got != nil && *got != *x.want || (got == nil) != (why == "") {
			t.Errorf("%s: %+v, %q, want %+v", x.name, got, why, x.want)
		}
	}
}

// TestRestoreBeforeMissingEntries removes entries from a publication. A restore of a later moment names what it lacks; that of the position
// before the gap does not.
func TestRestoreBeforeMissingEntries(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	r := rand.New(rand.NewPCG(4, 4))
	for range 3 {
		h.goOn(r, 2)
	}
	h.stop()
	restore := func(target Target) (group.Position, string) {
		t.Helper()
		a, err := Open(t.Context(), store, masterKey)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		o := RestoreOptions{FS: vfs.OS, Dir: path.Join(filepath.ToSlash(t.TempDir()), "r"), Target: target, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		made, err := a.Restore(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return made.Position, log.String()
	}
	const lacks = "later changes are not restored"
	last, log := restore(Target{})
	if strings.Contains(log, lacks) {
		t.Errorf("the whole publication: %s", log)
	}
	entries := objectNames(t, store, logPrefix)
	if len(entries) < 3 {
		t.Fatalf("%q", entries)
	}
	first, _, _, ok := parseRef(strings.TrimPrefix(entries[len(entries)-2], logPrefix))
	if !ok {
		t.Fatalf("%q", entries)
	}
	damage(t, store, entries[len(entries)-2], "missing")
	before := first
	before.Index--
	for _, target := range []Target{{}, {Time: time.Now()}} {
		if at, log := restore(target); at != before || at == last || !strings.Contains(log, lacks) || !strings.Contains(log, before.String()) {
			t.Errorf("%+v: restored %v, want %v: %s", target, at, before, log)
		}
	}
	if at, log := restore(Target{Position: before}); at != before || strings.Contains(log, lacks) {
		t.Errorf("restored %v: %s", at, log)
	}
}
