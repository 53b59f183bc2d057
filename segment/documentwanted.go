package segment

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/s2"

	"svc/internal/jsontext"
)

// Wanted says which members of a document are read. The zero value wants all.
type Wanted struct {
	Has  func(key []byte) bool // gets a key as it is written, with its quotes; nil wants all
	Most int                   // members of a document that Has wants, at most; 0: not known
}

// AppendMembers appends the document's JSON with at least the wanted members of its first level, in their order. It may stop reading
// the document once it has these members. room may be nil.
func (r *Reader) AppendMembers(dst []byte, row Row, wanted Wanted, room Room) ([]byte, error) {
	dst, _, err := r.AppendBeginnings(dst, row, wanted, nil, nil, room)
	return dst, err
}

// errComplete ends the walk through a document when no further member is wanted.
var errComplete = errors.New("all wanted members are found")

// end returns where the last wanted member ends in the first bytes of a document; 0 where that cannot be seen from these bytes.
func (w Wanted) end(first []byte) (end int) {
	left := w.Most
	// The error of a walk that leaves these bytes says nothing.
	_ = jsontext.EachMember(first, func(key, value []byte) error {
		if w.Has(key) {
			if left--; left == 0 {
				end = cap(first) - cap(value) + len(value) // value reaches as far as first
				return errComplete
			}
		}
		return nil
	})
	return end
}

// firstDecoded is how many bytes of a document are decoded before the first search for the wanted members. Each further search has
// four times as many, up to half of the document.
const firstDecoded = 64

// decodeWanted is Decode that may end the document behind the last wanted member. Where it does, the result is shorter than dst.
func (d *dictionary) decodeWanted(dst, src []byte, wanted Wanted) ([]byte, error) {
	if wanted.Has == nil || wanted.Most == 0 {
		return d.Decode(dst, src)
	}
	n, at := binary.Uvarint(src)
	if at <= 0 || n > uint64(len(dst)) {
		return nil, s2.ErrCorrupt
	}
	dst, src = dst[:n], src[at:]
	c := d.start()
	for enough := firstDecoded; enough <= len(dst)/2; enough *= 4 {
		if !d.decode(&c, dst, src, enough) {
			return nil, s2.ErrCorrupt
		}
		if end := wanted.end(dst[:c.written]); end > 0 {
			dst[end] = '}'
			return dst[:end+1], nil
		}
	}
	if !d.decode(&c, dst, src, len(dst)) || !c.ends(dst, src) {
		return nil, s2.ErrCorrupt
	}
	return dst, nil
}
