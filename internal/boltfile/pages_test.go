package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"svc/internal/apierr"
)

// model is a file and its expected content.
type model struct {
	db   *DB
	name string
	want map[uint32]string
	was  map[uint32]string // before the last change
	last int
}

// change stores and removes a few keys in one transaction. It updates the expected content if the transaction succeeds.
func (m *model) change(r *rand.Rand, n int) error {
	want := maps.Clone(m.want)
	id := m.last
	err := Guard(m.name, func() error {
		tx, err := Begin(m.db, m.last)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		b := tx.Bucket(things)
		if b == nil {
			return errors.New("the bucket is missing")
		}
		for range n {
			k := uint32(r.IntN(400))
			switch v, err := Get(b, at(k)); {
			case err != nil:
				return err
			case want[k] != string(v):
				return fmt.Errorf("key %d is %q, want %q", k, v, want[k])
			}
			if r.IntN(3) == 0 {
				delete(want, k)
				if err := b.Delete(at(k)); err != nil {
					return err
				}
				continue
			}
			want[k] = fmt.Sprint("a value of ", k, " and ", r.IntN(1000))
			if r.IntN(50) == 0 {
				want[k] = fmt.Sprintf("%*d", []int{8000, 8000, 3 * comparedAtOnce}[r.IntN(3)], k)
			}
			if err := Put(b, at(k), []byte(want[k])); err != nil {
				return err
			}
		}
		id = tx.ID()
		return tx.Commit()
	})
	if err == nil {
		m.was, m.want, m.last = m.want, want, id
	}
	return err
}

// read compares all keys, one by one and in order.
func (m *model) read() error {
	return m.db.View(func(tx *Tx) error {
		b := tx.Bucket(things)
		if b == nil {
			return errors.New("the bucket is missing")
		}
		if err := holds(m.db, m.want); err != nil {
			return err
		}
		for k := range uint32(400) {
			v, err := Get(b, at(k))
			if err != nil {
				return err
			}
			if want, there := m.want[k]; there != (v != nil) || want != string(v) {
				return fmt.Errorf("key %d is %q, want %q", k, v, want)
			}
		}
		return nil
	})
}

// newModel creates a file with branches, long values and free pages.
func newModel(t *testing.T, r *rand.Rand, dir string) *model {
	t.Helper()
	m := &model{name: filepath.Join(dir, "x.db"), want: map[uint32]string{}}
	db, err := Open(m.name, options())
	if err != nil {
		t.Fatal(err)
	}
	m.db, m.last = db, LastTx(db)
	for range 12 {
		if err := m.change(r, 60); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestAnyBitMayFlipInAnOpenFile flips bits of an open file. Reads must return the right value or an error, the file must stay usable and
// closable, and a reopened file must have what was stored. A page that points to itself, or that frees pages past the end, must not hang.
func TestAnyBitMayFlipInAnOpenFile(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	m := newModel(t, r, t.TempDir())
	if err := m.db.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(m.name)
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	var places []int // bit positions: all of the page headers, and some others
	for page := range len(sound) / size {
		for bit := range 8 * pageHeader {
			places = append(places, 8*page*size+bit)
		}
		for range 40 {
			places = append(places, 8*page*size+r.IntN(8*[]int{100, size}[r.IntN(2)]))
		}
	}
	r.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	places = places[:min(len(places), flipsTried)]
	var mu sync.Mutex
	outcomes := map[string]int{}
	for part := range slices.Chunk(places, (len(places)+3)/4) {
		t.Run("part", func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "x.db")
			for _, place := range part {
				done := make(chan string, 1)
				go func() {
					outcome, err := m.flip(name, sound, place)
					if err != nil {
						t.Errorf("seed %d, bit %d of byte %d of page %d: %v", seed, place%8, place/8%size, place/8/size, err)
					}
					done <- outcome
				}()
				select {
				case outcome := <-done:
					mu.Lock()
					outcomes[outcome]++
					mu.Unlock()
				case <-time.After(time.Minute):
					b := make([]byte, 1<<20)
					t.Fatalf("seed %d, bit %d of byte %d of page %d: hangs\n%s", seed, place%8, place/8%size, place/8/size, b[:runtime.Stack(b, true)])
				}
			}
		})
	}
	t.Cleanup(func() {
		t.Log(outcomes)
		if outcomes["an error"] == 0 || outcomes["right"] == 0 {
			t.Error("nothing failed, or everything")
		}
	})
}

// flipsTried is the number of bits that one run of the test flips.
const flipsTried = 400

