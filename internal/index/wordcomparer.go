package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"svc/internal/document"
	"svc/internal/jsontext"
	"svc/internal/numeric"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/segment"
)

// wordComparer finds out whether two versions of a document have the same words and places, and which columns and fields differ. It looks
// only at the members that differ, and is their document.KeyVisitor. Not for several goroutines.
type wordComparer struct {
	b       *batch
	fields  *settings.Fields
	pace    *pace.Worker // nil: the batch does not yield to searches
	was, is docReader
	changed map[segment.FieldID]struct{} // columns with other values
	moved   map[segment.FieldID]struct{} // fields that one of two versions may lack

	members []rawMember // of the stored version
	one     []byte      // a document of one member
	handles map[string]int
	known   []comparedField
	stamp   uint32    // of a member of a version
	unknown bool      // it has a field that the index does not
	side    int       // 0: the stored version
	texts   [2][]byte // what words and dotted keys are made of
	values  [2][]byte // what columns are made of
	present [2][]int  // fields of the current member
	columns []segment.FieldID
	lacked  []segment.FieldID // fields that one version has in a member, and the other one does not
}

type rawMember struct{ key, value []byte }

// comparedField is what the comparer knows of a field.
type comparedField struct {
	id                 segment.FieldID
	searchable, column bool
	stamp              uint32
}

var _ document.KeyVisitor = (*wordComparer)(nil)

func newWordComparer(b *batch, fields *settings.Fields) *wordComparer {
	return &wordComparer{b: b, fields: fields, pace: pace.Of(b.ctx), was: docReader{b: b}, is: docReader{b: b}, changed: map[segment.FieldID]struct{}{},
		moved: map[segment.FieldID]struct{}{}, handles: map[string]int{}}
}

// errOther ends the comparison of two versions that do not have the same words.
var errOther = errors.New("the words of the document may change")

