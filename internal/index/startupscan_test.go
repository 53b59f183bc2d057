package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/logs/logstest"
	"svc/internal/vfs"
)

// TestDamageOfEvictedIndexes checks that damage of a closed index is reported by the startup scan, and when a request finds it first.
func TestDamageOfEvictedIndexes(t *testing.T) {
	for _, asked := range []bool{false, true} {
		var logged logstest.Buffer
		fsys := vfs.NewMem()
		b := manyIndexes(t, fsys, 4, Options{keptLoaded: 1, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		b.close()
		name := catalogDir + "/000002/000000.seg"
		content, err := vfs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(fsys, name, content[:len(content)-9]); err != nil {
			t.Fatal(err)
		}
		b.open()
		if asked {
			ctx, cancel := context.WithCancel(t.Context())
			var aside sync.WaitGroup
			aside.Go(func() { b.c.quarantineSuspects(ctx) })
			_, err := b.c.Get("i2").View()
			wantCode(t, err, "invalid_store_file")
			views := b.c.Views()
			if views.Get("i2") != nil || views.Missing("i2").Code != "invalid_store_file" {
				t.Error("a set of views contains the damaged index")
			}
			views.Release()
			_, err = b.c.Get("i1").Apply(t.Context(), 99, nil, nil)
			if err != nil {
				t.Error(err)
			}
			for !b.c.Damaged("i2") { // the time limit of the test ends this loop
				time.Sleep(time.Millisecond)
			}
			cancel()
			aside.Wait()
		} else {
			b.c.startupScan(t.Context())
		}
		if aside, _ := b.c.Damages(); !slices.Equal(aside, []string{"i2"}) || b.c.Get("i2") != nil {
			t.Errorf("quarantined: %v", aside)
		}
		if text := logged.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "index=i2") {
			t.Errorf("logged %s", text)
		}
		if l := loadedUIDs(b.c); !asked && len(l) > 0 {
			t.Errorf("%v are left open", l)
		}
		if err := vfs.WriteFile(fsys, name, content); err != nil {
			t.Fatal(err)
		}
		if ix := b.c.Reopen("i2"); ix == nil {
			t.Error("the repaired index is missing")
		} else {
			wantDocuments(t, ix, map[string]string{"2": `{"id":2,"n":2,"m":3}`, "4": `{"id":4,"late":true}`})
		}
		b.close()
	}
}

// TestAnIndexOfALaterSvcIsQuarantined checks an index that a later svc has written, at the start and at run time: it is quarantined, but
// not called damaged, and can be reopened when this svc can read it.
func TestAnIndexOfALaterSvcIsQuarantined(t *testing.T) {
	for _, running := range []bool{false, true} {
		fsys := vfs.NewMem()
		b := manyIndexes(t, fsys, 3, Options{keptLoaded: 1})
		b.close()
		if running {
			b.open()
		}
		name := catalogDir + "/000001/" + manifestName
		content, err := vfs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		later := slices.Clone(content)
		later[8] = byte(manifestSeal.version) + 1
		if err := vfs.WriteFile(fsys, name, later); err != nil {
			t.Fatal(err)
		}
		if !running {
			b.open()
		}
		b.c.startupScan(t.Context())
		if aside, _ := b.c.Damages(); !slices.Equal(aside, []string{"i1"}) || len(b.c.passing()) > 0 {
			t.Errorf("running %v: quarantined: %v", running, aside)
		}
		e := b.c.Missing("i1")
		if e.Code != "invalid_store_file" || strings.Contains(e.Message, "damaged") || !strings.Contains(e.Message, "start the svc that wrote it") {
			t.Errorf("running %v: the error says %v", running, e)
		}
		if err := vfs.WriteFile(fsys, name, content); err != nil {
			t.Fatal(err)
		}
		if b.c.Reopen("i1") == nil {
			t.Errorf("running %v: the index cannot be reopened", running)
		}
		b.close()
	}
}

// TestStartupScan checks that the scan removes what a crash left, and wakes the compactor for an index that needs merges.
func TestStartupScan(t *testing.T) {
	fsys := vfs.NewMem()
	b := manyIndexes(t, fsys, 3, Options{keptLoaded: 1})
	defer func() { b.close() }()
	for _, uid := range b.c.UIDs() {
		b.compact(b.c.Get(uid))
	}
	many := b.c.Get("i1")
	for i := range 30 {
		b.apply(many, b.payload(fmt.Sprintf(`{"id":"more%d"}`, i)))
	}
	b.close()
	stranger := catalogDir + "/000002/000099.seg"
	if err := vfs.WriteFile(fsys, stranger, []byte("x")); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.c.startupScan(t.Context())
	if slices.Contains(list(t, fsys, catalogDir), stranger) {
		t.Error("what a crash left is still there")
	}
	if l := loadedUIDs(b.c); len(l) > 0 {
		t.Errorf("%v are left open", l)
	}
	l := b.c.compactor.lanes[0]
	if ix := l.next(); ix == nil || ix.UID() != "i1" || l.next() != nil {
		t.Error("the compactor was woken for another index")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.c.startupScan(ended)
}

// TestATemporaryDiskFailureAtTheStart checks that no index stays quarantined after a disk that fails at the start works again.
func TestATemporaryDiskFailureAtTheStart(t *testing.T) {
	for _, suffix := range []string{segSuffix, manifestName} {
		var fails atomic.Bool
		fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if o.Kind == vfs.OpOpen && strings.HasSuffix(o.Name, suffix) && fails.Load() {
				return syscall.EIO
			}
			return nil
		})
		b := manyIndexes(t, fsys, 4, Options{})
		b.close()
		fails.Store(true)
		b.open()
		left := b.c.startupScan(t.Context())
		if len(left)+len(b.c.passing()) != 4 || len(left) != 0 == (suffix == manifestName) {
			t.Errorf("%s: %d indexes to scan, quarantined %v", suffix, len(left), b.c.passing())
		}
		fails.Store(false)
		b.c.rescan(t.Context(), left, time.Millisecond)
		for _, uid := range []string{"i0", "i1", "i2", "i3"} {
			if ix := b.c.Get(uid); ix == nil {
				t.Errorf("%s: %s is quarantined", suffix, uid)
			} else {
				held(ix.View()).Release()
			}
		}
		b.close()
	}
}

