package synonym

import (
	"errors"
	"fmt"
	"io"

	"svc/internal/binfmt"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// VerifyFile reads all of a file of settings and reports damage.
func VerifyFile(fsys vfs.FS, name string) error {
	f, err := Open(fsys, name)
	if err != nil {
		return named(name, err)
	}
	defer f.Close()
	return f.Check()
}

// named adds the file name to the error of a file of another version. Errors of other files already have it.
func named(name string, err error) error {
	if errors.As(err, new(*UnknownVersion)) {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	return err
}

// Summarize prints the content of a file of settings. If the file is damaged, it prints what is readable and returns the damage.
func Summarize(w io.Writer, fsys vfs.FS, name string) error {
	f, err := Open(fsys, name)
	if err != nil {
		return named(name, err)
	}
	defer f.Close()
	fmt.Fprintf(w, "%s\n  file      %d bytes\n  format    settings, version %d\n", name, f.m.Len(), f.head.version)
	if t, err := f.Table(); err == nil {
		fmt.Fprintf(w, "  synonyms  %d\n", t.Len())
	}
	fmt.Fprintln(w, "parts")
	for i, place := range f.head.places {
		state := ""
		if _, err := f.copied(i); err != nil {
			state = "  DAMAGED"
		}
		fmt.Fprintf(w, "  %12d bytes  %s%s\n", place.length, partNames[i], state)
	}
	return f.Check()
}

// Inspect prints the meaning of every byte of a file of settings, and returns damage.
func Inspect(w io.Writer, fsys vfs.FS, name string) error {
	f, err := Open(fsys, name)
	if err != nil {
		return named(name, err)
	}
	defer f.Close()
	t := binfmt.New(w)
	err = mapped.Guard(func() error {
		f.print(t)
		return t.Err()
	})
	return errors.Join(err, f.Check())
}

func (f *File) print(t *binfmt.Tree) {
	b := f.m.Bytes()
	t.Node(func() {
		at := int64(0)
		field := func(n int64, format string, args ...any) {
			t.Field(at, b[at:at+n], format, args...)
			at += n
		}
		field(8, "magic")
		field(4, "format version %d", f.head.version)
		field(4, "reserved")
		field(8, "stamp of the table")
		for i, place := range f.head.places {
			field(8, "length of the %s: %d", partNames[i], place.length)
		}
		for _, name := range partNames {
			field(8, "checksum of the %s", name)
		}
		field(8, "checksum of the bytes before")
		for i, place := range f.head.places[:tablePart] {
			field(place.length, "%s", partNames[i])
		}
		table, err := f.Table()
		if err != nil || table == nil || table.check() != nil {
			field(f.head.places[tablePart].length, "%s", partNames[tablePart])
			return
		}
		t.Node(func() {
			field(4, "%d entries", table.Len())
			field(int64(len(table.ends)), "end of each entry")
			t.List(table.Len(), printedEntries, func(i int) {
				entry := table.entry(i)
				d := decoder{b: entry}
				key := d.string()
				field(int64(len(entry)), "%q: %q", key, d.values(printedValues))
			})
		}, "%s", partNames[tablePart])
	}, "settings %s, %d bytes", f.Name(), len(b))
}

// Inspect prints at most so many entries of a table, and values of an entry.
const (
	printedEntries = 200
	printedValues  = 10
)
