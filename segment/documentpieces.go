package segment

import (
	"encoding/binary"
	"sync"

	"svc/internal/jsontext"
)

// A large document is cut into pieces that are compressed by themselves, and begins with a table of its members. A reader that needs
// some members reads only their pieces.
//
//	u8 method
//	uvarint length of the table
//	uvarint length of the document
//	uvarint number of pieces, for each uvarint length of its text, uvarint length of what is stored: a zstd frame, or the
//	    text itself when both are the same
//	uvarint number of members at the first level (0: not known), for each uvarint length of the key as it is written,
//	    with its quotes; the key; uvarint distance from the end of the member before (at first: from the start of the
//	    document), uvarint length from the key's quote to the end of the value
//	the pieces
const (
	// A member from pieceMember bytes on begins a piece, and pieces end after pieceBytes.
	pieceMember = 4 << 10
	pieceBytes  = 64 << 10

	// smallPieceBytes is where a piece of small members ends.
	smallPieceBytes = 16 << 10

	// maxPieceMembers: with more members the table would be large compared with the document, so there is none.
	maxPieceMembers = 1 << 10
)

// member is where a member of the first level is in the text of a document.
type member struct {
	key        []byte // as it is written, with its quotes
	start, end int    // from the key's quote to the end of the value
}

// membersOf finds the members of a compact JSON object. It returns nil for other values, or if there are too many members.
func membersOf(doc []byte) []member {
	if len(doc) < 2 || doc[0] != '{' || doc[len(doc)-1] != '}' {
		return nil
	}
	var all []member
	for at := 1; at < len(doc)-1; at++ {
		m := member{start: at}
		end := jsontext.StringEnd(doc, at)
		if end < 0 || end >= len(doc) || doc[end] != ':' || len(all) == maxPieceMembers {
			return nil
		}
		m.key = doc[at:end]
		depth := 0
		for at = end + 1; ; {
			if at >= len(doc) {
				return nil
			}
			switch doc[at] {
			case '"':
				if at = jsontext.StringEnd(doc, at); at < 0 {
					return nil
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			case ',':
				if depth == 0 {
					depth = -1
				}
			}
			if depth < 0 {
				break
			}
			at++
		}
		m.end = at
		all = append(all, m)
		if doc[at] != ',' && at != len(doc)-1 {
			return nil
		}
	}
	return all
}

// cuts returns where the pieces of a document end.
func cuts(doc []byte, members []member) []int {
	var ends []int
	last := 0
	cut := func(at int) {
		for at-last > pieceBytes {
			last += pieceBytes
			ends = append(ends, last)
		}
		if at > last {
			ends = append(ends, at)
			last = at
		}
	}
	for _, m := range members {
		if m.end-m.start >= pieceMember {
			cut(m.start)
			cut(m.end)
		} else if m.end-last >= smallPieceBytes {
			cut(m.end)
		}
	}
	cut(len(doc))
	return ends
}

// pieceChunk is the size in bytes of the chunks that hold compressed pieces. They are chunks because a document may be as large as a
// payload.
const pieceChunk = 256 << 10

// compressPieces returns the stored form of a large document, without the first byte: the table with its length, the pieces, any
// number of them in each slice, and the total length.
func compressPieces(doc []byte) (table []byte, pieces [][]byte, size int) {
	members := membersOf(doc)
	last := 0
	table, _ = eachPiece(doc, members, func(frame []byte, end int) error {
		n := len(pieces) - 1
		if n < 0 || cap(pieces[n])-len(pieces[n]) < len(frame) {
			// Estimated size of the rest, at the ratio so far.
			left := (size + len(frame)) * (len(doc) - last) / max(end, 1)
			pieces = append(pieces, make([]byte, 0, max(len(frame), min(pieceChunk, left))))
			n++
		}
		pieces[n] = append(pieces[n], frame...)
		size += len(frame)
		last = end
		return nil
	})
	table = appendMembers(table, members)
	table = append(binary.AppendUvarint(nil, uint64(len(table))), table...)
	return table, pieces, size + len(table)
}

// eachPiece calls keep for each piece in stored form, which is valid during the call, and with the end of the piece in doc. It
// returns the table up to the lengths of the last piece.
func eachPiece(doc []byte, members []member, keep func(frame []byte, end int) error) (table []byte, err error) {
	ends := cuts(doc, members)
	table = binary.AppendUvarint(nil, uint64(len(doc)))
	table = binary.AppendUvarint(table, uint64(len(ends)))
	var frame []byte
	last := 0
	for _, end := range ends {
		text := doc[last:end]
		if frame = zstdCoders().EncodeAll(text, frame[:0]); len(frame) >= len(text) {
			frame = append(frame[:0], text...)
		}
		table = binary.AppendUvarint(table, uint64(len(text)))
		table = binary.AppendUvarint(table, uint64(len(frame)))
		if err := keep(frame, end); err != nil {
			return nil, err
		}
		last = end
	}
	return table, nil
}

// appendMembers appends the table of members.
func appendMembers(table []byte, members []member) []byte {
	table = binary.AppendUvarint(table, uint64(len(members)))
	last := 0
	for _, m := range members {
		table = binary.AppendUvarint(table, uint64(len(m.key)))
		table = append(table, m.key...)
		table = binary.AppendUvarint(table, uint64(m.start-last))
		table = binary.AppendUvarint(table, uint64(m.end-m.start))
		last = m.end
	}
	return table
}

// pieces reads a document that was stored in pieces.
type pieces struct {
	docs   *documentReader
	row    uint32
	table  scan
	length int    // of the document
	sizes  []byte // of the pieces, in the table
	count  int
	data   []byte // the pieces, from here on

	at, size int    // of the text of the next piece
	stored   []byte // that piece
	text     []byte // of the piece before, which is the last one that was decoded
	from     int    // where in the document that begins

	brief func(key []byte) bool // members whose strings may be cut; nil: none
	tails []Tail                // what was cut off
}

// pieceTexts are buffers for one piece at a time.
var pieceTexts = sync.Pool{New: func() any { return new([]byte) }}

// keepPieceText gives one back, unless a document that an older svc has stored whole has blown it up.
func keepPieceText(text *[]byte) {
	if cap(*text) <= 2*pieceBytes {
		pieceTexts.Put(text)
	}
}

// open reads the table of p, the stored document.
func (d *pieces) open(docs *documentReader, p []byte, row uint32) error {
	*d = pieces{docs: docs, row: row}
	head := p[1:min(len(p), 1+binary.MaxVarintLen64)]
	if err := docs.blocks.verify(head); err != nil {
		return err
	}
	size, n := binary.Uvarint(head)
	if n <= 0 || size > uint64(len(p)-1-n) {
		return docs.damaged(tagDocs, "row %d: its table of pieces is not inside", row)
	}
	table := p[1+n : 1+n+int(size)]
	if err := docs.blocks.verify(table); err != nil {
		return err
	}
	d.data = p[1+n+int(size):]
	d.table = scanOf(nil, table, 0)
	length, count := d.table.uvarint(), d.table.uvarint()
	if d.table.bad || length > docs.limit || count > uint64(len(table)) {
		return docs.damaged(tagDocs, "row %d: %d bytes in %d pieces", row, length, count)
	}
	d.length, d.count = int(length), int(count)
	from := d.table.at
	total, stored := uint64(0), uint64(0)
	for range d.count {
		a, b := d.table.uvarint(), d.table.uvarint()
		if a > length || b > a {
			d.table.bad = true
			break
		}
		total, stored = total+a, stored+b
	}
	if d.table.bad || total != length || stored != uint64(len(d.data)) {
		return docs.damaged(tagDocs, "row %d: its pieces have %d bytes of %d, stored in %d of %d", row, total, length, stored, len(d.data))
	}
	d.sizes = table[from:d.table.at]
	return nil
}

// next moves to the next piece. It returns false at the end.
func (d *pieces) next() bool {
	d.at += d.size
	if d.count == 0 {
		d.size = 0
		return false
	}
	d.count--
	size, n := binary.Uvarint(d.sizes)
	stored, m := binary.Uvarint(d.sizes[n:])
	d.sizes = d.sizes[n+m:]
	d.size, d.stored, d.data = int(size), d.data[:stored], d.data[stored:]
	return true
}

// decode appends the text of the current piece.
func (d *pieces) decode(dst []byte) ([]byte, error) {
	if err := d.docs.blocks.verify(d.stored); err != nil {
		return dst, err
	}
	if len(d.stored) == d.size {
		return append(dst, d.stored...), nil
	}
	want := len(dst) + d.size
	if cap(dst) < want {
		dst = append(make([]byte, 0, max(want, 2*cap(dst))), dst...)
	}
	out, err := zstdCoders().DecodeAll(d.stored, dst[len(dst):len(dst):want]) // never beyond want, whatever the frame says
	if err != nil || len(out) != d.size {
		return dst, d.docs.damaged(tagDocs, "row %d: %d bytes of a piece expected, %d found: %v", d.row, d.size, len(out), err)
	}
	if all := dst[:want]; d.size == 0 || &out[0] == &all[len(dst)] {
		return all, nil
	}
	return append(dst, out...), nil // the decoder wanted more room
}

// all appends the whole document.
func (d *pieces) all(dst []byte) (_ []byte, err error) {
	for d.next() {
		if dst, err = d.decode(dst); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// members appends an object with the members whose keys are wanted. If there is no table of members, it appends all.
func (d *pieces) members(dst []byte, wanted func(key []byte) bool) (_ []byte, err error) {
	n := d.table.uvarint()
	if n == 0 && !d.table.bad {
		return d.all(dst)
	}
	text := pieceTexts.Get().(*[]byte)
	d.text = (*text)[:0]
	defer func() {
		*text = d.text[:0]
		keepPieceText(text)
	}()
	dst = append(dst, '{')
	first, end := true, 0
	for ; n > 0; n-- {
		key := d.table.take(d.table.uvarint())
		start := end + int(min(d.table.uvarint(), uint64(d.length)))
		end = start + int(min(d.table.uvarint(), uint64(d.length)))
		if d.table.bad || end > d.length {
			return dst, d.docs.damaged(tagDocs, "row %d: its table of members is not sound", d.row)
		}
		if !wanted(key) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if d.brief != nil && d.brief(key) {
			dst, err = d.begin(dst, key, start, end)
		} else {
			dst, err = d.copy(dst, start, end)
		}
		if err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// copy appends a stretch of the document that does not begin before the one of the last call.
func (d *pieces) copy(dst []byte, start, end int) ([]byte, error) {
	for start < end {
		if decoded := d.from + len(d.text); start < decoded && start >= d.from {
			n := min(end, decoded) - start
			dst = append(dst, d.text[start-d.from:start-d.from+n]...)
			start += n
			continue
		}
		if !d.next() {
			return dst, d.docs.damaged(tagDocs, "row %d: it ends before %d", d.row, end)
		}
		if start >= d.at+d.size {
			continue
		}
		if start == d.at && end >= d.at+d.size { // a whole piece
			var err error
			if dst, err = d.decode(dst); err != nil {
				return dst, err
			}
			start += d.size
			continue
		}
		var err error
		if d.text, err = d.decode(d.text[:0]); err != nil {
			d.text = d.text[:0]
			return dst, err
		}
		d.from = d.at
	}
	return dst, nil
}
