package consensus

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"svc/internal/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

func logExamples() []*raft.Log {
	return []*raft.Log{
		{Index: 7, Type: raft.LogCommand, Term: 3, Data: []byte("a change"), AppendedAt: time.Unix(1_700_000_000, 123)},
		{Index: 8, Type: raft.LogNoop, Term: 300},
		{Index: 9, Type: raft.LogConfiguration, Term: 4, Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a:1"}}}), Extensions: []byte("more")},
	}
}

// TestLogFormat compares encoded entries with testdata/log, which must not change, and decodes them again.
func TestLogFormat(t *testing.T) {
	got := ""
	for _, l := range logExamples() {
		b := encodeLog(l)
		got += fmt.Sprintf("entry %d\n%s", l.Index, hex.Dump(b))
		var again raft.Log
		if err := decodeLog(b, l.Index, &again); err != nil || !reflect.DeepEqual(&again, l) {
			t.Errorf("%+v, %v, want %+v", again, err, l)
		}
	}
	name := filepath.Join("testdata", "log")
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the format is\n%s\nwant\n%s", got, want)
	}
	for _, b := range [][]byte{{}, {entryVersion}, {entryVersion + 1, 0, 1, 0, 0}, {entryVersion, 0, 0x80}, {entryVersion, 0, 1, 0x80}, {entryVersion, 0, 1, 0, 0x80}, {entryVersion, 0, 1, 0, 2, 'x'}} {
		if err := decodeLog(b, 1, new(raft.Log)); err == nil {
			t.Errorf("%x is decoded as an entry", b)
		}
	}
}

// TestPositionsAreOfOneMember checks that positions of another member are ignored, and are not sent to others.
func TestPositionsAreOfOneMember(t *testing.T) {
	fsys := vfs.NewMem()
	at, noted, kept := uint64(0), uint64(0), 0
	newLogs := func(id string) *logs {
		log, err := openLog(fsys, testDir, 4096)
		if err != nil {
			t.Fatal(err)
		}
		return &logs{
			log: log, stable: &stable{}, guard: newGuard(false), applied: func() uint64 { return at }, failed: func(err error) { t.Error(err) }, tag: tagOf(id),
			at: &Positions{Made: func() uint64 { return at }, Noted: func(index uint64) { noted = index }, Keep: func() error { kept++; return nil }},
		}
	}
	s := newLogs("a")
	for i, x := range []uint64{0, 1, 1, 300} {
		at = x
		if err := s.StoreLog(&raft.Log{Index: uint64(1 + i), Type: raft.LogCommand, Term: 1, Extensions: encodePosition(tagOf("a"), 9000)}); err != nil {
			t.Fatal(err)
		}
		if noted != x {
			t.Errorf("position %d is noted as %d", x, noted)
		}
		var l raft.Log
		if err := s.GetLog(uint64(1+i), &l); err != nil || l.Extensions != nil {
			t.Errorf("%+v, %v", l, err)
		}
	}
	kept = 0
	if err := errors.Join(s.DeleteRange(4, 4), s.log.Close()); err != nil || kept != 1 {
		t.Errorf("the log was cut, and Keep was called %d times: %v", kept, err)
	}
	for id, want := range map[string]uint64{"a": 1, "b": 0} {
		if got, err := Noted(fsys, testDir, id, func(Entry) error { return nil }); got != want || err != nil {
			t.Errorf("%s has noted %d, %v, want %d", id, got, err, want)
		}
	}
	for _, b := range [][]byte{nil, {1}, encodePosition(tagOf("b"), 1), append(encodePosition(tagOf("a"), 1), 0), encodePosition(tagOf("a"), 1)[:8]} {
		if at := decodePosition(tagOf("a"), b); at != 0 {
			t.Errorf("%x is position %d", b, at)
		}
	}
}