// TestDamageAfterAFailingDisk checks an index that a failing disk quarantined, and that turns out to be damaged when the disk works: it is
// reported as damaged, and not scanned again.
func TestDamageAfterAFailingDisk(t *testing.T) {
	var fails atomic.Bool
	fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
		if o.Kind == vfs.OpOpen && strings.HasSuffix(o.Name, manifestName) && fails.Load() {
			return syscall.EIO
		}
		return nil
	})
	b := manyIndexes(t, fsys, 1, Options{})
	manifest := path.Join(b.c.Get("i0").dir, manifestName)
	b.close()
	fails.Store(true)
	b.open()
	defer b.close()
	fails.Store(false)
	if err := vfs.WriteFile(b.fs, manifest, []byte("no manifest")); err != nil {
		t.Fatal(err)
	}
	looked := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(looked)
		b.c.rescan(ctx, nil, time.Millisecond)
	}()
	select {
	case <-looked:
	case <-time.After(time.Minute):
		t.Error("the scan does not end")
	}
	cancel()
	<-looked
	if err := b.c.Missing("i0"); strings.Contains(err.Message, syscall.EIO.Error()) || !b.c.Damaged("i0") {
		t.Errorf("the index is reported as %v", err)
	}
}

// TestStartupScanIsRepeated checks that the scan retries indexes that could not be opened, and logs the failure only once.
func TestStartupScanIsRepeated(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.EIO} {
		var logged logstest.Buffer
		var failures atomic.Int64 // opens that will fail
		fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if o.Kind == vfs.OpOpen && strings.HasSuffix(o.Name, segSuffix) && failures.Add(-1) >= 0 {
				return errno
			}
			return nil
		})
		b := manyIndexes(t, fsys, 4, Options{keptLoaded: 1, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		for _, uid := range b.c.UIDs() {
			b.compact(b.c.Get(uid))
		}
		many := b.c.Get("i1")
		for i := range 30 {
			b.apply(many, b.payload(fmt.Sprintf(`{"id":"more%d"}`, i)))
		}
		v := held(b.c.Get("i3").View())
		damaged := v.files[0].path()
		v.Release()
		b.close()
		stranger := catalogDir + "/000002/000099.seg"
		for _, name := range []string{stranger, damaged} {
			if err := vfs.WriteFile(fsys, name, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		b.open()
		failures.Store(4 + 2)
		left := b.c.startupScan(t.Context())
		if len(left) != 4 {
			t.Fatalf("%v: %d indexes to scan", errno, len(left))
		}
		want := 4
		if lacking(errno) {
			want = 1
		}
		if n := strings.Count(logged.String(), "level=WARN"); n != want {
			t.Errorf("%v: %d warnings, want %d: %s", errno, n, want, logged.String())
		}
		b.c.rescan(t.Context(), left, 0)
		if slices.Contains(list(t, fsys, catalogDir), stranger) {
			t.Errorf("%v: what a crash left is still there", errno)
		}
		if ix := b.c.compactor.lanes[0].next(); ix == nil || ix.UID() != "i1" {
			t.Errorf("%v: the compactor was not woken", errno)
		}
		if aside, _ := b.c.Damages(); !slices.Equal(aside, []string{"i3"}) {
			t.Errorf("%v: quarantined: %v", errno, aside)
		}
		if l := loadedUIDs(b.c); len(l) > 0 {
			t.Errorf("%v: %v are left open", errno, l)
		}
		if n := strings.Count(logged.String(), "level=WARN"); n != want {
			t.Errorf("%v: the failure is logged again: %s", errno, logged.String())
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		b.c.rescan(ended, left, time.Hour)
		b.close()
	}
}

// TestTemporaryFailuresDoNotQuarantine checks that a failure which may be temporary is returned as an error for which tasks wait. It does
// not quarantine the index, and the next request can open it.
func TestTemporaryFailuresDoNotQuarantine(t *testing.T) {
	stranger := catalogDir + "/000001/000099.seg"
	for _, tt := range []struct {
		kind   vfs.OpKind
		suffix string
		err    error
		code   apierr.Code
	}{
		{vfs.OpOpen, segSuffix, syscall.EIO, "io_error"},
		{vfs.OpOpen, manifestName, syscall.EIO, "io_error"},
		{vfs.OpOpen, segSuffix, syscall.EACCES, "io_error"},
		{vfs.OpOpen, segSuffix, errors.New("unheard of"), "io_error"},
		{vfs.OpRemoveAll, stranger, syscall.EROFS, "io_error"},
	} {
		var bad atomic.Bool
		fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if bad.Load() && o.Kind == tt.kind && strings.HasSuffix(o.Name, tt.suffix) {
				return tt.err
			}
			return nil
		})
		b := manyIndexes(t, fsys, 3, Options{keptLoaded: 1})
		if err := vfs.WriteFile(fsys, stranger, []byte("x")); err != nil {
			t.Fatal(err)
		}
		bad.Store(true)
		for range 2 {
			if _, err := b.c.Get("i1").View(); !errors.Is(err, tt.err) {
				t.Errorf("%v: error %v", tt.err, err)
			} else {
				wantCode(t, apierr.From(err), tt.code)
			}
		}
		b.c.startupScan(t.Context())
		b.c.awaitQuarantine(t.Context(), suspect{b.c.Get("i1"), errors.New("damage that was repaired")})
		if aside, _ := b.c.Damages(); len(aside) > 0 || len(b.c.suspects) > 0 {
			t.Errorf("%v: quarantined %v, %d suspects", tt.err, aside, len(b.c.suspects))
		}
		bad.Store(false)
		held(b.c.Get("i1").View()).Release()
		if slices.Contains(list(t, fsys, catalogDir), stranger) {
			t.Errorf("%v: what a crash left is still there", tt.err)
		}
		b.close()
	}
}
