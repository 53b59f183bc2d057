package group

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"svc/internal/commit"
)

// A change as the log of voters has it:
//
//	u8       version of this format, the level of the entry: see Voter.level
//	16 bytes nonce: by it the leader knows its own changes
//	uvarint  number of files whose bytes follow
//	         for each: uvarint number of the file in the entry, uvarint length and its bytes
//	u8       1: the data of the change are a file; then uvarint size in bytes and 16 bytes XXH3-128, big-endian
//	         Entry, to the end
const proposalVersion = 1 // the newest

const (
	// maxInlineFile is the largest file that the log can contain. maxInline is the limit for all such files of one change: further
	// ones are sent as files.
	maxInlineFile = commit.SmallFile
	maxInline     = 128 << 10
	// maxData is the most that the data of a change may have in the log: raft slows down with large entries. More becomes a file.
	maxData = 256 << 10
)

// proposal is a change as the leader proposes it.
type proposal struct {
	level  byte
	nonce  [16]byte
	inline map[int][]byte // by number of the file in the entry
	data   *File          // of the spool, if the entry has no data itself
	entry  *Entry
}

// encode returns the form above.
func (p *proposal) encode() []byte {
	b := append(make([]byte, 0, 1024), p.level)
	b = append(b, p.nonce[:]...)
	b = binary.AppendUvarint(b, uint64(len(p.inline)))
	for i := range p.entry.Files {
		if content, ok := p.inline[i]; ok {
			b = binary.AppendUvarint(b, uint64(i))
			b = binary.AppendUvarint(b, uint64(len(content)))
			b = append(b, content...)
		}
	}
	if p.data == nil {
		b = append(b, 0)
	} else {
		sum := p.data.Sum.Bytes()
		b = append(binary.AppendUvarint(append(b, 1), uint64(p.data.Size)), sum[:]...)
	}
	return append(b, p.entry.Encode()...)
}

// decodeProposal reads what encode wrote, up to the newest level that is known. The result refers to b.
func decodeProposal(b []byte, newest byte) (*proposal, error) {
	if len(b) > 0 && b[0] > newest {
		return nil, fmt.Errorf("an entry of the log has version %d of its format, and this svc reads version %d: update this svc first", b[0], newest)
	}
	d := decoder{b: b}
	level := d.byte()
	if level == 0 {
		return nil, errEntry
	}
	p := &proposal{level: level, inline: map[int][]byte{}}
	copy(p.nonce[:], d.take(16))
	last := -1
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		i := d.uvarint()
		if i > 1<<20 || int(i) <= last {
			return nil, errEntry
		}
		last = int(i)
		p.inline[last] = d.take(d.uvarint())
	}
	switch d.byte() {
	case 0:
	case 1:
		p.data = &File{Size: d.size(), Sum: d.sum()}
	default:
		d.bad = true
	}
	if d.bad {
		return nil, errEntry
	}
	var err error
	if p.entry, err = DecodeEntry(d.b); err != nil {
		return nil, err
	}
	if last >= len(p.entry.Files) || p.data != nil && len(p.entry.Change.Data) > 0 {
		return nil, errEntry
	}
	for i, content := range p.inline {
		if f := p.entry.Files[i]; f.Size != int64(len(content)) || xxh3.Hash128(content) != f.Sum {
			return nil, errors.Join(errEntry, fmt.Errorf("%s is not what the entry says", f.Name))
		}
	}
	return p, nil
}

// keys returns the keys of the files that a member needs in its spool, with the sizes.
func (p *proposal) keys() map[string]int64 {
	keys := map[string]int64{}
	for i, f := range p.entry.Files {
		if _, ok := p.inline[i]; !ok {
			keys[fileKey(f.Size, f.Sum)] = f.Size
		}
	}
	if p.data != nil {
		keys[fileKey(p.data.Size, p.data.Sum)] = p.data.Size
	}
	return keys
}
