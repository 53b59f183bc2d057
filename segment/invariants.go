package segment

import (
	"bytes"

	"svc/internal/invariant"
)

// What follows is called under invariant.Enabled alone.

// checkNext checks that an added document comes after the previous ones.
func (b *Builder) checkNext(id DocID) {
	if n := len(b.docIDs); n > 0 && b.docIDs[n-1] >= id {
		invariant.Fail("document %d is added behind document %d", id, b.docIDs[n-1])
	}
}

// checkWord checks that a word comes after the previous one, and that its fields and their rows ascend.
func checkWord(before, word []byte, fields []fieldRows) {
	if before != nil && bytes.Compare(before, word) >= 0 {
		invariant.Fail("word %q is written behind %q", word, before)
	}
	for i := range fields {
		if i > 0 && fields[i-1].id >= fields[i].id {
			invariant.Fail("word %q: field %d is written behind field %d", word, fields[i].id, fields[i-1].id)
		}
		rows := fields[i].rows
		for k := 1; k < len(rows); k++ {
			if rows[k-1] >= rows[k] {
				invariant.Fail("word %q: row %d of field %d is written behind row %d", word, rows[k], fields[i].id, rows[k-1])
			}
		}
	}
}

// checkOpen checks that the file is still open, because its data is in mapped memory.
func (r *Reader) checkOpen() {
	if r.closed.Load() {
		invariant.Fail("segment %s is read after it was closed", r.name)
	}
}

// checkDeleted checks that deleted rows are rows of the segment.
func (l Live) checkDeleted() {
	if l.Deleted != nil && !l.Deleted.IsEmpty() && int(l.Deleted.Maximum()) >= l.rows {
		invariant.Fail("segment %s has %d rows, and row %d of it is deleted", l.name, l.rows, l.Deleted.Maximum())
	}
}
