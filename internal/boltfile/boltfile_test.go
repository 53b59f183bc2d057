package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

var things = []byte("things")

func options() Options {
	return Options{Format: 1, Buckets: [][]byte{things, []byte("others")}, NoSync: true}
}

func at(i uint32) []byte { return binary.BigEndian.AppendUint32(nil, i) }

// made returns a file after random changes, with branches, long values and free pages, and its content.
func made(t *testing.T, r *rand.Rand) (name string, want map[uint32]string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "x.db")
	db, err := Open(name, options())
	if err != nil {
		t.Fatal(err)
	}
	want = map[uint32]string{}
	for range 20 {
		if err := changeSome(db, r, want); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return name, want
}

// changeSome makes random changes in the file and in want.
func changeSome(db *DB, r *rand.Rand, want map[uint32]string) error {
	return db.Update(func(tx *Tx) error {
		b := tx.Bucket(things)
		for range 60 {
			k := uint32(r.IntN(800))
			if r.IntN(3) == 0 {
				delete(want, k)
				if err := b.Delete(at(k)); err != nil {
					return err
				}
				continue
			}
			v := strings.Repeat(fmt.Sprint(k, r.IntN(1000)), 1+r.IntN(10))
			if r.IntN(100) == 0 {
				v = strings.Repeat("long", 4000)
			}
			want[k] = v
			if err := Put(b, at(k), []byte(v)); err != nil {
				return err
			}
		}
		return nil
	})
}

// holds returns an error if the content of an open file is wrong. It ignores damaged values.
func holds(db *DB, want map[uint32]string) error {
	return db.View(func(tx *Tx) error {
		found := 0
		c := tx.Bucket(things).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			value, err := Value(k, v)
			if err != nil {
				return err
			}
			if want[binary.BigEndian.Uint32(k)] != string(value) {
				return fmt.Errorf("key %x is %q", k, value)
			}
			found++
		}
		if found != len(want) {
			return fmt.Errorf("%d keys, want %d", found, len(want))
		}
		return nil
	})
}

