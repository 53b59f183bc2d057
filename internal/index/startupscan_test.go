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

// Damage of an index that is not open is told soon after the start, without being asked for, and when it is met.
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
				t.Error("a set of views has it")
			}
			views.Release()
			_, err = b.c.Get("i1").Apply(t.Context(), 99, nil, nil)
			if err != nil {
				t.Error(err)
			}
			for !b.c.Damaged("i2") { // the test ends by its limit if it never is
				time.Sleep(time.Millisecond)
			}
			cancel()
			aside.Wait()
		} else {
			b.c.startupScan(t.Context())
		}
		if aside, _ := b.c.Damages(); !slices.Equal(aside, []string{"i2"}) || b.c.Get("i2") != nil {
			t.Errorf("set aside: %v", aside)
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
			t.Error("mended, it is not there")
		} else {
			wantDocuments(t, ix, map[string]string{"2": `{"id":2,"n":2,"m":3}`, "4": `{"id":4,"late":true}`})
		}
		b.close()
	}
}

// An index to which another svc has written is set aside, at the start and later, is not called damaged, and is there again with what this
// svc reads.
func TestAnIndexOfAnotherSvcIsSetAside(t *testing.T) {
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
			t.Errorf("running %v: set aside: %v", running, aside)
		}
		e := b.c.Missing("i1")
		if e.Code != "invalid_store_file" || strings.Contains(e.Message, "damaged") || !strings.Contains(e.Message, "start the svc that wrote it") {
			t.Errorf("running %v: the error says %v", running, e)
		}
		if err := vfs.WriteFile(fsys, name, content); err != nil {
			t.Fatal(err)
		}
		if b.c.Reopen("i1") == nil {
			t.Errorf("running %v: it does not come back", running)
		}
		b.close()
	}
}

// The startup scan removes what a crash left, and wakes the compactor for what it finds to merge.
func TestTheLookAfterTheStart(t *testing.T) {
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

// A disk that fails at the start, and works again, leaves no index aside.
func TestADiskThatFailsAtTheStartSetsNothingAside(t *testing.T) {
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
			t.Errorf("%s: %d indexes are left, and %v set aside", suffix, len(left), b.c.passing())
		}
		fails.Store(false)
		b.c.rescan(t.Context(), left, time.Millisecond)
		for _, uid := range []string{"i0", "i1", "i2", "i3"} {
			if ix := b.c.Get(uid); ix == nil {
				t.Errorf("%s: %s is set aside", suffix, uid)
			} else {
				held(ix.View()).Release()
			}
		}
		b.close()
	}
}

// An index that a failing disk set aside, and that turns out to be damaged when the disk works, is called that, and is not looked at for
// ever.
func TestDamageBehindAFailingDisk(t *testing.T) {
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
		t.Error("the index is looked at for ever")
	}
	cancel()
	<-looked
	if err := b.c.Missing("i0"); strings.Contains(err.Message, syscall.EIO.Error()) || !b.c.Damaged("i0") {
		t.Errorf("the index is said to be %v", err)
	}
}

// What could not be opened for a moment is looked at again, until it can be; the log tells once that it could not.
func TestTheLookIsTakenUpAgain(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.EIO} {
		var logged logstest.Buffer
		var failures atomic.Int64 // to come
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
			t.Fatalf("%v: %d indexes are left", errno, len(left))
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
			t.Errorf("%v: set aside: %v", errno, aside)
		}
		if l := loadedUIDs(b.c); len(l) > 0 {
			t.Errorf("%v: %v are left open", errno, l)
		}
		if n := strings.Count(logged.String(), "level=WARN"); n != want {
			t.Errorf("%v: it is told again: %s", errno, logged.String())
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		b.c.rescan(ended, left, time.Hour)
		b.close()
	}
}

// What may be over in a moment is the error of who meets it, for which tasks wait. It sets no index aside, and the next one who asks for
// the index gets it.
func TestFailuresForAMomentSetNothingAside(t *testing.T) {
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
		b.c.awaitQuarantine(t.Context(), suspect{b.c.Get("i1"), errors.New("damage that was mended")})
		if aside, _ := b.c.Damages(); len(aside) > 0 || len(b.c.suspects) > 0 {
			t.Errorf("%v: set aside: %v, and %d will be", tt.err, aside, len(b.c.suspects))
		}
		bad.Store(false)
		held(b.c.Get("i1").View()).Release()
		if slices.Contains(list(t, fsys, catalogDir), stranger) {
			t.Errorf("%v: what a crash left is still there", tt.err)
		}
		b.close()
	}
}