// flip flips a bit of an open copy of a file.
func (m *model) flip(name string, sound []byte, place int) (outcome string, err error) {
	if err := os.WriteFile(name, sound, 0o600); err != nil {
		return "", err
	}
	lacking := false
	o := options()
	o.Lacking = func() { lacking = true }
	db, err := Open(name, o)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	if _, err := f.WriteAt([]byte{sound[place/8] ^ 1<<(place%8)}, int64(place/8)); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	mine := &model{db: db, name: name, want: m.want, was: m.was, last: m.last}
	outcome = "right"
	step := func(err error) error {
		if apierr.IsCorruption(err) || errors.Is(err, errSum) {
			outcome, err = "an error", nil
		}
		return err
	}
	r := rand.New(rand.NewPCG(uint64(place), 1))
	for range 6 {
		err = errors.Join(err, step(mine.read()), step(mine.change(r, 4)))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return "", err
	}
	if mine.db, err = Open(name, o); err != nil {
		if apierr.IsCorruption(err) {
			return "an error", nil
		}
		return "", err
	}
	err = step(mine.read())
	if err != nil && lacking { // the last change is missing, which the log reports
		mine.want = mine.was
		err = step(mine.read())
	}
	return outcome, errors.Join(err, mine.db.Close())
}

// TestReadersBesideChanges checks that readers see the state at their start, however much is written in the meantime, and that none of
// this counts as damage.
func TestReadersBesideChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	m := newModel(t, r, t.TempDir())
	var mu sync.Mutex
	wants := map[int]map[uint32]string{m.last: m.want}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := m.db.View(func(tx *Tx) error {
					got := map[uint32]string{}
					err := tx.Bucket(things).ForEach(func(k, v []byte) error {
						v, err := Value(k, v)
						got[binary.BigEndian.Uint32(k)] = string(v)
						return err
					})
					mu.Lock()
					defer mu.Unlock()
					if want := wants[tx.ID()]; err == nil && want != nil && !maps.Equal(got, want) {
						err = errors.New("a read returns something that was not written")
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 300 {
		if err := m.change(r, 10); err != nil {
			t.Error(err)
			break
		}
		mu.Lock()
		wants[m.last] = m.want
		mu.Unlock()
	}
	close(stop)
	readers.Wait()
	if err := m.db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Check(m.name); err != nil {
		t.Error(err)
	}
}

// TestLocksThatAreNeverReleased checks a panic of bbolt that leaves its locks held: no reader, writer or Close may wait for them, and the
// file can be opened again.
func TestLocksThatAreNeverReleased(t *testing.T) {
	for _, writable := range []bool{false, true} {
		m := newModel(t, rand.New(rand.NewPCG(7, 8)), t.TempDir())
		beside, err := m.db.Read()
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(m.name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		roots := make([]byte, 2*os.Getpagesize())
		if _, err := f.ReadAt(roots, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(make([]byte, len(roots)), 0); err != nil {
			t.Fatal(err)
		}
		clear(m.db.root.bytes[:]) // as if they were damaged after the check
		begin := func() error {
			return Guard(m.name, func() error {
				if writable {
					_, err := Begin(m.db, m.last)
					return err
				}
				_, err := m.db.Read()
				return err
			})
		}
		for range 2 {
			if err := begin(); !apierr.IsCorruption(err) {
				t.Errorf("writable %v: %v", writable, err)
			}
		}
		if err := m.db.View(func(*Tx) error { return nil }); !apierr.IsCorruption(err) {
			t.Error(err)
		}
		beside.Rollback()
		if err := m.db.Close(); err != nil {
			t.Error(err)
		}
		if _, err := f.WriteAt(roots, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if m.db, err = Open(m.name, options()); err != nil {
			t.Fatal(err)
		}
		if err := m.read(); err != nil {
			t.Error(err)
		}
		if err := m.db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEachPieceOfALongValueIsCompared checks that a value longer than its page is compared completely, in pieces.
func TestEachPieceOfALongValueIsCompared(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.db")
	db, err := Open(name, options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	value := bytes.Repeat([]byte("value "), comparedAtOnce/2) // three pieces
	if err := db.Update(func(tx *Tx) error { return Put(tx.Bucket(things), at(1), value) }); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	from := bytes.LastIndex(content, value)
	get := func() error {
		return db.View(func(tx *Tx) error { _, err := tx.Bucket(things).Get(at(1)); return err })
	}
	if err := get(); err != nil || from < 0 {
		t.Fatal(err, from)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int{0, comparedAtOnce - 1, comparedAtOnce, 2 * comparedAtOnce, len(value) - 1} {
		for _, tt := range []struct {
			b       byte
			damaged bool
		}{{content[from+at] ^ 1, true}, {content[from+at], false}} {
			if _, err := f.WriteAt([]byte{tt.b}, int64(from+at)); err != nil {
				t.Fatal(err)
			}
			if err := get(); apierr.IsCorruption(err) != tt.damaged || !tt.damaged && err != nil {
				t.Errorf("byte %d of the value flipped: %v; %v", at, tt.damaged, err)
			}
		}
	}
}
