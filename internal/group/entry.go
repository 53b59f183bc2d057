package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/zeebo/xxh3"

	"svc/internal/commit"
)

// An entry of the log, as the log store and the wire have it:
//
//	u8       version of this format
//	u8       kind of the change, that of commit.Kind
//	u64      when the writer appended it, in nanoseconds of the Unix epoch, little-endian
//	text     name of the file that changes
//	uvarint  number of files that count from then on
//	         for each: text name, uvarint size in bytes, 16 bytes XXH3-128, big-endian
//	uvarint  number of payloads that the writer has removed before
//	         for each: text name
//	         data of the change, to the end
//
// A text is a uvarint length and as many bytes. Corruption on the way is detected by the surrounding frames: those of the log store,
// and those of a batch below.
const entryVersion = 1

// File is a file that does not change. Its name is below the data directory.
type File struct {
	Name string
	Size int64
	Sum  xxh3.Uint128 // of its bytes
}

// Entry is a change of the writer's data directory, as the log has it.
type Entry struct {
	At     int64 // when the writer appended it, in nanoseconds of the Unix epoch
	Change commit.Change
	Files  []File // those of Change.Files
	// Removed are payloads that the writer has removed since the entry before: no task needs them after that one.
	Removed []string
}

var errEntry = errors.New("an entry of the log is damaged")

// newerError is the error of bytes that a later svc wrote.
type newerError struct {
	what    string
	version byte
}

func (e *newerError) Error() string {
	return fmt.Sprintf("%s has version %d of its format, and this svc reads version %d: update this svc first", e.what, e.version, entryVersion)
}

// Encode returns the form above.
func (e *Entry) Encode() []byte {
	size := 64 + len(e.Change.Name) + len(e.Change.Data)
	for i := range e.Files {
		size += 32 + len(e.Files[i].Name)
	}
	for _, name := range e.Removed {
		size += 4 + len(name)
	}
	b := append(make([]byte, 0, size), entryVersion, byte(e.Change.Kind))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.At))
	b = appendText(b, e.Change.Name)
	b = binary.AppendUvarint(b, uint64(len(e.Files)))
	for i := range e.Files {
		f := &e.Files[i]
		b = appendText(b, f.Name)
		b = binary.AppendUvarint(b, uint64(f.Size))
		sum := f.Sum.Bytes()
		b = append(b, sum[:]...)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Removed)))
	for _, name := range e.Removed {
		b = appendText(b, name)
	}
	return append(b, e.Change.Data...)
}

// DecodeEntry reads what Encode wrote. The result refers to b.
func DecodeEntry(b []byte) (*Entry, error) {
	if len(b) > 0 && b[0] > entryVersion {
		return nil, &newerError{"an entry of the log", b[0]}
	}
	d := decoder{b: b}
	if d.byte() != entryVersion {
		return nil, errEntry
	}
	e := &Entry{Change: commit.Change{Kind: commit.Kind(d.byte())}}
	e.At = int64(d.fixed64())
	e.Change.Name = d.name()
	n := d.uvarint()
	if n > uint64(len(d.b))/(2+16) { // each takes as many bytes at least
		return nil, errEntry
	}
	for range n {
		f := File{Name: d.name(), Size: d.size(), Sum: d.sum()}
		e.Files = append(e.Files, f)
		e.Change.Files = append(e.Change.Files, f.Name)
	}
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		name := d.name()
		if !isPayload(name) {
			d.bad = true
		}
		e.Removed = append(e.Removed, name)
	}
	if d.bad {
		return nil, errEntry
	}
	e.Change.Data = d.b
	return e, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads values from the front of bytes. After the first one that is not whole all are zero, and bad is true.
type decoder struct {
	b   []byte
	bad bool
}

