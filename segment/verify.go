package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cespare/xxhash/v2"
	"github.com/golang/geo/s2"

	"svc/internal/apierr"
	"svc/internal/mapped"
)

// Verify reads the whole file and checks it: every checksum, every number
// against what it counts, both ways of everything that is kept both ways. After
// it, no call on the Reader meets damage. The error is an *apierr.Corruption.
func (r *Reader) Verify() error {
	for _, check := range []func() error{
		r.verifyContainer, r.verifyIDs, r.verifyDocuments, r.verifyWords, r.verifyPrefixes,
		r.verifyPresence, r.verifyWordCounts, r.verifyColumns, r.verifyGeo, r.verifyShapes, r.verifyVectors,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// CheckSums checks the checksum of every section: whether the file has the bytes that were written. Whoever makes other files
// of its content asks first, so that damage does not get a checksum of its own. The error is an *apierr.Corruption, or the context's.
func (r *Reader) CheckSums(ctx context.Context) error {
	for _, s := range r.sections {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.checkSum(s); err != nil {
			return err
		}
	}
	return nil
}

// inspectBytes is how much Inspect reads at once.
const inspectBytes = 1 << 20

// Inspect is CheckSums beside other work: wait is called ahead of each piece that is read, and the pieces
// are not kept in memory. Its error ends the inspection.
func (r *Reader) Inspect(wait func(bytes int) error) error {
	digest := xxhash.New()
	for _, s := range r.sections {
		digest.Reset()
		for at := int64(0); at < s.length; at += inspectBytes {
			n := min(inspectBytes, s.length-at)
			if err := wait(int(n)); err != nil {
				return err
			}
			_, _ = digest.Write(r.data[s.offset+at : s.offset+at+n])
			r.file.Advise(s.offset+at, n, mapped.DontNeed)
		}
		if got := digest.Sum64(); got != s.checksum {
			return r.wrongSum(s, got)
		}
	}
	return nil
}

// verifyContainer checks the checksums, and that nothing stands between sections.
func (r *Reader) verifyContainer() error {
	end := int64(len(fileMagic))
	seen := map[uint64]bool{}
	gap := func(to int64) error {
		for i, b := range r.data[end:to] {
			if b != 0 {
				return &apierr.Corruption{File: r.name, Section: "padding", Offset: end + int64(i), Reason: fmt.Sprintf("0 expected, %d found", b)}
			}
		}
		return nil
	}
	for _, s := range r.sections {
		if err := gap(s.offset); err != nil {
			return err
		}
		end = s.offset + s.length
		if err := r.checkSum(s); err != nil {
			return err
		}
		key := uint64(s.tag)<<32 | uint64(s.aux)
		if seen[key] {
			return r.damaged(s.tag, "it is there twice")
		}
		seen[key] = true
	}
	return gap(r.footer.tableOffset)
}

func (r *Reader) verifyIDs() error {
	for row := 1; row < r.rows; row++ {
		if a, b := r.DocID(Row(row-1)), r.DocID(Row(row)); a >= b {
			return r.damaged(tagDocIDs, "row %d has id %d after %d", row, b, a)
		}
	}
	text := uint64(len(r.externalIDs) - 4*(r.rows+1))
	for row := range r.rows {
		from, to := binary.LittleEndian.Uint32(r.externalIDs[4*row:]), binary.LittleEndian.Uint32(r.externalIDs[4*row+4:])
		if from > to || uint64(to) > text {
			return r.damaged(tagExternalIDs, "the id of row %d is not inside", row)
		}
		if got, ok := r.Lookup(r.ExternalID(Row(row))); !ok || got != Row(row) {
			return r.damaged(tagIDHash, "the id of row %d leads to row %d (%v)", row, got, ok)
		}
	}
	if first, end := binary.LittleEndian.Uint32(r.externalIDs), binary.LittleEndian.Uint32(r.externalIDs[4*r.rows:]); first != 0 || uint64(end) != text {
		return r.damaged(tagExternalIDs, "%d bytes of ids, counted are %d to %d", text, first, end)
	}
	used := 0
	for i := 0; i < len(r.idHash); i += 4 {
		if v := binary.LittleEndian.Uint32(r.idHash[i:]); v > uint32(r.rows) {
			return r.damaged(tagIDHash, "slot %d has row %d of %d", i/4, v-1, r.rows)
		} else if v > 0 {
			used++
		}
	}
	if used != r.rows {
		return r.damaged(tagIDHash, "%d slots are used for %d rows", used, r.rows)
	}
	return nil
}

func (r *Reader) verifyDocuments() error {
	if _, err := r.docs.dictionaries(); err != nil {
		return err
	}
	var doc []byte
	sum, stored := int64(0), 0
	for row := range r.rows {
		p, err := r.docs.stored(uint32(row))
		if err != nil {
			return err
		}
		stored += len(p)
		if doc, err = r.docs.append(doc[:0], uint32(row)); err != nil {
			return err
		}
		sum += int64(len(doc))
	}
	if stored != len(r.docs.data) || sum != r.meta.documentBytes {
		return r.damaged(tagDocs, "%d bytes of %d hold %d bytes of documents, %d expected", stored, len(r.docs.data), sum, r.meta.documentBytes)
	}
	return nil
}

// edgeBudget is an automaton that accepts everything until more transitions
// were tried than a dictionary with these words can have: in a sound one, every
// transition leads to a word. It keeps hostile bytes from being walked for ever.
type edgeBudget struct{ left int }

func (e *edgeBudget) Start() int                   { return 0 }
func (e *edgeBudget) IsMatch(int) bool             { return true }
func (e *edgeBudget) CanMatch(int) bool            { return e.left > 0 }
func (e *edgeBudget) WillAlwaysMatch(int) bool     { return false }
func (e *edgeBudget) Accept(state int, _ byte) int { e.left--; return state }

func (r *Reader) verifyWords() error {
	budget := &edgeBudget{left: maxWordBytes + 1}
	it := r.Terms(nil, nil, budget)
	words, end := 0, 0
	var last []byte
	for it.Next() {
		if words > 0 && bytes.Compare(last, it.Word()) >= 0 || len(it.Word()) > maxWordBytes || len(it.Word()) == 0 {
			return r.damaged(tagTerms, "%q follows %q", it.Word(), last)
		}
		last = append(last[:0], it.Word()...)
		budget.left = min(budget.left+len(last), math.MaxInt32)
		if it.walk.value != uint64(end) {
			return r.damaged(tagTerms, "%q leads to offset %d, but the posting before ends at %d", last, it.walk.value, end)
		}
		p, ok := readPosting(r.postings, it.walk.value)
		if !ok {
			return r.damaged(tagPostings, "no posting of %q at offset %d", last, it.walk.value)
		}
		var err error
		if end, err = r.verifyPosting(tagPostings, p); err != nil {
			return fmt.Errorf("posting of %q: %w", last, err)
		}
		words++
	}
	if err := it.Err(); err != nil {
		return err
	}
	if budget.left <= 0 {
		return r.damaged(tagTerms, "it has transitions that lead to no word")
	}
	if words != r.terms.words || end != len(r.postings) {
		return r.damaged(tagTerms, "%d words of %d, whose postings end at %d of %d", words, r.terms.words, end, len(r.postings))
	}
	return nil
}

// verifyRows checks a row list and returns its rows.
func (r *Reader) verifyRows(t tag, l rowList) ([]uint32, error) {
	rows := l.appendTo(nil)
	if len(rows) != l.count || len(rows) == 0 {
		return nil, r.damaged(t, "%d rows where %d are counted", len(rows), l.count)
	}
	if l.code == rowsRoaring && (!validRoaring(l.p) || !slices.Equal(l.bitmap().ToArray(), rows)) {
		return nil, r.damaged(t, "%d bytes are no Roaring bitmap of %d rows", len(l.p), len(rows))
	}
	for i := 1; i < len(rows); i++ {
		if rows[i-1] >= rows[i] {
			return nil, r.damaged(t, "row %d follows row %d", rows[i], rows[i-1])
		}
	}
	if last := rows[len(rows)-1]; int(last) >= r.rows {
		return nil, r.damaged(t, "row %d of %d", last, r.rows)
	}
	return rows, nil
}

// verifyPosting checks a posting and returns where it ends.
func (r *Reader) verifyPosting(t tag, p Posting) (end int, err error) {
	at := p.first
	if p.fields >= directoryFields {
		at += 4 * p.fields
	}
	if p.fields == 0 {
		return 0, r.damaged(t, "a posting without fields")
	}
	union := roaring.New()
	last := -1
	for i := range p.fields {
		if p.fields >= directoryFields && int(binary.LittleEndian.Uint32(p.section[p.first+4*i:])) != at-p.start {
			return 0, r.damaged(t, "the directory of the posting at %d is wrong for field %d", p.start, i)
		}
		var f FieldPosting
		f, at = p.readField(at)
		if int(f.id) <= last {
			return 0, r.damaged(t, "field %d follows field %d", f.id, last)
		}
		last = int(f.id)
		rows, err := r.verifyRows(t, f.rows)
		if err != nil {
			return 0, err
		}
		positions := f.positions[f.skips:]
		if !validPositions(positions, len(rows)) || !bytes.Equal(f.positions[:f.skips], appendSkips(nil, positions, len(rows))) {
			return 0, r.damaged(t, "the positions in field %d are not those of %d rows", f.id, len(rows))
		}
		union.AddMany(rows)
	}
	if p.union.count > 0 {
		rows, err := r.verifyRows(t, p.union)
		if err != nil {
			return 0, err
		}
		if !slices.Equal(rows, union.ToArray()) {
			return 0, r.damaged(t, "the union of the rows is wrong")
		}
	}
	return at, nil
}

func (r *Reader) verifyPrefixes() error {
	end, last := 0, uint64(0)
	for i := range len(r.prefixes) / prefixEntryBytes {
		e := r.prefixes[i*prefixEntryBytes:]
		key, offset := binary.LittleEndian.Uint64(e), binary.LittleEndian.Uint64(e[8:])
		if key <= last || key != prefixKey(keyPrefix(key)) || len(keyPrefix(key)) == 0 || offset != uint64(end) {
			return r.damaged(tagPrefixes, "%q at offset %d follows %q, which ends at %d", keyPrefix(key), offset, keyPrefix(last), end)
		}
		last = key
		p, ok := readPosting(r.prefixPostings, offset)
		if !ok {
			return r.damaged(tagPrefixPosts, "no posting of %q at offset %d", keyPrefix(key), offset)
		}
		var err error
		if end, err = r.verifyPosting(tagPrefixPosts, p); err != nil {
			return fmt.Errorf("posting of prefix %q: %w", keyPrefix(key), err)
		}
		var u union
		if err := r.unionOf(keyPrefix(key), &u); err != nil {
			return err
		}
		want := u.take()
		if len(want) != p.fields {
			return r.damaged(tagPrefixPosts, "%q has %d fields, %d expected", keyPrefix(key), p.fields, len(want))
		}
		for i, w := range want {
			f := p.Field(i)
			if f.id != w.id || !slices.Equal(f.rows.appendTo(nil), w.rows) || !bytes.Equal(f.positions[f.skips:], w.positions) {
				return r.damaged(tagPrefixPosts, "%q is not the union of its words in field %d", keyPrefix(key), f.id)
			}
		}
	}
	if end != len(r.prefixPostings) {
		return r.damaged(tagPrefixPosts, "it goes on after %d of %d bytes", end, len(r.prefixPostings))
	}
	return nil
}

func (r *Reader) verifyPresence() error {
	for _, p := range []*presenceReader{&r.presence, &r.dottedKeys} {
		for i := range p.fields {
			if i > 0 && p.field(i-1) >= p.field(i) {
				return r.damaged(p.tag, "field %d follows field %d", p.field(i), p.field(i-1))
			}
			l, ok := p.rows(i)
			if !ok {
				return r.damaged(p.tag, "the rows of field %d are not inside", p.field(i))
			}
			if _, err := r.verifyRows(p.tag, l); err != nil {
				return fmt.Errorf("field %d: %w", p.field(i), err)
			}
		}
	}
	for i := range r.dottedKeys.fields {
		f := r.dottedKeys.field(i)
		rows := r.DottedKey(f)
		if n, in := rows.GetCardinality(), rows.AndCardinality(r.Present(f)); in != n {
			return r.damaged(tagDottedKeys, "field %d is a key of %d rows, of which %d have it", f, n, in)
		}
	}
	return nil
}

func (r *Reader) verifyWordCounts() error {
	for f, c := range r.wordCounts {
		last := int64(-1)
		for i, n := range c.counts {
			row := int64(i)
			if c.rows != nil {
				row = int64(binary.LittleEndian.Uint32(c.rows[4*i:]))
			}
			if n > maxWordCount || n == 0 && c.rows != nil || row <= last || row >= int64(r.rows) {
				return r.damaged(tagWordCounts, "field %d counts %d words in row %d", f, n, row)
			}
			last = row
		}
	}
	return nil
}

// validRoaring reports whether p is one sound bitmap in Roaring format.
func validRoaring(p []byte) bool {
	b := roaring.New()
	n, err := b.FromUnsafeBytes(p)
	return err == nil && int(n) == len(p) && b.Validate() == nil
}

func (r *Reader) verifyGeo() error {
	g := r.geo
	if g == nil {
		return nil
	}
	for i := range g.n {
		lat, lng := g.at(i)
		if row := g.row(i); int(row) >= r.rows || i > 0 && g.row(i-1) >= row || math.IsNaN(lat) || math.IsNaN(lng) {
			return r.damaged(tagGeo, "row %d is at %v, %v", row, lat, lng)
		}
	}
	used := make([]bool, g.n)
	last := uint64(0)
	for i := range g.n {
		cell, at := binary.LittleEndian.Uint64(g.cells[8*i:]), binary.LittleEndian.Uint32(g.byCell[4*i:])
		if int(at) >= g.n || used[at] || cell < last || s2.CellID(cell) != cellOf(g.at(int(at))) {
			return r.damaged(tagGeo, "cell %x stands for point %d", cell, at)
		}
		used[at], last = true, cell
	}
	return nil
}
