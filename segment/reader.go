package segment

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/invariant"
	"svc/internal/mapped"
	"svc/internal/vfs"
	"svc/segment/fst"
)

// Reader reads one mapped segment file. All methods are safe for concurrent use.
type Reader struct {
	name     string
	file     *mapped.File
	data     []byte
	footer   footer
	sections []section
	blocks   blocks
	meta     meta
	rows     int

	// Sections that Open cuts out of data. They are empty if the file lacks them.
	docIDs         []byte
	externalIDs    []byte
	idHash         []byte
	docs           documentReader
	concordances   concordanceReader
	terms          fst.FST
	bareTerms      fst.FST         // without the filter, whose pages are scattered: while files are crowded, each would be read alone
	checkedTerms   fst.FST         // also without the filter: verifies what it reads
	late           atomic.Bool     // some sections are verified by what reads them, see late.go
	rightPieces    []atomic.Uint64 // of the dictionary, while late: a bit for each piece that was found right
	termPieces     askedPieces
	postings       []byte
	analysis       []AnalysisPart
	prefixes       []byte
	prefixPostings []byte
	// Opened on first use, which verifies what it reads.
	neighbours     lazy[neighbourReader]
	presence       presenceReader
	dottedKeys     presenceReader
	wordCounts     lazy[map[FieldID]countReader]
	ownColumns     *columnTable                // of this file
	columns        atomic.Pointer[columnTable] // including those of files of columns
	beside         atomic.Pointer[[]*Reader]   // files of columns; nil: none
	host           host                        // of a file of columns
	geo            lazy[Geo]
	shapes         lazy[Shapes]
	elements       lazy[Elements]
	elementColumns *columnTable        // nil: none
	embedders      []*embedderSections // ascending
	ahead          ahead
	holds          func(at int64) bool // whether the page with a byte of the file is in memory
	closed         atomic.Bool         // under invariant.Enabled
}

// Open maps a file and verifies its footer, its table and the checksums of its small sections. Verify checks everything. A
// damaged file returns an *apierr.Corruption.
//
// Everything else is verified on first use. Methods without an error result then panic with an *apierr.Corruption, or with
// a fault if a page cannot be read. Call them inside mapped.Guard.
func Open(fs vfs.FS, name string) (*Reader, error) { return open(fs, name, false) }

// OpenQuick is Open that reads little of a large file. The dictionary and the DocIDs, if they are large, are verified by what
// reads them, until ReadAhead has verified them.
func OpenQuick(fs vfs.FS, name string) (*Reader, error) { return open(fs, name, true) }

func open(fs vfs.FS, name string, quick bool) (*Reader, error) {
	r, err := openFile(fs, name, quick)
	if err == nil && r.ofColumns() {
		return nil, errors.Join(r.damaged(tagHost, "the file has columns that stand beside a segment, and no segment"), r.Close())
	}
	return r, err
}

// openFile opens a file of either kind.
func openFile(fs vfs.FS, name string, quick bool) (*Reader, error) {
	file, err := mapped.Open(fs, name)
	if err != nil {
		return nil, err
	}
	r := &Reader{name: name, file: file, data: file.Bytes()}
	r.blocks.file, r.holds = file, file.Holds
	file.OnFault(r.place)
	if err := mapped.Guard(func() error { return r.open(quick) }); err != nil {
		_ = file.Close()
		return nil, err
	}
	return r, nil
}