// TestEntriesAppliedMeanwhileStay checks that entries applied while Keep runs stay in the log: Keep makes only earlier ones durable.
func TestEntriesAppliedMeanwhileStay(t *testing.T) {
	log, err := openLog(vfs.NewMem(), testDir, 64) // one file per entry
	if err != nil {
		t.Fatal(err)
	}
	applied := uint64(1)
	s := &logs{
		log: log, stable: &stable{}, guard: newGuard(false), applied: func() uint64 { return applied }, failed: func(err error) { t.Error(err) },
		at: &Positions{Made: func() uint64 { return applied }, Noted: func(uint64) {}, Keep: func() error { applied++; return nil }},
	}
	for i := range uint64(4) {
		if err := s.StoreLog(&raft.Log{Index: 1 + i, Type: raft.LogCommand, Term: 1, Data: make([]byte, 100)}); err != nil {
			t.Fatal(err)
		}
	}
	for first := range uint64(3) {
		if err := s.DeleteRange(first+1, 4-1); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.FirstIndex(); got != first+2 {
			t.Errorf("with entries up to %d applied, the log begins at %d", first+1, got)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestEntriesAreDurable checks that entries and the position in them are durable when StoreLogs or settled returns.
func TestEntriesAreDurable(t *testing.T) {
	for _, early := range []bool{false, true} {
		fsys := vfs.NewMem()
		log, err := openLog(fsys, testDir, 4096)
		if err != nil {
			t.Fatal(err)
		}
		noted := uint64(0)
		s := &logs{
			log: log, stable: &stable{}, guard: newGuard(false), failed: func(err error) { t.Error(err) }, tag: tagOf("a"), leads: func() bool { return early }, takes: func(*raft.Log) bool { return true },
			at: &Positions{Made: func() uint64 { return 7 }, Noted: func(index uint64) { noted = index }, Keep: func() error { return nil }},
		}
		if err := s.StoreLog(&raft.Log{Index: 1, Type: raft.LogCommand, Term: 1}); err != nil {
			t.Fatal(err)
		}
		if early {
			if err := s.settled(everything); err != nil {
				t.Fatal(err)
			}
		}
		left := fsys.CrashClone(nil)
		if at, err := Noted(left, testDir, "a", func(Entry) error { return nil }); at != 7 || noted != 7 || err != nil {
			t.Errorf("early %v: position %d is noted, and a power failure leaves %d, %v", early, noted, at, err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzDecodeLog decodes bytes as an entry. Encoding the result must give the same bytes.
func FuzzDecodeLog(f *testing.F) {
	for _, l := range logExamples() {
		f.Add(encodeLog(l))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var l, again raft.Log
		if decodeLog(in, 1, &l) != nil {
			return
		}
		if err := decodeLog(encodeLog(&l), 1, &again); err != nil || !reflect.DeepEqual(again, l) {
			t.Errorf("%x is %+v, and its encoding %+v, %v", in, l, again, err)
		}
	})
}

// kept holds the files of a stopped node, and the values that they contain.
type kept struct {
	term    uint64
	note    note
	entries []string
}

func keptIn(fsys vfs.FS) (k kept, err error) {
	st, err := openStable(fsys, path.Join(testDir, stateFile))
	if err != nil {
		return k, err
	}
	if k.term, err = st.GetUint64([]byte(termKey)); err != nil {
		return k, err
	}
	notes, err := openNotes(fsys, path.Join(testDir, snapshotFile))
	if err != nil {
		return k, err
	}
	if notes.kept != nil {
		k.note = *notes.kept
	}
	log, err := openLog(fsys, testDir, 4096)
	if err != nil {
		return k, err
	}
	var bad error
	if err = log.Read(log.First(), func(index uint64, b []byte) bool {
		var l raft.Log
		if bad = decodeLog(b, index, &l); bad == nil {
			k.entries = append(k.entries, fmt.Sprint(index, l.Term, string(l.Data)))
		}
		return bad == nil
	}); err == nil {
		err = bad
	}
	if e := log.Close(); err == nil {
		err = e
	}
	return k, err
}

// TestDamagedFilesOfANode changes each byte of the files of a node: it must not start with another log, term or vote.
func TestDamagedFilesOfANode(t *testing.T) {
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll(testDir); err != nil {
		t.Fatal(err)
	}
	if err := Found(fsys, testDir, "m0", "m0:1"); err != nil {
		t.Fatal(err)
	}
	log, err := openLog(fsys, testDir, 4096)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		if err := log.Append(encodeLog(&raft.Log{Index: 2 + i, Term: 1, Data: binary.AppendUvarint([]byte("change "), i)})); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil { // a closed log records its end, so that damage there is not read as an append that was cut off
		t.Fatal(err)
	}
	want, err := keptIn(fsys)
	if err != nil || want.term != 1 || want.note.Index != 1 || len(want.entries) != 3 {
		t.Fatalf("%+v, %v", want, err)
	}
	files := []string{path.Join(testDir, stateFile), path.Join(testDir, snapshotFile)}
	names, err := fsys.List(path.Join(testDir, logDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		files = append(files, path.Join(testDir, logDir, name))
	}
	for _, name := range files {
		whole, err := vfs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << (i % 8)
			if err := vfs.WriteFile(fsys, name, flipped); err != nil {
				t.Fatal(err)
			}
			if got, err := keptIn(fsys); err == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("with byte %d of %s changed, the node has %+v, want %+v", i, name, got, want)
			}
			if err := vfs.WriteFile(fsys, name, whole); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRecover makes one of three members the only one of its group, with the entries that it has applied and those that only its log has.
func TestRecover(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		l := c.leader()
		for i := range 20 {
			c.must(l.propose(fmt.Sprint(i)))
		}
		want := c.agree()
		m := c.all[0]
		for _, m := range c.all {
			m.close()
		}
		m.applied, m.data = m.applied-5, m.data[:len(m.data)-5] // as if it had been killed before it applied them
		calls := 0
		last, err := Recover(m.disk, testDir, m.id, m.id, m.applied, func(e Entry) error {
			calls++
			if !m.apply(e) {
				return fmt.Errorf("entry %d follows entry %d", e.Index, m.applied)
			}
			return nil
		})
		c.must(err)
		if last != m.applied || calls < 5 {
			t.Errorf("the last entry is %d after %d calls, and it has applied %d", last, calls, m.applied)
		}
		again, err := Recover(m.disk, testDir, m.id, m.id, m.applied, func(Entry) error { t.Error("an entry is applied twice"); return nil })
		if err != nil || again != last {
			t.Errorf("recovered again: %d, %v", again, err)
		}
		if _, err := Recover(m.disk, testDir, m.id, m.id, m.applied-1, func(Entry) error { return nil }); err == nil {
			t.Error("a member is recovered although entries are missing")
		}
		m.open()
		c.until("it leads alone", func() bool { s, _ := m.node.State(); return s.Leads })
		c.must(m.propose("after"))
		if n := len(m.node.Members()); n != 1 {
			t.Errorf("there are %d members", n)
		}
		c.until("it has all", func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return reflect.DeepEqual(m.data, append(want, "after"))
		})
	})
}

// TestTermsAndVotes checks that the stored term never decreases, and that a vote never belongs to the candidate of an earlier term.
func TestTermsAndVotes(t *testing.T) {
	fsys := &disk{FS: vfs.NewMem()}
	const name = "state"
	failed := 0
	open := func() *stable {
		t.Helper()
		s, err := openStable(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		s.ended, s.waits, s.fail = make(chan struct{}), func(error) {}, func(error) { failed++ }
		return s
	}
	set := func(s *stable, key string, value uint64, ok bool) {
		t.Helper()
		if err := s.SetUint64([]byte(key), value); (err == nil) != ok {
			t.Errorf("%s = %d: %v", key, value, err)
		}
	}
	has := func(s *stable, term, vote uint64, candidate string) {
		t.Helper()
		gotTerm, err := s.GetUint64([]byte(termKey))
		gotVote, err2 := s.GetUint64([]byte(voteTermKey))
		gotCandidate, err3 := s.Get([]byte(candidateKey))
		if err := errors.Join(err, err2, err3); err != nil || gotTerm != term || gotVote != vote || string(gotCandidate) != candidate {
			t.Errorf("term %d, vote %d for %q, %v; want %d, %d and %q", gotTerm, gotVote, gotCandidate, err, term, vote, candidate)
		}
	}
	s := open()
	set(s, termKey, 255, true)
	set(s, voteTermKey, 255, true)
	if err := s.Set([]byte(candidateKey), []byte("a")); err != nil {
		t.Fatal(err)
	}
	has(open(), 255, 255, "a")
	fsys.fill(true)
	set(s, voteTermKey, 256, false)
	has(s, 255, 255, "a")
	fsys.fill(false)
	set(s, voteTermKey, 256, true) // then the process is killed
	has(open(), 255, 256, "")
	set(s, termKey, 256, true)
	set(s, termKey, 255, true) // raft continues with the earlier term
	if s.takes() == nil || failed != 1 {
		t.Errorf("a member with an earlier term was reopened %d times", failed)
	}
	set(s, voteTermKey, 257, false)
	has(open(), 256, 256, "")
}

// TestOpenOnAFullDisk cancels an Open that waits for room for its first term: it must return.
func TestOpenOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{FS: vfs.NewMem()}
		if err := d.MkdirAll(testDir); err != nil {
			t.Fatal(err)
		}
		_, trans := raft.NewInmemTransportWithTimeout("m0", time.Second)
		log, err := openLog(d, testDir, 4096) // creates its first file
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		d.fill(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			node, err := Open(ctx, Options{FS: d, Dir: testDir, ID: "m0", Carrier: trans, Logger: slog.New(slog.DiscardHandler),
				Applied: func() uint64 { return 0 }, fileSize: 4096})
			if node != nil {
				err = errors.Join(errors.New("Open succeeded"), err, node.Close())
			}
			done <- err
		}()
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("Open did not wait for room: %v", err)
		default:
		}
		cancel()
		if err := <-done; !errors.Is(err, errTerm) {
			t.Errorf("%v, want %v", err, errTerm)
		}
	})
}

// TestEntriesBeforeAGapAreGone checks that raft finds no entries from before a copy of another member's data, which may be others than
// those of the group: not in the log, and not in its cache.
func TestEntriesBeforeAGapAreGone(t *testing.T) {
	log, err := openLog(vfs.NewMem(), testDir, 4096)
	if err != nil {
		t.Fatal(err)
	}
	s := &logs{log: log, stable: &stable{}, guard: newGuard(false), failed: func(err error) { t.Error(err) }}
	cache, err := s.cached()
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range []uint64{1, 2, 3, 9, 10} {
		if err := cache.StoreLog(&raft.Log{Index: index, Type: raft.LogCommand, Term: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for index := range uint64(12) {
		var l raft.Log
		want := raft.ErrLogNotFound
		if index == 9 || index == 10 {
			want = nil
		}
		if err := cache.GetLog(index, &l); !errors.Is(err, want) {
			t.Errorf("entry %d: %v, want %v", index, err, want)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}
