package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"svc/internal/logstore"
	"svc/internal/vfs"
)

// Names in the directory of a node.
const (
	logDir       = "log"
	stateFile    = "state"    // term and vote
	snapshotFile = "snapshot" // up to where the log was cut, or copied from another member
)

const (
	entryVersion    = 1
	stateVersion    = 1
	snapshotVersion = 1
)

// logs keeps the log of raft in a log store. An entry there is:
//
//	u8       version of this format
//	u8       raft.LogType
//	uvarint  term
//	varint   when the leader appended it, in nanoseconds of the Unix epoch
//	uvarint  number of bytes of Extensions, and these
//	         Data, to the end
//
// Extensions do not come from raft. In them, a member stores the last entry that its data directory has, without a sync of its own.
// Their format is:
//
//	u64      XXH64 of the member's id, little-endian: members of a former version may pass those of others on
//	uvarint  index of that entry
//
// Between Node.Propose and StoreLogs, Extensions are the id of a proposal.
type logs struct {
	log     *logstore.Log
	stable  *stable
	guard   *guard
	applied func() uint64 // entries up to there are no longer needed
	failed  func(error)   // called when an append or a truncation fails
	stall   func()        // for tests: called before an append; nil: nothing
	leads   func() bool   // whether raft leads, as seen by the goroutine that calls StoreLogs
	// takes reports whether a leader may append a change. It is set if leads is.
	takes func(*raft.Log) bool
	tag   uint64 // of the member
	// emptied is called before the log is emptied, so that no cache has entries of it; nil: there is no cache.
	emptied func()
	at      *Positions // nil: positions are not stored

	mu     sync.Mutex
	flight *flight // the last append that was not synced at once, or nil
}

// flight is an append that raft continues from before it is durable.
type flight struct {
	first uint64        // its first entry
	done  chan struct{} // closed when it is durable, or has failed
	err   error         // once done is closed
}

// early reports whether raft may continue from an append before it is durable, so that a leader sends the entries while it syncs
// them. Until then nothing may depend on this member's copy: it reports no entry as committed, not even to itself (settled, durable),
// and answers no other leader (transport.takes). Only changes may go early. The first entry of a lead and membership changes decide
// what counts as committed, so they may not.
func (s *logs) early(all []*raft.Log) bool {
	return s.leads != nil && s.leads() && !slices.ContainsFunc(all, func(l *raft.Log) bool { return l.Type != raft.LogCommand })
}

// inFlight returns the last append that was not synced at once, or nil if it is durable.
func (s *logs) inFlight() *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flight
}

// settled waits until the entries up to an index are durable, as far as raft has appended them.
func (s *logs) settled(index uint64) error {
	f := s.inFlight()
	if f == nil || f.first > index {
		return nil
	}
	<-f.done
	return f.err
}

// durable returns the last entry that is certainly durable, but at most index.
func (s *logs) durable(index uint64) uint64 {
	if f := s.inFlight(); f != nil {
		return min(index, f.first-1)
	}
	return index
}

// fly syncs a written append in the background and then calls end. The append stores the position at.
func (s *logs) fly(first, at uint64, end func()) {
	f := &flight{first: first, done: make(chan struct{})}
	s.mu.Lock()
	s.flight = f
	s.mu.Unlock()
	go func() { // ends with the sync; everything that closes the log waits for it
		defer close(f.done)
		defer end()
		if s.stall != nil {
			s.stall()
		}
		if err := s.log.Sync(); err != nil {
			f.err = s.broke(err)
			return
		}
		s.note(at)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flight = nil
	}()
}

// everything is an index after all entries.
const everything = ^uint64(0)

// broke records a failed log write and returns its error.
func (s *logs) broke(err error) error {
	err = fmt.Errorf("cannot append to the log of the group: %w", err)
	s.guard.fail()
	s.failed(err)
	return err
}

// encodeLog encodes an entry in the format above.
func encodeLog(l *raft.Log) []byte {
	b := append(make([]byte, 0, 32+len(l.Extensions)+len(l.Data)), entryVersion, byte(l.Type))
	b = binary.AppendUvarint(b, l.Term)
	at := int64(0)
	if !l.AppendedAt.IsZero() {
		at = l.AppendedAt.UnixNano()
	}
	b = binary.AppendVarint(b, at)
	b = binary.AppendUvarint(b, uint64(len(l.Extensions)))
	b = append(b, l.Extensions...)
	return append(b, l.Data...)
}

var errEntry = errors.New("an entry of the log is damaged")

// decodeLog reads what encodeLog wrote. The result refers to b.
func decodeLog(b []byte, index uint64, l *raft.Log) error {
	if len(b) < 2 {
		return errEntry
	}
	if b[0] != entryVersion {
		return fmt.Errorf("an entry of the log has version %d of its format, and this svc reads version %d", b[0], entryVersion)
	}
	*l = raft.Log{Index: index, Type: raft.LogType(b[1])}
	b = b[2:]
	term, n := binary.Uvarint(b)
	if n <= 0 {
		return errEntry
	}
	l.Term, b = term, b[n:]
	at, n := binary.Varint(b)
	if n <= 0 {
		return errEntry
	}
	b = b[n:]
	if at != 0 {
		l.AppendedAt = time.Unix(0, at)
	}
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return errEntry
	}
	b = b[n:]
	if size > 0 {
		l.Extensions = b[:size:size]
	}
	if b = b[size:]; len(b) > 0 {
		l.Data = b
	}
	return nil
}

// bounds returns the first and the last index. Both are 0 for an empty log, as raft requires.
func (s *logs) bounds() (first, last uint64) {
	first, next := s.log.First(), s.log.Next()
	if first == next {
		return 0, 0
	}
	return first, next - 1
}

