package segment

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"svc/internal/binfmt"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// inspectItems is how many items of a list are printed.
const inspectItems = 40

// Inspect prints a segment file as an annotated tree. Of a damaged file it prints what it
// can and returns the damage, an *apierr.Corruption.
func Inspect(w io.Writer, fs vfs.FS, name string) error {
	file, err := mapped.Open(fs, name)
	if err != nil {
		return err
	}
	defer file.Close()
	data := file.Bytes()
	t := binfmt.New(w)
	footer, sections, err := parseContainer(name, data)
	t.Node(func() {
		if err != nil {
			t.Note("%v", err)
			return
		}
		t.Note("format version %d, features %d, %d sections", footer.version, footer.features, len(sections))
		r := &Reader{name: name, data: data, footer: footer, sections: sections}
		err = r.open()
		if err != nil {
			t.Note("%v", err)
		}
		i := inspector{t: t, r: r, open: err == nil}
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
		print, known := map[tag]func(){
			tagMeta: i.meta, tagDocIDs: i.docIDs, tagExternalIDs: i.externalIDs, tagIDHash: i.idHash,
			tagDocs: i.documents, tagDocIndex: i.docIndex, tagDicts: i.dictionaries,
			tagPostings: i.postings, tagTerms: i.terms, tagPrefixPosts: i.prefixPostings, tagPrefixes: i.prefixes,
			tagPresence: func() { i.presence(&i.r.presence, fieldName) }, tagDottedKeys: func() { i.presence(&i.r.dottedKeys, fieldName) },
			tagWordCounts: i.wordCounts, tagColumns: i.columns, tagColumnDir: i.columnDir, tagGeo: i.geo, tagShapes: i.shapes,
			tagVectors: i.vectors, tagVectorSets: i.vectorSets, tagCodes: i.codes, tagGraph: i.graph,
		}[s.tag]
		switch {
		case !known:
			i.field(len(i.p), "a kind of section that this program does not know")
		case !i.open || err != nil:
			i.field(len(i.p), "not looked into")
		default:
			defer func() {
				if e := recover(); e != nil {
					i.t.Note("the rest cannot be printed: %v", e)
				}
			}()
			print()
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

func (i *inspector) u32() uint32 { return binary.LittleEndian.Uint32(i.p[i.at:]) }
func (i *inspector) u64() uint64 { return binary.LittleEndian.Uint64(i.p[i.at:]) }

func (i *inspector) meta() {
	i.field(4, "%d rows", i.u32())
	i.field(4, "flags: prefix postings %v", i.u32()&1 != 0)
	i.field(8, "%d bytes of documents", i.u64())
	i.field(len(i.p), "reserved")
}

func (i *inspector) docIDs() {
	i.t.List(i.r.rows, inspectItems, func(row int) { i.field(4, "row %d: document %d", row, i.u32()) })
}

func (i *inspector) externalIDs() {
	i.t.List(i.r.rows+1, inspectItems, func(row int) { i.field(4, "ids of rows before %d end at %d", row, i.u32()) })
	i.at = 4 * (i.r.rows + 1)
	i.t.List(i.r.rows, inspectItems, func(row int) {
		id := i.r.ExternalID(Row(row))
		i.field(len(id), "row %d: %s", row, binfmt.Text(id, 60))
	})
}

func (i *inspector) idHash() {
	i.t.List(len(i.p)/4, inspectItems, func(slot int) {
		if v := i.u32(); v == 0 {
			i.field(4, "slot %d: empty", slot)
		} else {
			i.field(4, "slot %d: row %d", slot, v-1)
		}
	})
}

func (i *inspector) documents() {
	i.t.List(i.r.rows, inspectItems, func(row int) {
		p, err := i.r.docs.stored(uint32(row))
		if err != nil {
			i.t.Note("%v", err)
			return
		}
		doc, err := i.r.docs.append(nil, uint32(row))
		if err != nil {
			i.t.Note("%v", err)
			return
		}
		method := [...]string{"plain", "s2", "zstd", "unknown"}[p[0]&methodMask]
		i.field(len(p), "row %d: %s, dictionary %d, %d bytes: %s", row, method, p[0]>>methodBits, len(doc), binfmt.Text(doc, 40))
	})
}

func (i *inspector) docIndex() {
	i.t.List(i.r.rows+1, inspectItems, func(row int) {
		i.field(docOffsetBytes, "documents of rows before %d end at %d", row, uint64(i.u32())|uint64(i.p[i.at+4])<<32)
	})
}

func (i *inspector) dictionaries() {
	n := int(i.u32())
	i.field(4, "%d dictionaries", n)
	i.t.List(n, inspectItems, func(int) {
		size := int(i.u32())
		i.field(4, "%d bytes follow", size)
		i.field(size, "zstd frame of a dictionary of S2")
	})
}

func (i *inspector) terms() {
	i.field(fstHeaderBytes, "header: vellum format 1")
	i.field(len(i.p)-i.at-fstFooterBytes, "states")
	i.field(8, "%d words", i.u64())
	i.field(8, "root state at %d", i.u64())
	it := i.r.Terms(nil, nil, &edgeBudget{left: 1 << 20})
	for n := 0; it.Next(); n++ {
		if n == inspectItems {
			i.t.Note("… %d more", i.r.terms.words-n)
			break
		}
		i.t.Note("%q: posting at %d", it.Word(), it.walk.value)
	}
}

func (i *inspector) postings() {
	it := i.r.Terms(nil, nil, &edgeBudget{left: 1 << 20})
	for n := 0; it.Next(); n++ {
		if n == inspectItems {
			i.t.Note("… of %d more words", i.r.terms.words-n)
			break
		}
		i.posting(fmt.Sprintf("%q", it.Word()), it.walk.value)
	}
}

func (i *inspector) prefixPostings() {
	i.t.List(len(i.r.prefixes)/prefixEntryBytes, inspectItems, func(n int) {
		e := i.r.prefixes[n*prefixEntryBytes:]
		i.posting(fmt.Sprintf("prefix %q", keyPrefix(binary.LittleEndian.Uint64(e))), binary.LittleEndian.Uint64(e[8:]))
	})
}

func (i *inspector) prefixes() {
	i.t.List(len(i.p)/prefixEntryBytes, inspectItems, func(int) {
		i.field(8, "prefix %q", keyPrefix(i.u64()))
		i.field(8, "posting at %d", i.u64())
	})
}

// posting prints the posting at an offset of the section.
func (i *inspector) posting(name string, offset uint64) {
	p, ok := readPosting(i.p, offset)
	if !ok {
		i.t.Note("%s: no posting at %d", name, offset)
		return
	}
	i.t.Node(func() {
		i.at = int(offset)
		s := scan{p: i.p, at: i.at}
		h := s.uvarint()
		i.field(s.at-i.at, "%d fields, union %v", p.fields, h&1 != 0)
		if h&1 != 0 {
			i.rowsBefore("union", p.union, func(s *scan) { s.uvarint() })
		}
		if p.fields >= directoryFields {
			i.field(4*p.fields, "offsets of the fields")
		}
		i.t.List(p.fields, inspectItems, func(n int) {
			f, end := p.readField(i.at)
			if f.rows.count == 0 {
				i.t.Note("damaged")
				return
			}
			i.t.Node(func() {
				if _, h := peekUvarint(i.p, i.at); h&1 != 0 {
					s := scan{p: i.p, at: i.at}
					s.uvarint()
					i.field(s.at-i.at, "field %d, one row", f.id)
					i.field(len(f.rows.p), "row %d", f.rows.appendTo(nil)[0])
				} else {
					i.rowsBefore(fmt.Sprintf("field %d", f.id), f.rows, func(s *scan) {
						s.uvarint()
						s.uvarint()
						s.uvarint()
					})
				}
				if f.skips > 0 {
					i.field(f.skips, "skip table of %d blocks", f.skips/4+1)
				}
				rows := f.rows.appendTo(nil)
				positions := f.positions[f.skips:]
				at := 0
				i.t.List(len(rows), inspectItems, func(n int) {
					list, next := decodePositions(nil, positions, at)
					i.field(next-at, "row %d: positions %v", rows[n], list)
					at = next
				})
				i.at = end
			}, "field %d", f.id)
		})
	}, "%s", name)
}

func peekUvarint(p []byte, at int) (int, uint64) {
	s := scan{p: p, at: at}
	v := s.uvarint()
	return s.at - at, v
}

// rowsBefore prints the head that stands before a row list, and the list.
func (i *inspector) rowsBefore(name string, l rowList, head func(*scan)) {
	s := scan{p: i.p, at: i.at}
	head(&s)
	i.field(s.at-i.at, "%s: %d rows", name, l.count)
	n, _ := peekUvarint(i.p, i.at)
	i.field(n, "%d bytes, %s", len(l.p), codeName(l.code))
	if l.code == rowsRoaring {
		if pad := -i.at & (postingAlign - 1); pad > 0 {
			i.field(pad, "padding")
		}
	}
	i.rows(l)
}

func codeName(code int) string {
	if code == rowsRoaring {
		return "roaring"
	}
	return "deltas"
}

// rows prints a row list.
func (i *inspector) rows(l rowList) {
	rows := l.appendTo(nil)
	if len(rows) > inspectItems {
		i.field(len(l.p), "rows %d… of %d", rows[:inspectItems], len(rows))
		return
	}
	i.field(len(l.p), "rows %d", rows)
}

func fieldName(f FieldID) string { return fmt.Sprintf("field %d", f) }

// presence prints the row lists of a section; name says what one of them is of.
func (i *inspector) presence(p *presenceReader, name func(FieldID) string) {
	i.field(4, "%d row lists", p.fields)
	i.field(4, "reserved")
	i.t.List(p.fields, inspectItems, func(n int) {
		l, _ := p.rows(n)
		i.field(presenceEntryBytes, "%s: %d rows, %s", name(p.field(n)), l.count, codeName(l.code))
	})
	i.t.List(p.fields, inspectItems, func(n int) {
		if l, ok := p.rows(n); ok {
			i.at = int(binary.LittleEndian.Uint32(i.p[8+n*presenceEntryBytes+8:]))
			i.rows(l)
		}
	})
}

func (i *inspector) wordCounts() {
	n := int(i.u32())
	i.field(4, "%d fields", n)
	i.field(4, "reserved")
	i.t.List(n, inspectItems, func(int) {
		e := i.p[i.at:]
		field := FieldID(binary.LittleEndian.Uint16(e))
		kind := [...]string{"dense", "sparse"}[binary.LittleEndian.Uint16(e[2:])&1]
		i.field(wordCountEntryBytes, "field %d: %s, %d rows, at %d", field, kind, binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint64(e[8:]))
		c := i.r.wordCounts[field]
		all := c.all()
		i.t.Node(func() {
			i.t.List(len(all.rows), inspectItems, func(j int) { i.t.Note("row %d: %d words", all.rows[j], all.counts[j]) })
		}, "counts")
	})
}

func (i *inspector) columnDir() {
	i.field(4, "%d columns", i.u32())
	i.field(4, "reserved")
	i.t.List((len(i.p)-8)/columnEntryBytes, inspectItems, func(int) {
		e := i.p[i.at:]
		le := binary.LittleEndian
		i.field(columnEntryBytes, "field %d: at %d, %d bytes, checksum %016x", le.Uint32(e), le.Uint64(e[8:]), le.Uint64(e[16:]), le.Uint64(e[24:]))
	})
}

func (i *inspector) columns() {
	end := 0
	i.t.List(len(i.r.columnFields), inspectItems, func(n int) {
		f := i.r.columnFields[n]
		c := i.r.columns[f]
		i.at = (end + columnAlign - 1) / columnAlign * columnAlign
		begin := i.at
		end = begin + len(c.data)
		i.t.Node(func() { i.column(c, begin) }, "field %d", f)
	})
}

func (i *inspector) column(c *Column, begin int) {
	i.field(4, "%d rows", i.u32())
	i.field(4, "%d numbers", i.u32())
	i.field(4, "%d strings", i.u32())
	i.field(4*(columnParts+1), "offsets of the parts")
	i.field(columnHeaderBytes-12-4*(columnParts+1), "reserved")
	names := [...]string{"null", "empty", "numbers", "rows of numbers", "numbers of rows", "strings", "originals", "rows of strings", "strings of rows"}
	for part, name := range names {
		from := int(binary.LittleEndian.Uint32(c.data[12+4*part:]))
		to := int(binary.LittleEndian.Uint32(c.data[16+4*part:]))
		if from == to {
			continue
		}
		i.at = begin + from
		i.t.Node(func() {
			i.field(to-from, "%s", name)
			switch part {
			case partNull:
				i.t.Note("rows %d", c.null.appendTo(nil))
			case partEmpty:
				i.t.Note("rows %d", c.empty.appendTo(nil))
			case partNumbers:
				i.t.List(c.Numbers(), inspectItems, func(ord int) { i.t.Note("ordinal %d: %v", ord, c.Number(ord)) })
			case partStrings:
				i.t.List(c.Strings(), inspectItems, func(ord int) { i.t.Note("ordinal %d: %s", ord, binfmt.Text(c.String(ord), 40)) })
			case partOriginals:
				i.t.List(c.Strings(), inspectItems, func(ord int) { i.t.Note("ordinal %d: %s", ord, binfmt.Text(c.Original(ord), 40)) })
			case partNumberRows:
				i.inverse(&c.numberRows)
			case partStringRows:
				i.inverse(&c.stringRows)
			case partRowNumbers:
				i.forward(&c.rowNumbers, c.rows)
			case partRowStrings:
				i.forward(&c.rowStrings, c.rows)
			}
		}, "%s", name)
	}
}

func (i *inspector) inverse(v *inverse) {
	i.t.Note("rows of %d bytes, %d bitmaps", v.width, len(v.heavy)/16)
	i.t.List(v.ords, inspectItems, func(ord int) {
		from, to := v.span(ord, ord+1)
		rows := make([]uint32, 0, inspectItems)
		for n := from; n < to && len(rows) < inspectItems; n++ {
			rows = append(rows, readUint(v.light, v.width, n))
		}
		i.t.Note("ordinal %d: %d rows %d", ord, v.count(ord), rows)
	})
}

func (i *inspector) forward(f *forward, rows int) {
	kind := [...]string{"none", "one a row", "several a row", "few rows"}[f.kind]
	i.t.Note("%s, ordinals of %d bytes, %d rows have any", kind, f.width, f.have)
	var ords []uint32
	i.t.List(rows, inspectItems, func(row int) {
		if ords = f.append(ords[:0], Row(row)); len(ords) > 0 {
			i.t.Note("row %d: %d", row, ords)
		}
	})
}

func (i *inspector) geo() {
	n := int(i.u32())
	i.field(4, "%d points", n)
	i.field(4, "reserved")
	f64 := func() float64 { return math.Float64frombits(i.u64()) }
	i.t.List(n, inspectItems, func(int) { i.field(8, "latitude %v", f64()) })
	i.at = 8 + 8*n
	i.t.List(n, inspectItems, func(int) { i.field(8, "longitude %v", f64()) })
	i.at = 8 + 16*n
	i.t.List(n, inspectItems, func(int) { i.field(8, "cell %016x", i.u64()) })
	i.at = 8 + 24*n
	i.t.List(n, inspectItems, func(int) { i.field(4, "row %d", i.u32()) })
	i.at = 8 + 28*n
	i.t.List(n, inspectItems, func(int) { i.field(4, "cell of point %d", i.u32()) })
}

func (i *inspector) shapes() {
	s := i.r.shapes
	i.field(4, "%d parts of shapes", s.n)
	i.field(4, "of %d rows", s.rows)
	for n := range s.levels {
		l := &s.levels[n]
		end := i.at + len(l.boxes)
		i.t.List(l.n, inspectItems, func(j int) {
			b := l.box(j)
			i.field(boxBytes, "level %d: box from %v, %v to %v, %v", n, b.minLng, b.minLat, b.maxLng, b.maxLat)
		})
		i.at = end
	}
	end := i.at + len(s.offsets)
	i.t.List(s.n+1, inspectItems, func(int) { i.field(8, "offset %d", i.u64()) })
	i.at = end
	i.t.List(s.n, inspectItems, func(int) { i.field(4, "row %d", i.u32()) })
	i.at = end + len(s.rowOf)
	var d shapeDecoder
	kinds := [...]string{"", "point", "line", "polygon"}
	i.t.List(s.n, inspectItems, func(j int) {
		code := s.code(j)
		if p, ok := d.decode(code); ok {
			i.field(len(code), "%s %v", kinds[p.Kind], p.Rings)
		} else {
			i.field(len(code), "a part that cannot be read")
		}
	})
}
