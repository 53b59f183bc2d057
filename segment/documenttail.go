package segment

import (
	"bytes"

	"svc/internal/jsontext"
)

// Tail is the rest of a string that AppendBeginnings cut. It is valid as long as its reader.
type Tail struct {
	key    []byte // as it is written, with its quotes
	pieces pieces
	raw    []byte // of the string, decoded and not handed out yet
	at     int    // where the document continues after raw
	end    int    // of the string, at its closing quote

	concordance Concordance // of the whole text, where that is the rest
}

// Key returns the key of the member that the text belongs to, as it is written, with its quotes.
func (t *Tail) Key() []byte { return t.key }

// More reports whether something is left.
func (t *Tail) More() bool { return len(t.raw) > 0 || t.at < t.end }

// Concordance returns the concordance of the text if the tail is the whole text, or nil if there is none.
func (t *Tail) Concordance() *Concordance {
	if t.concordance.Parts() == 0 {
		return nil
	}
	return &t.concordance
}

// From returns the tail that begins at a place of the text, for a tail that has a concordance and was not read yet.
func (t *Tail) From(p Place) (*Tail, error) {
	from := *t
	from.concordance = Concordance{}
	if from.at = p.Raw; p.Raw < t.at || p.Raw > t.end {
		return nil, t.pieces.docs.damaged(tagConcord, "row %d: a mark at %d, the text is from %d to %d", t.pieces.row, p.Raw, t.at, t.end)
	}
	return &from, nil
}

// Append appends a further part of the text, which is not empty, or all that is left. Every part but the last one ends with a space, so
// no character is cut.
func (t *Tail) Append(dst []byte) ([]byte, error) {
	for t.at < t.end {
		for t.pieces.at+t.pieces.size <= t.at {
			if !t.pieces.next() {
				return dst, t.pieces.docs.damaged(tagDocs, "row %d: it ends before %d", t.pieces.row, t.end)
			}
		}
		from := len(t.raw)
		var err error
		if t.raw, err = t.pieces.decode(t.raw); err != nil {
			return dst, err
		}
		behind := t.at - t.pieces.at
		n := min(t.pieces.size-behind, t.end-t.at)
		t.raw = append(t.raw[:from], t.raw[from+behind:][:n]...)
		t.at += n
		if t.at == t.end {
			break
		}
		if space := bytes.LastIndexByte(t.raw[from:], ' '); space >= 0 {
			to := from + space + 1
			dst = jsontext.AppendUnescaped(dst, t.raw[:to])
			t.raw = append(t.raw[:0], t.raw[to:]...)
			return dst, nil
		}
	}
	dst = jsontext.AppendUnescaped(dst, t.raw)
	t.raw = t.raw[:0]
	return dst, nil
}

// AppendBeginnings is AppendMembers, except that it may cut a long string after a space, or at its start, if brief returns true for
// its key. It appends the rests of cut strings to tails, in the order of the document. All other strings are whole.
func (r *Reader) AppendBeginnings(dst []byte, row Row, wanted Wanted, brief func(key []byte) bool, tails []Tail, room Room) ([]byte, []Tail, error) {
	if wanted.Has == nil {
		dst, err := r.appendDocument(dst, row, room)
		return dst, tails, err
	}
	p, err := r.docs.stored(uint32(row))
	if err != nil {
		return dst, tails, err
	}
	if p[0]&methodMask != documentPieces {
		if doc := documents.get(cacheKey(r.docs.number, uint32(row))); doc != nil {
			return append(dst, doc...), tails, nil
		}
		dst, err := r.decodeDocument(dst, p, row, wanted, room)
		return dst, tails, err
	}
	var d pieces
	if err := d.open(&r.docs, p, uint32(row)); err != nil {
		return dst, tails, err
	}
	if n := d.length; n >= LargeDocument && room != nil {
		if err := room.Hold(n); err != nil {
			return dst, tails, err
		}
	}
	d.brief, d.tails = brief, tails
	dst, err = d.members(dst, wanted.Has)
	return dst, d.tails, err
}

// Concordance returns the concordance of the string of a member, or nil if there is none. key is the raw key.
func (r *Reader) Concordance(row Row, key []byte) (*Concordance, error) {
	c := &r.concordances
	if c.parts() == 0 {
		return nil, nil
	}
	p, err := r.docs.stored(uint32(row))
	if err != nil || p[0]&methodMask != documentPieces {
		return nil, err
	}
	var d pieces
	if err := d.open(&r.docs, p, uint32(row)); err != nil {
		return nil, err
	}
	end := 0
	for n := d.table.uvarint(); n > 0 && !d.table.bad; n-- {
		name := d.table.take(d.table.uvarint())
		start := end + int(min(d.table.uvarint(), uint64(d.length)))
		end = start + int(min(d.table.uvarint(), uint64(d.length)))
		if end > d.length {
			break
		}
		if bytes.Equal(name, key) {
			if first, last := c.find(uint32(row), start); first < last {
				return &Concordance{c, first, last}, nil
			}
			break
		}
	}
	return nil, nil
}

// begin appends the beginning of a member, and adds the rest to the tails. It appends the whole member if it is not a string, or not
// a long one.
func (d *pieces) begin(dst, key []byte, start, end int) ([]byte, error) {
	value := start + len(key) + len(`:"`) // where the text begins, if it is a string
	if c := d.docs.concordances; c != nil && c.parts() > 0 && d.at+d.size <= start {
		if first, last := c.find(d.row, start); first < last {
			t := Tail{key: key, pieces: *d, at: value, end: end - 1, concordance: Concordance{c, first, last}}
			t.pieces.text, t.pieces.brief, t.pieces.tails = nil, nil, nil
			d.tails = append(d.tails, t)
			return append(append(dst, key...), `:""`...), nil
		}
	}
	if end-value <= pieceBytes {
		return d.copy(dst, start, end)
	}
	dst, err := d.copy(dst, start, value)
	if err != nil || dst[len(dst)-1] != '"' {
		return d.rest(dst, err, value, end)
	}
	decoded := d.from + len(d.text) // the text of this piece, maybe including text before value
	if decoded <= value || decoded >= end || decoded != d.at+d.size {
		return d.rest(dst, err, value, end)
	}
	text := d.text[value-d.from:]
	space := bytes.LastIndexByte(text, ' ') + 1
	if space == 0 {
		return d.rest(dst, err, value, end)
	}
	t := Tail{key: key, pieces: *d, raw: bytes.Clone(text[space:]), at: decoded, end: end - 1}
	t.pieces.text, t.pieces.brief, t.pieces.tails = nil, nil, nil
	d.tails = append(d.tails, t)
	return append(append(dst, text[:space]...), '"'), nil
}

func (d *pieces) rest(dst []byte, err error, from, to int) ([]byte, error) {
	if err != nil {
		return dst, err
	}
	return d.copy(dst, from, to)
}
