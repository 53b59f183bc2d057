package segment

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment/rowlist"
)

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
		rows, err := r.verifyRows(t, f.rows, r.rows)
		if err != nil {
			return 0, err
		}
		positions := f.positions[f.skips:]
		if !validPositions(positions, len(rows)) || !bytes.Equal(f.positions[:f.skips], appendSkips(nil, positions, len(rows))) {
			return 0, r.damaged(t, "the positions in field %d are not those of %d rows", f.id, len(rows))
		}
		union.AddMany(rows)
	}
	if p.union.Count > 0 {
		rows, err := r.verifyRows(t, p.union, r.rows)
		if err != nil {
			return 0, err
		}
		if !slices.Equal(rows, union.ToArray()) {
			return 0, r.damaged(t, "the union of the rows is wrong")
		}
	}
	return at, nil
}

// verifyRows checks a row list and returns its rows.
func (r *Reader) verifyRows(t tag, l rowlist.List, n int) ([]uint32, error) {
	rows := l.AppendTo(nil)
	if len(rows) != l.Count || len(rows) == 0 {
		return nil, r.damaged(t, "%d rows where %d are counted", len(rows), l.Count)
	}
	if l.Code == rowlist.Roaring && (!validRoaring(l.P) || !slices.Equal(l.Bitmap().ToArray(), rows)) {
		return nil, r.damaged(t, "%d bytes are no Roaring bitmap of %d rows", len(l.P), len(rows))
	}
	for i := 1; i < len(rows); i++ {
		if rows[i-1] >= rows[i] {
			return nil, r.damaged(t, "row %d follows row %d", rows[i], rows[i-1])
		}
	}
	if last := rows[len(rows)-1]; int(last) >= n {
		return nil, r.damaged(t, "row %d of %d", last, n)
	}
	return rows, nil
}

// validRoaring reports whether p is exactly one valid bitmap in Roaring format.
func validRoaring(p []byte) bool {
	b := roaring.New()
	n, err := b.FromUnsafeBytes(p)
	return err == nil && int(n) == len(p) && b.Validate() == nil
}
