package analytics

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"svc/internal/vfs"
)

// The journal has the counts of one hour: a header and frames. All numbers are little-endian.
//
//	header: "svcanly1", the hour (8 bytes), xxhash64 of these 16 bytes
//	frame:  length of the payload (4), xxhash64 of it (8), the payload
//
// A payload is a list of records: the length of a key as uvarint, the key, and its counts so far as uvarints. A later record replaces
// an earlier one, so the journal can be read twice. A frame without a payload counts markEvery writes in the hour. So a server that
// restarts often learns that its clock is right.
const (
	journalName  = "journal"
	journalMagic = "svcanly1"
	headerBytes  = 24
	frameBytes   = 12

	// A journal begins again when it has this many bytes, and this many times as many as it began with.
	maxJournal       = 4 << 20
	maxJournalGrowth = 4
)

// journal is the open file. r.mu is held for it.
type journal struct {
	file          vfs.File // at its end; nil: not open
	exists        bool     // the file may be there
	rewrite       bool     // appending is not possible: rewrite the file
	marks         int      // frames without a payload in the file
	size, begunAt int      // bytes, now and when it began
	buf           []byte
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// appendHeader appends the header of the journal of an hour.
func appendHeader(dst []byte, h hour) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint64(append(dst, journalMagic...), uint64(h))
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

// beginFrame appends room for the head of a frame, and returns where its payload begins. endFrame fills it in.
func beginFrame(dst []byte) (_ []byte, payload int) {
	return append(dst, make([]byte, frameBytes)...), len(dst) + frameBytes
}

func endFrame(b []byte, payload int) {
	head := b[payload-frameBytes:]
	binary.LittleEndian.PutUint32(head, uint32(len(b)-payload))
	binary.LittleEndian.PutUint64(head[4:], xxhash.Sum64(b[payload:]))
}

// appendMarks appends frames without a payload.
func appendMarks(dst []byte, n int) []byte {
	for range n {
		var payload int
		dst, payload = beginFrame(dst)
		endFrame(dst, payload)
	}
	return dst
}

func appendRecord(dst []byte, e *entry) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(e.key))), e.key...)
	for _, n := range e.numbers() {
		dst = binary.AppendUvarint(dst, *n)
	}
	return dst
}

// journalled is what a journal has.
type journalled struct {
	hour   hour
	counts map[string]Counts
	marks  int
}

// parseJournal reads a journal. The last frame may be torn, which is no error: it was not synced. After damage only the frames before
// it count. found is nil if the header is damaged.
func parseJournal(b []byte) (found *journalled, err error) {
	if len(b) < headerBytes || string(b[:len(journalMagic)]) != journalMagic || binary.LittleEndian.Uint64(b[16:]) != xxhash.Sum64(b[:16]) {
		return nil, errors.New("the header is damaged")
	}
	found = &journalled{hour: hour(binary.LittleEndian.Uint64(b[8:])), counts: map[string]Counts{}}
	for at := headerBytes; len(b)-at >= frameBytes; {
		length := int(binary.LittleEndian.Uint32(b[at:]))
		end := at + frameBytes + length
		if end > len(b) {
			return found, nil
		}
		payload := b[at+frameBytes : end]
		if binary.LittleEndian.Uint64(b[at+4:]) != xxhash.Sum64(payload) {
			if end == len(b) {
				return found, nil
			}
			return found, fmt.Errorf("the frame at byte %d is damaged", at)
		}
		if length == 0 {
			found.marks++
		}
		if !found.read(payload) {
			return found, fmt.Errorf("the frame at byte %d has no records", at)
		}
		at = end
	}
	return found, nil
}

// read takes the records of a frame.
func (j *journalled) read(b []byte) bool {
	for len(b) > 0 {
		length, size := binary.Uvarint(b)
		if size <= 0 || length > uint64(len(b)-size) {
			return false
		}
		key := string(b[size : size+int(length)])
		if b = b[size+int(length):]; !validKey(key) {
			return false
		}
		var n Counts
		for _, to := range n.numbers() {
			if *to, size = binary.Uvarint(b); size <= 0 {
				return false
			}
			b = b[size:]
		}
		j.counts[key] = n
	}
	return true
}

// writeJournal appends what has changed to the journal and syncs it, or begins a new one. r.mu is held.
func (r *Recorder) writeJournal() error {
	j := &r.journal
	if j.size > maxJournal && j.size > maxJournalGrowth*j.begunAt {
		j.rewrite = true
	}
	var err error
	if j.rewrite {
		err = r.beginJournal()
	} else {
		err = r.extendJournal()
	}
	if err != nil {
		j.rewrite = true // the end of the file is unknown
		return errors.Join(err, j.close())
	}
	return nil
}

// beginJournal replaces the journal by one that has all entries.
func (r *Recorder) beginJournal() error {
	j := &r.journal
	marks := r.marks()
	head := appendMarks(appendHeader(j.buf[:0], r.hour), marks)
	b, payload := beginFrame(head)
	b = r.live.appendEntries(b, true)
	j.buf = b
	if len(b) == payload {
		if !j.exists && marks == 0 {
			return nil // nothing was counted yet
		}
		b = b[:len(head)]
	} else {
		endFrame(b, payload)
	}
	if err := j.close(); err != nil {
		return err
	}
	j.exists = true
	if _, err := vfs.Replace(r.fs, r.path(journalName), b); err != nil {
		return err
	}
	file, err := r.fs.Append(r.path(journalName))
	if err != nil {
		return err
	}
	j.file, j.rewrite, j.size, j.begunAt, j.marks = file, false, len(b), len(b), marks
	return nil
}

// appendEntries appends all entries, or those that have changed since it was called last.
func (t *table) appendEntries(b []byte, all bool) []byte {
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		list := slices.Values(s.changed)
		if all {
			list = maps.Values(s.entries)
		}
		for e := range list {
			e.changed = false
			b = appendRecord(b, e)
		}
		s.changed = s.changed[:0]
		s.mu.Unlock()
	}
	return b
}

// extendJournal appends the entries that have changed.
func (r *Recorder) extendJournal() error {
	j := &r.journal
	marks := r.marks()
	head := appendMarks(j.buf[:0], marks-j.marks)
	b, payload := beginFrame(head)
	b = r.live.appendEntries(b, false)
	if j.buf = b; len(b) == payload {
		b = b[:len(head)]
	} else {
		endFrame(b, payload)
	}
	if len(b) == 0 {
		return nil
	}
	if _, err := j.file.Write(b); err != nil {
		return err
	}
	j.size += len(b)
	j.marks = marks
	return j.file.Sync()
}
