package segment

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"svc/internal/mapped"
	"svc/internal/vfs"
)

// Summarize prints the contents of a segment file or a file of columns, and the size of each kind of section. If the file is damaged,
// it prints what is readable and returns an *apierr.Corruption.
func Summarize(w io.Writer, fs vfs.FS, name string) error {
	file, err := mapped.Open(fs, name)
	if err != nil {
		return err
	}
	defer file.Close()
	return mapped.Guard(func() error { return summarize(w, name, file.Bytes()) })
}

// summarize prints the summary of a file: counts, and the size of each kind of section. For a damaged file it prints what it can read
// and returns the first damage.
func summarize(w io.Writer, name string, data []byte) error {
	fmt.Fprintf(w, "%s\n", name)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	line("file", "%d bytes", len(data))
	footer, sections, err := parseContainer(name, data)
	if err != nil {
		_ = t.Flush() // the damage is the error to return
		return err
	}
	line("format", "version %d", footer.version)
	r := &Reader{name: name, data: data}
	if err = r.open(false); err != nil {
		line("contents", "cannot be read: %v", err)
	} else {
		err = r.summary(line)
	}
	if e := t.Flush(); err == nil {
		err = e
	}
	r.blocks.sound.Store(true) // the loop below verifies the checksum of each section
	fmt.Fprintln(w, "sections")
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, k := range append(sectionKinds[:len(sectionKinds):len(sectionKinds)], unknownKinds(sections)...) {
		n, bytes, bad := 0, int64(0), 0
		for _, s := range sections {
			if s.tag != k.tag {
				continue
			}
			n++
			bytes += s.length
			if e := r.checkSum(s); e != nil {
				bad++
				if err == nil {
					err = e
				}
			}
		}
		if n == 0 {
			continue
		}
		fmt.Fprintf(t, "  %v\t%d bytes\t%.1f%%\t", k.tag, bytes, 100*float64(bytes)/float64(len(data)))
		if fmt.Fprintf(t, " %s", k.meaning); n > 1 {
			fmt.Fprintf(t, ", %d sections", n)
		}
		if bad > 0 {
			fmt.Fprintf(t, ", CHECKSUM WRONG of %d", bad)
		}
		fmt.Fprintln(t)
	}
	if e := t.Flush(); err == nil {
		err = e
	}
	return err
}

// unknownKinds returns the kinds of sections that this version does not know.
func unknownKinds(sections []section) (kinds []sectionKind) {
	for _, s := range sections {
		if kindOf(s.tag) == nil && !slices.ContainsFunc(kinds, func(k sectionKind) bool { return k.tag == s.tag }) {
			kinds = append(kinds, sectionKind{tag: s.tag, meaning: "unknown to this version"})
		}
	}
	return kinds
}

// summary prints a line for each count of the contents. It fails if damage makes them unreadable.
func (r *Reader) summary(line func(what, format string, args ...any)) error {
	return mapped.Guard(func() error {
		if r.ofColumns() {
			line("columns", "%d fields, beside a segment of %d documents", len(r.ColumnFields()), r.rows)
			return nil
		}
		line("documents", "%d, %d bytes as JSON", r.rows, r.meta.documentBytes)
		if r.rows > 0 {
			line("DocIDs", "%d to %d", r.DocID(0), r.DocID(Row(r.rows-1)))
		}
		line("words", "%d", r.Words())
		if !r.meta.prefixes {
			line("prefixes", "none")
		}
		line("columns", "%d fields", len(r.ColumnFields()))
		for _, v := range r.allVectors() {
			form := "numbers"
			switch {
			case v.shape.Binary:
				form = "bits"
			case v.shape.Half:
				form = "16-bit numbers"
			}
			graph := ""
			if v.Linked() {
				graph = ", with a graph"
			}
			line(fmt.Sprintf("embedder %d", v.shape.ID), "%d vectors of %d %s, of %d documents%s", v.vectors, v.shape.Dimensions, form, v.Rows().GetCardinality(), graph)
		}
		return nil
	})
}