// take returns the next n bytes. If there are fewer, it sets bad and returns nil, also in all later calls.
func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	taken := d.b[:n:n]
	d.b = d.b[n:]
	return taken
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) fixed64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uvarint reads a number, and sets bad if it is cut or not in its shortest form.
func (d *decoder) uvarint() uint64 {
	n, length := binary.Uvarint(d.b)
	if length <= 0 || length > 1 && d.b[length-1] == 0 { // only the shortest form, so that each value has one
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[length:]
	return n
}

// size reads a number of bytes.
func (d *decoder) size() int64 {
	n := int64(d.uvarint())
	if n < 0 {
		d.bad = true
	}
	return n
}

func (d *decoder) text() string { return string(d.take(d.uvarint())) }

// name reads the name of a file below the data directory.
func (d *decoder) name() string {
	s := d.text()
	if !fs.ValidPath(s) || s == "." {
		d.bad = true
	}
	return s
}

// sum reads an XXH3-128, big-endian.
func (d *decoder) sum() xxh3.Uint128 {
	b := d.take(16)
	if b == nil {
		return xxh3.Uint128{}
	}
	return xxh3.Uint128{Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])}
}

// A batch of entries, as a reader gets it:
//
//	8 bytes  magic "svcgrp\x00" and the version of the format
//	u32 u32  term and run of the log
//	u64      index of the first entry
//	u64      index of the last entry that the log has
//	u64      the clock of the writer, in nanoseconds of the Unix epoch
//	uvarint  number of entries
//	         for each: uvarint length and its bytes
//	u64      XXH3-64 of all above
//
// with numbers little-endian.
const batchMagic = "svcgrp\x00"

// Batch is a run of entries of a log, with the form above.
type Batch struct {
	Run     Position // of the log; Index is the index of the first entry
	End     uint64   // index of the last entry that the log has
	Now     int64    // the clock of the writer, in nanoseconds of the Unix epoch
	Entries [][]byte // as Encode of Entry returns them
}

var errBatch = errors.New("what the writer sent of its log is damaged")

// Encode returns the form above.
func (t *Batch) Encode() []byte {
	size := 64
	for _, e := range t.Entries {
		size += 5 + len(e)
	}
	b := append(append(make([]byte, 0, size), batchMagic...), entryVersion)
	b = binary.LittleEndian.AppendUint32(b, t.Run.Term)
	b = binary.LittleEndian.AppendUint32(b, t.Run.Run)
	for _, n := range []uint64{t.Run.Index, t.End, uint64(t.Now)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(t.Entries)))
	for _, e := range t.Entries {
		b = binary.AppendUvarint(b, uint64(len(e)))
		b = append(b, e...)
	}
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

// DecodeBatch reads what Encode wrote. The result refers to b.
func DecodeBatch(b []byte) (*Batch, error) {
	if n := len(batchMagic); len(b) > n && string(b[:n]) == batchMagic && b[n] > entryVersion {
		return nil, &newerError{"the log", b[n]}
	}
	if len(b) < 8 || xxh3.Hash(b[:len(b)-8]) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return nil, errBatch
	}
	d := decoder{b: b[:len(b)-8]}
	if string(d.take(uint64(len(batchMagic)))) != batchMagic || d.byte() != entryVersion {
		return nil, errBatch
	}
	t := &Batch{}
	run := d.fixed64()
	t.Run = Position{Term: uint32(run), Run: uint32(run >> 32), Index: d.fixed64()}
	t.End, t.Now = d.fixed64(), int64(d.fixed64())
	n := d.uvarint()
	if n > uint64(len(d.b)) { // each takes a byte at least
		return nil, errBatch
	}
	t.Entries = make([][]byte, 0, n)
	for range n {
		t.Entries = append(t.Entries, d.take(d.uvarint()))
	}
	if d.bad || len(d.b) > 0 || n > 0 && (t.Run.Index == 0 || t.Run.Index+n-1 > t.End) {
		return nil, errBatch
	}
	return t, nil
}

// An image of the data directory, as a reader gets it:
//
//	8 bytes  magic "svcsta\x00" and the version of the format
//	u32 u32  term and run of the log
//	u64      index of the last entry that the image has for certain
//	u64      index of the entry up to which the log completes it
//	uvarint  number of files
//	         for each: text name, text under which it is to be fetched, uvarint size in bytes, u8 1 if its sum is known,
//	         16 bytes XXH3-128 of it then
//	uvarint  number of contents
//	         for each: text name, uvarint length and its bytes
//	u64      XXH3-64 of all above
const stateMagic = "svcsta\x00"