// FirstIndex implements raft.LogStore.
func (s *logs) FirstIndex() (uint64, error) {
	first, _ := s.bounds()
	return first, nil
}

// LastIndex implements raft.LogStore.
func (s *logs) LastIndex() (uint64, error) {
	_, last := s.bounds()
	return last, nil
}

// GetLog implements raft.LogStore.
func (s *logs) GetLog(index uint64, l *raft.Log) error {
	first, last := s.bounds()
	if index < first || index > last || index == 0 {
		return raft.ErrLogNotFound
	}
	found := false
	var bad error
	err := s.log.Read(index, func(i uint64, entry []byte) bool {
		found, bad = true, decodeLog(entry, i, l)
		l.Extensions = nil // they are only for this member
		return false
	})
	switch {
	case errors.Is(err, logstore.ErrNotStored) || err == nil && !found:
		return raft.ErrLogNotFound
	case err != nil:
		return err
	}
	return bad
}

// StoreLog implements raft.LogStore.
func (s *logs) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. Entries that do not continue the log follow a copy of another member's data; the entries before
// them no longer count.
func (s *logs) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	if err := s.settled(everything); err != nil {
		return err
	}
	s.own(entries)
	end := s.guard.begin()
	early := s.early(entries)
	if !early && s.stall != nil {
		s.stall()
	}
	at := uint64(0)
	if s.at != nil {
		at = s.at.Made()
	}
	if err := s.write(entries, at); err != nil {
		end()
		return s.broke(err)
	}
	if early {
		s.fly(entries[0].Index, at, end)
		return nil
	}
	defer end()
	if err := s.log.Sync(); err != nil {
		return s.broke(err)
	}
	s.note(at)
	return nil
}

// own replaces those of a leader's new changes that it may not append by entries that do nothing.
func (s *logs) own(all []*raft.Log) {
	if s.leads == nil || !s.leads() {
		return
	}
	for _, l := range all {
		if l.Type == raft.LogCommand && !s.takes(l) {
			l.Type, l.Data = raft.LogNoop, nil
		}
	}
}

// note passes on that a position is durable in the log.
func (s *logs) note(at uint64) {
	if s.at != nil {
		s.at.Noted(at)
	}
}

// keep makes stored positions durable elsewhere before their entries are cut.
func (s *logs) keep() error {
	if s.at == nil {
		return nil
	}
	return s.at.Keep()
}

func tagOf(id string) uint64 { return xxhash.Sum64String(id) }

// encodePosition returns Extensions with a position.
func encodePosition(tag, at uint64) []byte {
	return binary.AppendUvarint(binary.LittleEndian.AppendUint64(make([]byte, 0, 8+binary.MaxVarintLen64), tag), at)
}

// decodePosition returns the position in Extensions, or 0 if there is none of this member.
func decodePosition(tag uint64, b []byte) uint64 {
	if len(b) < 8 || binary.LittleEndian.Uint64(b) != tag {
		return 0
	}
	at, n := binary.Uvarint(b[8:])
	if n != len(b)-8 {
		return 0
	}
	return at
}

// write writes entries, which become durable with the next sync of the log. Entries after a gap, or anywhere in an empty log, restart
// the log, as after a copy of another member's data. Other entries that do not continue the log are an error.
//
// The last entry stores the position at, unless it is 0.
func (s *logs) write(all []*raft.Log, at uint64) error {
	if err := s.stable.takes(); err != nil {
		return err
	}
	first, next := all[0].Index, s.log.Next()
	switch {
	case first < next && s.log.First() != next:
		return fmt.Errorf("entry %d is there already", first)
	case first != next:
		if err := s.reset(first); err != nil {
			return err
		}
	}
	encoded := make([][]byte, len(all))
	for i, l := range all {
		if l.Index != first+uint64(i) {
			return fmt.Errorf("entry %d follows entry %d", l.Index, first+uint64(i)-1)
		}
		own := *l
		if own.Extensions = nil; i == len(all)-1 && at > 0 {
			own.Extensions = encodePosition(s.tag, at)
		}
		encoded[i] = encodeLog(&own)
	}
	return s.log.Write(encoded...)
}

// cached returns a cache of the newest entries.
func (s *logs) cached() (*raft.LogCache, error) {
	cache, err := raft.NewLogCache(4*maxAppend, s)
	if err == nil {
		s.emptied = func() { _ = cache.DeleteRange(1, 0) } // deletes no entry of the log
	}
	return cache, err
}

// reset empties the log. The next entry gets the index first.
func (s *logs) reset(first uint64) error {
	if s.emptied != nil {
		s.emptied()
	}
	return errors.Join(s.keep(), s.log.Reset(first))
}

// DeleteRange implements raft.LogStore.
func (s *logs) DeleteRange(from, to uint64) error {
	if err := s.settled(everything); err != nil {
		return err
	}
	first, last := s.bounds()
	if first == 0 || from > last || to < first {
		return nil
	}
	applied := s.applied() // keep does not cover what is applied meanwhile
	err := s.keep()        // it may sync many files, which does not mean that the leader is stuck
	defer s.guard.begin()()
	switch {
	case err != nil:
	case to >= last:
		err = s.log.TruncateBack(max(from, first))
	case from <= first:
		err = s.log.TruncateFront(min(to, applied) + 1)
	default:
		err = fmt.Errorf("entries %d to %d are in the middle of the log", from, to)
	}
	if err != nil {
		err = fmt.Errorf("cannot truncate the log of the group: %w", err)
		s.guard.fail()
		s.failed(err)
	}
	return err
}

func openLog(fsys vfs.FS, dir string, fileSize int64) (*logstore.Log, error) {
	return logstore.Open(logstore.Options{FS: fsys, Dir: path.Join(dir, logDir), FileSize: fileSize})
}
