package synonym

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// A file of settings, little-endian:
//
//	offset  bytes
//	0       8      magic
//	8       4      format version
//	12      4      zero
//	16      8      stamp: what the words of the table depend on
//	24      8      length of the settings, without synonyms
//	32      8      length of the synonyms as they were set
//	40      8      length of the table
//	48      24     xxhash64 of each of the three
//	72      8      xxhash64 of the bytes before
//	80             the settings, the synonyms, the table
const (
	magic     = "svcSETNG"
	headBytes = 80

	FormatVersion = 1 // that is written and read
)

// UnknownVersion is the error of a file that another svc wrote. Nothing is wrong with it.
type UnknownVersion struct{ Version uint32 }

func (e *UnknownVersion) Error() string {
	return fmt.Sprintf("format version %d, and this svc reads version %d", e.Version, FormatVersion)
}

// The parts of a file, in their order.
const (
	settingsPart = iota
	synonymsPart
	tablePart
	parts
)

var partNames = [parts]string{"settings", "synonyms", "table of synonyms"}

// Content is what a file of settings has. This package does not know the form of settings and synonyms.
type Content struct {
	Stamp    uint64
	Settings []byte
	Synonyms []byte
	Table    *Table
}

// Encode returns the bytes of a file.
func (c *Content) Encode() []byte {
	all := [parts][]byte{c.Settings, c.Synonyms, c.Table.bytes()}
	n := headBytes
	for _, part := range all {
		n += len(part)
	}
	b := append(make([]byte, 0, n), magic...)
	b = binary.LittleEndian.AppendUint32(b, FormatVersion)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, c.Stamp)
	for _, part := range all {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(part)))
	}
	for _, part := range all {
		b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(part))
	}
	b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
	for _, part := range all {
		b = append(b, part...)
	}
	return b
}

// head is the beginning of a file.
type head struct {
	version uint32
	stamp   uint64
	places  [parts]struct{ offset, length int64 }
	sums    [parts]uint64
}

// parseHead reads the head of a file. name is for errors.
func parseHead(name string, b []byte) (h head, err error) {
	damaged := func(offset int64, format string, args ...any) error {
		return &apierr.Corruption{File: name, Offset: offset, Fatal: true, Reason: fmt.Sprintf(format, args...)}
	}
	if len(b) < headBytes {
		return h, damaged(0, "%d bytes, want at least %d", len(b), headBytes)
	}
	if got := string(b[:8]); got != magic {
		return h, damaged(0, "starts with %q, want %q", got, magic)
	}
	if h.version = binary.LittleEndian.Uint32(b[8:]); h.version != FormatVersion {
		return h, &UnknownVersion{Version: h.version}
	}
	if got, want := xxhash.Sum64(b[:72]), binary.LittleEndian.Uint64(b[72:]); got != want {
		return h, damaged(72, "checksum of the head %016x, want %016x", got, want)
	}
	h.stamp = binary.LittleEndian.Uint64(b[16:])
	left := int64(len(b)) - headBytes
	for i := range parts {
		n := binary.LittleEndian.Uint64(b[24+8*i:])
		if n > uint64(left) {
			return h, damaged(24+8*int64(i), "%s of %d bytes, where %d are left", partNames[i], n, left)
		}
		h.places[i].offset, h.places[i].length = int64(len(b))-left, int64(n)
		h.sums[i] = binary.LittleEndian.Uint64(b[48+8*i:])
		left -= int64(n)
	}
	if left > 0 {
		return h, damaged(int64(len(b))-left, "%d bytes follow the %s", left, partNames[tablePart])
	}
	return h, nil
}

// File is an open, mapped file of settings. Its methods are safe for concurrent use, until Close. Each part is checked on first use.
type File struct {
	m    *mapped.File
	head head

	table struct {
		once sync.Once
		*Table
		err error
	}
}

// Open opens a file of settings. It reads the head only.
func Open(fsys vfs.FS, name string) (*File, error) {
	m, err := mapped.Open(fsys, name)
	if err != nil {
		return nil, err
	}
	f := &File{m: m}
	if err := mapped.Guard(func() (err error) { f.head, err = parseHead(name, m.Bytes()); return err }); err != nil {
		_ = m.Close() // the damage is the error to return
		return nil, err
	}
	return f, nil
}

// Name returns the name that the file was opened by.
func (f *File) Name() string { return f.m.Name() }

// Close unmaps the file. Its table must not be used any more.
func (f *File) Close() error { return f.m.Close() }

// Stamp returns the stamp of the table.
func (f *File) Stamp() uint64 { return f.head.stamp }

// OnFault sets a function that is called for pages that cannot be read.
func (f *File) OnFault(tell func(*apierr.Corruption)) { f.m.OnFault(tell) }

// Settings returns a copy of the settings.
func (f *File) Settings() ([]byte, error) { return f.copied(settingsPart) }

// Synonyms returns a copy of the synonyms as they were set.
func (f *File) Synonyms() ([]byte, error) { return f.copied(synonymsPart) }

// Table returns the table, which is valid until Close.
func (f *File) Table() (*Table, error) {
	f.table.once.Do(func() { f.table.Table, f.table.err = f.readTable() })
	return f.table.Table, f.table.err
}

// Check reads the whole file and reports damage.
func (f *File) Check() error {
	for part := range parts {
		if err := mapped.Guard(func() error { _, err := f.sound(part); return err }); err != nil {
			return err
		}
	}
	t, err := f.readTable()
	if err == nil {
		err = mapped.Guard(func() error {
			if err := t.check(); err != nil {
				return f.damage(tablePart, "%v", err)
			}
			return nil
		})
	}
	return err
}

func (f *File) readTable() (t *Table, err error) {
	err = mapped.Guard(func() error {
		b, err := f.sound(tablePart)
		if err != nil {
			return err
		}
		if t, err = parse(b); err != nil {
			return f.damage(tablePart, "%v", err)
		}
		return nil
	})
	return t, err
}

func (f *File) copied(part int) (b []byte, err error) {
	err = mapped.Guard(func() error {
		sound, err := f.sound(part)
		b = append([]byte(nil), sound...)
		return err
	})
	return b, err
}

// sound returns the bytes of a part if its checksum is right.
func (f *File) sound(part int) ([]byte, error) {
	b, err := f.m.Slice(f.head.places[part].offset, f.head.places[part].length)
	if err != nil {
		return nil, err
	}
	if got, want := xxhash.Sum64(b), f.head.sums[part]; got != want {
		return nil, f.damage(part, "checksum %016x, want %016x", got, want)
	}
	return b, nil
}

func (f *File) damage(part int, format string, args ...any) error {
	return &apierr.Corruption{File: f.Name(), Section: partNames[part], Offset: f.head.places[part].offset, Reason: fmt.Sprintf(format, args...)}
}