// Image is the content of a data directory, without the content of large files.
//
// It is taken while the directory changes: it has all entries up to Run.Index, and some of those up to Whole. A member that applies
// the entries after Run.Index again, in order, has the directory as it was after the entry Whole.
type Image struct {
	Run      Position
	Whole    uint64 // index of an entry, not before Run.Index
	Files    []ImageFile
	Contents []Content
}

// ImageFile is a file of an image.
type ImageFile struct {
	File
	At    string // name to fetch it by
	Known bool   // the sum is
}

// Content is a small file of an image, with its bytes.
type Content struct {
	Name string
	Data []byte
}

var errImage = errors.New("what the writer sent of its state is damaged")

// Encode returns the form above.
func (s *Image) Encode() []byte {
	b := append([]byte(stateMagic), entryVersion)
	b = binary.LittleEndian.AppendUint32(b, s.Run.Term)
	b = binary.LittleEndian.AppendUint32(b, s.Run.Run)
	b = binary.LittleEndian.AppendUint64(b, s.Run.Index)
	b = binary.LittleEndian.AppendUint64(b, s.Whole)
	b = binary.AppendUvarint(b, uint64(len(s.Files)))
	for i := range s.Files {
		f := &s.Files[i]
		b = binary.AppendUvarint(appendText(appendText(b, f.Name), f.At), uint64(f.Size))
		if !f.Known {
			b = append(b, 0)
			continue
		}
		sum := f.Sum.Bytes()
		b = append(append(b, 1), sum[:]...)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Contents)))
	for i := range s.Contents {
		b = binary.AppendUvarint(appendText(b, s.Contents[i].Name), uint64(len(s.Contents[i].Data)))
		b = append(b, s.Contents[i].Data...)
	}
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

// DecodeImage reads what Encode wrote. The result refers to b.
func DecodeImage(b []byte) (*Image, error) {
	if n := len(stateMagic); len(b) > n && string(b[:n]) == stateMagic && b[n] > entryVersion {
		return nil, &newerError{"the state", b[n]}
	}
	if len(b) < 8 || xxh3.Hash(b[:len(b)-8]) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return nil, errImage
	}
	d := decoder{b: b[:len(b)-8]}
	if string(d.take(uint64(len(stateMagic)))) != stateMagic || d.byte() != entryVersion {
		return nil, errImage
	}
	s := &Image{}
	run := d.fixed64()
	s.Run = Position{Term: uint32(run), Run: uint32(run >> 32), Index: d.fixed64()}
	s.Whole = d.fixed64()
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		f := ImageFile{File: File{Name: d.name()}, At: d.name()}
		f.Size = d.size()
		switch d.byte() {
		case 0:
		case 1:
			f.Known, f.Sum = true, d.sum()
		default:
			d.bad = true
		}
		s.Files = append(s.Files, f)
	}
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		c := Content{Name: d.name()}
		c.Data = d.take(d.uvarint())
		s.Contents = append(s.Contents, c)
	}
	if d.bad || len(d.b) > 0 || s.Whole < s.Run.Index || !s.distinct() {
		return nil, errImage
	}
	return s, nil
}

// distinct reports whether all names differ and none is below another one.
func (s *Image) distinct() bool {
	names := make([]string, 0, len(s.Files)+len(s.Contents))
	for i := range s.Files {
		names = append(names, s.Files[i].Name)
	}
	for i := range s.Contents {
		names = append(names, s.Contents[i].Name)
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if below(names[i-1], names[i]) {
			return false
		}
	}
	return true
}

// below reports whether a name is a directory or something inside it.
func below(dir, name string) bool {
	return len(name) >= len(dir) && name[:len(dir)] == dir && (len(name) == len(dir) || name[len(dir)] == '/')
}