// damaged makes the error of a section, without reporting it. Offset −1 stands for an unknown place.
func (r *Reader) damaged(t tag, format string, args ...any) error {
	return &apierr.Corruption{File: r.name, Section: t.String(), Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

// broken reports damage that was found after the segment was opened, and panics with it.
func (r *Reader) broken(t tag, format string, args ...any) {
	err := r.damaged(t, format, args...)
	r.blocks.tellDamage(mapped.Damage(err))
	panic(err)
}

// OnDamage sets the function that receives damage and unreadable pages found from now on, before the caller that met them.
// This includes column files added later.
func (r *Reader) OnDamage(tell func(*apierr.Corruption)) {
	r.blocks.tell.Store(&tell)
	for _, b := range r.columnFiles() {
		b.blocks.tell.Store(&tell)
	}
}

// place completes the description of a fault, and reports it.
func (r *Reader) place(fault *apierr.Corruption) {
	fault.Section = r.blocks.sectionAt(int(fault.Offset))
	r.blocks.tellDamage(fault)
}

// forget takes all that was found right for unknown, and for not opened.
func (r *Reader) forget() {
	r.ahead.stop()
	r.blocks.forget()
	r.wordCounts.forget()
	r.neighbours.forget()
	r.geo.forget()
	r.shapes.forget()
	for _, c := range r.ownColumns.of {
		c.forget()
	}
	r.elements.made.Load().forget()
	r.elements.forget()
	for _, e := range r.embedders {
		e.forget()
	}
}

// openStep is how much of a section that is read completely is requested at once, while the previous part is verified.
const openStep = 2 << 20

// checkSum verifies the checksum of a whole section. It returns a nil error, not a nil pointer in an error.
func (r *Reader) checkSum(s section) error {
	end := s.offset + s.length
	damage, _ := r.blocks.checkPieces(s, openStep, func(at, n int64) (after func(), _ error) {
		if at == s.offset {
			r.ask(at, n)
		}
		r.ask(at+n, min(end-at-n, openStep))
		return func() {}, nil
	})
	if damage != nil {
		return damage
	}
	return nil
}

// section returns the bytes of the section of a kind with aux 0, or nil.
func (r *Reader) section(t tag) []byte { return r.sectionOf(t, 0) }

// sectionOf returns the bytes of the first section of a kind and aux, or nil.
func (r *Reader) sectionOf(t tag, aux uint32) []byte {
	for _, s := range r.sections {
		if s.tag == t && s.aux == aux {
			return r.data[s.offset : s.offset+s.length : s.offset+s.length]
		}
	}
	return nil
}

// tailBytes is the size of the first read at the end of a file: most footers with their tables fit into it, and many block
// checksums.
const tailBytes = 64 << 10

// ask requests a range of the file. Without a request, the first access to a page that is not in memory makes the system
// read its surroundings, up to megabytes.
func (r *Reader) ask(at, n int64) {
	if r.file != nil && n > 0 && len(r.data) > tailBytes {
		r.file.Advise(max(at, 0), n, mapped.WillNeed)
	}
}

// open checks footer, table and small sections, requesting all of them from the disk before it reads the
// first. Then it opens each kind, after the kind that has the number of rows. If quick is true, it leaves late sections unchecked.
func (r *Reader) open(quick bool) error {
	var err error
	r.ask(0, headerBytes)
	r.ask(int64(len(r.data)-tailBytes), tailBytes)
	if r.footer, r.sections, err = parseContainer(r.name, r.data); err != nil {
		return err
	}
	if err = r.blocks.open(r.name, r.data, r.footer, r.sections); err != nil {
		return err
	}
	r.scatter()
	if quick {
		r.late.Store(r.openLate())
	}
	first := slices.DeleteFunc(slices.Clone(r.sections), func(s section) bool {
		k := kindOf(s.tag)
		return k == nil || !k.small || k.late && r.late.Load()
	})
	for _, s := range first {
		r.ask(s.offset, min(s.length, openStep))
	}
	for _, s := range first {
		if err := r.checkSum(s); err != nil {
			return err
		}
	}
	counts := (*Reader).openMeta // what all others are measured by
	if r.ofColumns() {
		counts = (*Reader).openHost
	}
	if err := counts(r); err != nil {
		return err
	}
	for i := range sectionKinds {
		if k := &sectionKinds[i]; k.open != nil && r.mayHave(k) && k.tag != tagMeta && k.tag != tagHost {
			if err := k.open(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close unmaps the file and its column files. The caller must not use anything that the Reader returned afterwards.
func (r *Reader) Close() error {
	if invariant.Enabled {
		r.closed.Store(true)
	}
	r.ahead.stop()
	aheadLeft.Add(r.ahead.taken)
	r.ahead.taken = 0
	var errs []error
	for _, b := range r.columnFiles() {
		errs = append(errs, b.Close())
	}
	return errors.Join(append(errs, r.file.Close())...)
}

// Info describes the segment. Bytes include its column files.
func (r *Reader) Info() Info {
	info := Info{Rows: r.rows, Bytes: int64(len(r.data)), DocumentBytes: r.meta.documentBytes}
	for _, b := range r.columnFiles() {
		info.Bytes += int64(len(b.data))
	}
	return info
}

// AddSectionBytes adds the sizes of the sections to sizes, by meaning; unknown kinds count under their tag.
func (r *Reader) AddSectionBytes(sizes map[string]int64) {
	for _, b := range r.columnFiles() {
		b.AddSectionBytes(sizes)
	}
	for _, s := range r.sections {
		name := s.tag.String()
		if k := kindOf(s.tag); k != nil {
			name = k.meaning
		}
		sizes[name] += int64(s.length)
	}
}

// Rows returns the number of rows.
func (r *Reader) Rows() int { return r.rows }

// HasPrefixes reports whether the segment was written with short-prefix postings.
func (r *Reader) HasPrefixes() bool { return r.meta.prefixes }

// Live is a segment as a view sees it: its reader, and the rows that are deleted (nil when none).
type Live struct {
	*Reader
	Deleted *roaring.Bitmap
}

// LiveRows returns the rows that are not deleted, as a bitmap of the caller's own.
func (l Live) LiveRows() *roaring.Bitmap {
	if invariant.Enabled {
		l.checkDeleted()
	}
	b := roaring.New()
	b.AddRange(0, uint64(l.rows))
	if l.Deleted != nil {
		b.AndNot(l.Deleted)
	}
	return b
}
