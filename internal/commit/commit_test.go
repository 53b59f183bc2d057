package commit

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"svc/internal/vfs"
)

type list []Change

func (l *list) Do(c Change, apply func() error) error {
	err := apply()
	if err == nil {
		*l = append(*l, c)
	}
	return err
}

func TestChangesReachTheLog(t *testing.T) {
	mem, log := vfs.NewMem(), &list{}
	fsys := On(mem, "data/", log)
	failed := errors.New("failed")
	calls := 0
	do := func(fsys vfs.FS, name string, result error) error {
		return Do(fsys, func() (Change, error) {
			return Change{Kind: Manifest, Name: name, Data: []byte("x"), Files: []string{"data/indexes/0/1.seg"}}, nil
		}, func() error { calls++; return result })
	}
	if err := do(fsys, "data/indexes/0/MANIFEST", nil); err != nil {
		t.Fatal(err)
	}
	if err := do(fsys, "data/indexes/0/MANIFEST", failed); !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
	if len(*log) != 1 || (*log)[0].Name != "indexes/0/MANIFEST" || !slices.Equal((*log)[0].Files, []string{"indexes/0/1.seg"}) {
		t.Errorf("the log has %+v", *log)
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
	for _, outside := range []string{"other/MANIFEST", "data", "data/../MANIFEST", "database"} {
		if err := do(fsys, outside, nil); err == nil {
			t.Errorf("%s is below data", outside)
		}
	}
	if calls != 2 {
		t.Error("a change is applied that the log refuses")
	}
	if err := Do(mem, func() (Change, error) { t.Error("the change is built without a log"); return Change{}, nil }, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("without a log: %v", err)
	}
	if Logged(mem) || !Logged(fsys) {
		t.Error("Logged must be true with a log only")
	}
}

// TestKindsKeepTheirNumbers fixes the numbers of kinds, which may be stored.
func TestKindsKeepTheirNumbers(t *testing.T) {
	for n, name := range []string{"kind 0", "tasks", "begin", "catalog", "manifest", "keys", "sealed", "kind 7"} {
		if got := Kind(n).String(); got != name {
			t.Errorf("kind %d is %q, want %q", n, got, name)
		}
	}
}

// TestALogThatComesLater checks that changes reach a log from the time when it is set.
func TestALogThatComesLater(t *testing.T) {
	mem, log := vfs.NewMem(), &list{}
	later := NewLater(mem)
	do := func() {
		t.Helper()
		err := Do(later, func() (Change, error) { return Change{Kind: Sealed, Name: "data/a.json"}, nil }, func() error { return vfs.WriteFile(later, "data/a.json", nil) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := later.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	do()
	if Logged(later) || len(*log) > 0 {
		t.Errorf("the log got a change before it was set: %v", *log)
	}
	later.Become(On(mem, "data", log))
	do()
	if !Logged(later) || len(*log) != 1 || (*log)[0].Name != "a.json" {
		t.Errorf("the log has %v", *log)
	}
	if names, err := later.List("data"); err != nil || !slices.Equal(names, []string{"a.json"}) {
		t.Errorf("%v, %v", names, err)
	}
}

// TestAhead checks that the preparation of a change is done before Do without a log, and concurrently with one.
func TestAhead(t *testing.T) {
	mem, failed := vfs.NewMem(), errors.New("failed")
	done := false
	wait := Ahead(mem, slog.New(slog.DiscardHandler), func() error { done = true; return failed })
	if !done {
		t.Error("without a log, the preparation is not done at once")
	}
	taken := make(chan struct{})
	beside := Ahead(On(mem, "data", &list{}), slog.New(slog.DiscardHandler), func() error { <-taken; return failed })
	close(taken) // what the log does meanwhile
	for range 2 {
		if err := wait(); !errors.Is(err, failed) {
			t.Errorf("without a log: %v", err)
		}
		if err := beside(); !errors.Is(err, failed) {
			t.Errorf("with a log: %v", err)
		}
	}
}

// TestAheadPanics checks that a panic becomes an error of its change, and that the log has the stack once.
func TestAheadPanics(t *testing.T) {
	mem := vfs.NewMem()
	for _, fsys := range []vfs.FS{mem, On(mem, "data", &list{})} {
		var logged bytes.Buffer
		wait := Ahead(fsys, slog.New(slog.NewTextHandler(&logged, nil)), func() error { panic("a bad manifest") })
		for range 2 {
			if err := wait(); err == nil || err.Error() != "cannot prepare a change: panic: a bad manifest" {
				t.Errorf("logged %v: %v", Logged(fsys), err)
			}
		}
		if text := logged.String(); strings.Count(text, "panicked") != 1 || !strings.Contains(text, "a bad manifest") || !strings.Contains(text, "commit_test.go") {
			t.Errorf("logged %v: the log has %s", Logged(fsys), text)
		}
	}
}
