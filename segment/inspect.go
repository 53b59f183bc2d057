package segment

import (
	"encoding/binary"
	"io"

	"svc/internal/binfmt"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// inspectItems is how many items of a list are printed.
const inspectItems = 40

// Inspect prints a segment file as an annotated tree. For a damaged file it prints what it can read and returns the damage, an
// *apierr.Corruption.
func Inspect(w io.Writer, fs vfs.FS, name string) error {
	file, err := mapped.Open(fs, name)
	if err != nil {
		return err
	}
	defer file.Close()
	return mapped.Guard(func() error { return printFile(w, name, file.Bytes()) })
}

// printFile prints the meaning of every readable byte of a file, and returns the first damage. A damaged section is printed as
// damaged, and the others are still shown.
func printFile(w io.Writer, name string, data []byte) error {
	t := binfmt.New(w)
	footer, sections, err := parseContainer(name, data)
	t.Node(func() {
		if err != nil {
			t.Note("%v", err)
			return
		}
		t.Note("format version %d, features %d, %d sections", footer.version, footer.features, len(sections))
		r := &Reader{name: name, data: data}
		err = r.open(false)
		if err != nil {
			t.Note("%v", err)
		}
		i := inspector{t: t, r: r, open: err == nil}
		r.blocks.sound.Store(true) // print a section if its own checksum is correct, whatever the state of its neighbours
		t.Field(0, data[:len(fileMagic)], "magic")
		for _, s := range sections {
			if bad := i.section(s); err == nil {
				err = bad
			}
		}
		at := footer.tableOffset
		t.Node(func() {
			for _, s := range sections {
				t.Field(at, data[at:at+entryBytes], "%v, aux %d, offset %06x, length %d, checksum %016x", s.tag, s.aux, s.offset, s.length, s.checksum)
				at += entryBytes
			}
		}, "section table")
		t.Node(func() {
			for _, f := range []struct {
				n    int64
				text string
			}{
				{8, "offset of the section table"}, {8, "checksum of the section table"}, {8, "length of the file"},
				{4, "sections"}, {4, "format version"}, {4, "features"}, {12, "reserved"}, {8, "checksum of the 48 bytes before"}, {8, "magic"},
			} {
				t.Field(at, data[at:at+f.n], "%s", f.text)
				at += f.n
			}
		}, "footer")
	}, "segment %s, %d bytes", name, len(data))
	if err == nil {
		err = t.Err()
	}
	return err
}

// inspector prints the sections of one file.
type inspector struct {
	t    *binfmt.Tree
	r    *Reader
	open bool // r is whole
	base int64
	p    []byte // section
	aux  uint32 // of the section
	at   int
}

// section prints one section and returns its damage.
func (i *inspector) section(s section) error {
	err := i.r.checkSum(s)
	state := "checksum right"
	if err != nil {
		state = "CHECKSUM WRONG"
	}
	i.base, i.p, i.at, i.aux = s.offset, i.r.data[s.offset:s.offset+s.length], 0, s.aux
	i.t.Node(func() {
		kind := kindOf(s.tag)
		switch {
		case kind == nil:
			i.field(len(i.p), "a kind of section that this program does not know")
		case !i.open || err != nil:
			i.field(len(i.p), "not looked into")
		default:
			defer func() {
				if e := recover(); e != nil {
					i.t.Note("the rest cannot be printed: %v", e)
				}
			}()
			kind.inspect(i)
		}
	}, "section %v, %d bytes, %s", s.tag, s.length, state)
	return err
}

// field prints the next n bytes.
func (i *inspector) field(n int, format string, args ...any) {
	n = max(0, min(n, len(i.p)-i.at))
	i.t.Field(i.base+int64(i.at), i.p[i.at:i.at+n], format, args...)
	i.at += n
}

func (i *inspector) u16() uint16 { return binary.LittleEndian.Uint16(i.p[i.at:]) }
func (i *inspector) u32() uint32 { return binary.LittleEndian.Uint32(i.p[i.at:]) }
func (i *inspector) u64() uint64 { return binary.LittleEndian.Uint64(i.p[i.at:]) }