func TestSoundFilesOpenAgain(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3 {
		name, want := made(t, r)
		db, err := Open(name, options())
		if err != nil {
			t.Fatal(err)
		}
		if err := holds(db, want); err != nil {
			t.Error(err)
		}
		if _, err := Open(name, options()); !errors.Is(err, ErrUsed) || !strings.Contains(err.Error(), name) {
			t.Errorf("second try: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamageIsFound flips any bit or removes any piece. A file that still opens must have its content, except values that a checksum
// reports as damaged, or be as it was before the last change.
func TestDamageIsFound(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	name, want := made(t, r)
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, all := map[string]int{}, []string{"refused", "sound", "checksum", "one root"}
	lacks := func() bool {
		return slices.ContainsFunc(all, func(outcome string) bool { return outcomes[outcome] == 0 })
	}
	for n := 0; n < 800 || n < 8000 && lacks(); n++ { // few end as "one root"
		b := bytes.Clone(sound)
		page := r.IntN(len(b)/4096) * 4096
		what := ""
		if r.IntN(10) == 0 {
			n := r.IntN(len(b))
			b = b[:n]
			what = fmt.Sprintf("cut at %d", n)
		} else {
			if r.IntN(20) == 0 {
				page = 4096 * r.IntN(2)
			}
			i := page + r.IntN([]int{16, 80, 4096}[r.IntN(3)])
			b[i] ^= 1 << r.IntN(8)
			what = fmt.Sprintf("flip in byte %d", i)
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 {
			continue // opened as a new file
		}
		var log bytes.Buffer
		o := options()
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		db, err := Open(name, o)
		if err != nil {
			if c := new(apierr.Corruption); (!errors.As(err, &c) || c.File != name) && !strings.Contains(err.Error(), "it has format version") {
				t.Fatalf("%s: %v", what, err)
			}
			outcomes["refused"]++
			continue
		}
		err = holds(db, want)
		switch {
		case err == nil:
			outcomes["sound"]++
		case err == errSum:
			outcomes["checksum"]++
		case strings.Contains(log.String(), "one of the two roots"):
			outcomes["one root"]++
		default:
			t.Errorf("%s: %v", what, err)
		}
		// It must be writable.
		if err := db.Update(func(tx *Tx) error { return Put(tx.Bucket(things), at(7), nil) }); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	t.Log(outcomes)
	for _, outcome := range all {
		if outcomes[outcome] == 0 {
			t.Errorf("no case ended as %q", outcome)
		}
	}
}

func TestAnotherFormatIsNoDamage(t *testing.T) {
	name, _ := made(t, rand.New(rand.NewPCG(1, 2)))
	o := options()
	o.Format = 2
	_, err := Open(name, o)
	if c := new(apierr.Corruption); err == nil || errors.As(err, &c) || !strings.Contains(err.Error(), "format version [1], and this svc reads version 2") {
		t.Error(err)
	}
	o = options()
	o.Buckets = append(o.Buckets, []byte("more"))
	if _, err = Open(name, o); err == nil || !strings.Contains(err.Error(), "section more") {
		t.Error(err)
	}
}

// TestAnInterruptedCreationStartsOver checks that what a crash leaves of a file that was being created is not used.
func TestAnInterruptedCreationStartsOver(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(name+NewSuffix, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options()
	o.NoSync = false
	db, err := Open(name, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if names, err := filepath.Glob(name + "*"); err != nil || len(names) != 1 {
		t.Errorf("%q %v", names, err)
	}
}

// TestAFileWhoseNameIsNotDurableStartsOver fails the sync of the directory after a file was created and renamed. The file must be gone,
// because no later sync makes its name durable. The next try creates it again.
func TestAFileWhoseNameIsNotDurableStartsOver(t *testing.T) {
	defer func(fsys vfs.FS) { vfs.OS = fsys }(vfs.OS)
	broken := errors.New("the disk fails")
	vfs.OS = vfs.Hook(vfs.OS, vfs.FailFrom(1, 1, func(o vfs.Op) bool { return o.Kind == vfs.OpSyncDir }, broken))
	name := filepath.Join(t.TempDir(), "x.db")
	o := options()
	o.NoSync = false
	if db, err := Open(name, o); !errors.Is(err, broken) {
		t.Fatal(db, err)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
	db, err := Open(name, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAnEmptyFileIsDamaged checks that an empty file counts as damaged: a file gets its name only when it is complete.
func TestAnEmptyFileIsDamaged(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(name, options()); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
	if info, err := os.Stat(name); err != nil || info.Size() != 0 {
		t.Error("the damaged file was changed", err)
	}
}

func FuzzCheck(f *testing.F) {
	name := filepath.Join(f.TempDir(), "x.db")
	db, err := Open(name, options())
	if err != nil {
		f.Fatal(err)
	}
	if err := db.Close(); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:5000])
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := checkPages(bytes.NewReader(b), "x.db", int64(len(b)), &Options{})
		if c := new(apierr.Corruption); err != nil && !errors.As(err, &c) {
			t.Error(err)
		}
	})
}

// TestRevertUndoesTheLastChange checks that a change that failed after its commit point can be undone from any state and repeatedly, and
// that later changes build on the state before it.
func TestRevertUndoesTheLastChange(t *testing.T) {
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for range 10 {
		name, want := made(t, r)
		o := options()
		db, err := Open(name, o)
		if err != nil {
			t.Fatal(err)
		}
		change := func(db *DB, n int, value string) int {
			id := 0
			err := db.Update(func(tx *Tx) error {
				id = tx.ID()
				for range n {
					if err := Put(tx.Bucket(things), at(uint32(r.IntN(800))), []byte(value)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		id := change(db, 1+r.IntN(300), strings.Repeat("refused", r.IntN(2000)))
		if !Unsure(db, id) || Unsure(db, id+1) {
			t.Error("the change is not visible")
		}
		// A first try that gets as far as the rename.
		first, err := Revert(db, name, o)
		if err == nil {
			err = first.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		back, err := Revert(db, name, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := holds(back, want); err != nil {
			t.Error(err)
		}
		change(back, 5, "accepted")
		if err := back.Close(); err != nil {
			t.Fatal(err)
		}
		if err := Check(name); err != nil {
			t.Error(err)
		}
		if names, err := filepath.Glob(name + "*"); err != nil || len(names) != 1 {
			t.Errorf("%q %v", names, err)
		}
	}
}