// same reports whether a change keeps the words and places of a document. If so, changed has its columns, and moved the fields that
// it adds and removes. It may return false for irrelevant differences.
func (k *wordComparer) same(l segment.Live, c rowChange) (bool, error) {
	if n, err := l.DocumentLength(c.row); err != nil || n > segment.LongText {
		return false, err
	}
	was, err := k.was.stored(l, c.row)
	if err != nil {
		return false, err
	}
	is, err := k.is.documentOf(k.b.states.at(int(c.state)), was)
	if err != nil || len(is) > segment.LongText { // longer ones may have concordances, which know where the texts are
		return false, err
	}
	if bytes.Equal(was, is) {
		return true, nil
	}
	if err := k.compare(was, is); err == errOther {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if !bytes.Equal(k.values[0], k.values[1]) {
		for _, id := range k.columns {
			k.changed[id] = struct{}{}
		}
	}
	for _, id := range k.lacked {
		k.moved[id] = struct{}{}
	}
	return true, nil
}

// maxMovedMembers limits how many members may be in only one of the two versions, counting both: each is searched for among all.
const maxMovedMembers = 16

// compare walks through the members that differ. Those that both versions have are in the same order.
func (k *wordComparer) compare(was, is []byte) error {
	k.members, k.columns, k.lacked, k.unknown = k.members[:0], k.columns[:0], k.lacked[:0], false
	for side := range 2 {
		k.texts[side], k.values[side] = k.texts[side][:0], k.values[side][:0]
	}
	if err := jsontext.EachMember(was, func(key, value []byte) error {
		k.members = append(k.members, rawMember{key, value})
		return nil
	}); err != nil {
		return err
	}
	at, moved := 0, 0
	move := func(key []byte, versions [2][]byte) error {
		if moved++; moved > maxMovedMembers || bytes.IndexByte(key, '.') >= 0 {
			return errOther
		}
		return k.member(key, versions)
	}
	err := jsontext.EachMember(is, func(key, value []byte) error {
		equal := func(m rawMember) bool { return bytes.Equal(m.key, key) }
		next := slices.IndexFunc(k.members[at:], equal)
		if next < 0 {
			if slices.ContainsFunc(k.members[:at], equal) { // in another order
				return errOther
			}
			return move(key, [2][]byte{nil, value})
		}
		for ; next > 0; next-- {
			if err := move(k.members[at].key, [2][]byte{k.members[at].value, nil}); err != nil {
				return err
			}
			at++
		}
		old := k.members[at].value
		at++
		if bytes.Equal(old, value) {
			return nil
		}
		return k.member(key, [2][]byte{old, value})
	})
	for ; err == nil && at < len(k.members); at++ {
		err = move(k.members[at].key, [2][]byte{k.members[at].value, nil})
	}
	if err == nil && !bytes.Equal(k.texts[0], k.texts[1]) {
		return errOther
	}
	return err
}

// member records what two versions have of a member; nil: it is missing.
func (k *wordComparer) member(key []byte, versions [2][]byte) error {
	if apart(key) {
		return errOther
	}
	for side, v := range versions {
		k.side, k.present[side] = side, k.present[side][:0]
		if v == nil {
			continue
		}
		k.stamp++
		k.one = append(append(append(append(append(k.one[:0], '{'), key...), ':'), v...), '}')
		if err := document.Walk(k.one, k); err != nil {
			return err
		}
	}
	if k.unknown {
		return errOther
	}
	if !slices.Equal(k.present[0], k.present[1]) {
		slices.Sort(k.present[0])
		slices.Sort(k.present[1])
		for side := range 2 {
			for _, h := range k.present[side] {
				if _, both := slices.BinarySearch(k.present[1-side], h); !both {
					k.lacked = append(k.lacked, k.known[h].id)
				}
			}
		}
	}
	return nil
}

// apart reports whether a member, with a quoted key, has more than words and columns.
func apart(key []byte) bool {
	return bytes.HasPrefix(key[1:], []byte(settings.GeoField)) || bytes.HasPrefix(key[1:], []byte(settings.VectorsField)) || bytes.IndexByte(key, '\\') >= 0
}

// Kinds of what a version consists of.
const (
	textDottedKey = iota
	textVisit
	textString
	textOther
	textNull
	textEmpty
)

// note appends an entry to the data to compare.
func note(dst []byte, kind, field int, text []byte) []byte {
	dst = binary.AppendUvarint(append(dst, byte(kind)), uint64(field))
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// scalar notes a value for the words and the column of a field.
func (k *wordComparer) scalar(kind, field int, text []byte) {
	f := &k.known[field]
	if f.searchable {
		k.texts[k.side] = note(k.texts[k.side], kind, field, text)
	}
	k.value(kind, field, text)
}

// value notes a value for the column of a field.
func (k *wordComparer) value(kind, field int, text []byte) {
	if k.known[field].column {
		k.values[k.side] = note(k.values[k.side], kind, field, text)
	}
}

// Field implements document.Visitor.
func (k *wordComparer) Field(path []byte) int {
	h, ok := k.handles[string(path)]
	if !ok {
		h = -1
		if id, ok := k.fields.ID(string(path)); ok {
			info := k.fields.Info(id)
			h = len(k.known)
			k.known = append(k.known, comparedField{id: id, searchable: info.Searchable, column: info.Column})
		}
		k.handles[string(path)] = h
	}
	if h < 0 {
		k.unknown = true
		return h
	}
	if f := &k.known[h]; f.stamp != k.stamp {
		f.stamp = k.stamp
		k.present[k.side] = append(k.present[k.side], h)
		if f.column {
			k.columns = append(k.columns, f.id)
		}
	}
	return h
}

// DottedKey implements document.KeyVisitor.
func (k *wordComparer) DottedKey(field int) {
	k.texts[k.side] = note(k.texts[k.side], textDottedKey, field, nil)
}

// Visit implements document.Visitor.
func (k *wordComparer) Visit(field int) {
	if k.known[field].searchable {
		k.texts[k.side] = note(k.texts[k.side], textVisit, field, nil)
	}
}

// String implements document.Visitor.
func (k *wordComparer) String(field int, s []byte, _ []int) { k.scalar(textString, field, s) }

// Number implements document.Visitor.
func (k *wordComparer) Number(field int, s []byte, _ numeric.Value, _ []int) {
	k.scalar(textOther, field, s)
}

// Bool implements document.Visitor.
func (k *wordComparer) Bool(field int, value bool, _ []int) {
	k.scalar(textOther, field, boolText(value))
}

// Null implements document.Visitor.
func (k *wordComparer) Null(field int) { k.value(textNull, field, nil) }

// Empty implements document.Visitor.
func (k *wordComparer) Empty(field int) { k.value(textEmpty, field, nil) }
