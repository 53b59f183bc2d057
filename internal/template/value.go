package template

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"svc/internal/document"
	"svc/internal/jsontext"
)

type kind uint8

const (
	kindNil kind = iota
	kindBool
	kindInt
	kindFloat
	kindText
	kindArray
	kindObject
	kindRaw   // JSON that is not parsed yet
	kindEmpty // the literal empty
	kindBlank // the literal blank
)

// value is a value of the language. Values are not changed once they are made.
type value struct {
	kind   kind
	bool   bool
	int    int64
	float  float64
	text   string // of a text; of a number beyond int64, its digits
	list   []value
	object *object
	raw    []byte
}

// object keeps its members in order.
type object struct {
	members []member
	index   map[string]int // made when it pays
	live    bool           // it changes while a loop runs
}

type member struct {
	name  string
	value value
}

// indexedFrom is the number of members from which on they are found by hash.
const indexedFrom = 16

func (o *object) find(name string) int {
	if o.index != nil {
		if i, ok := o.index[name]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
}

// get returns a member. Raw JSON is looked into once: an object belongs to one rendering.
func (o *object) get(m *meter, name string) (value, bool) {
	i := o.find(name)
	if i < 0 {
		return value{}, false
	}
	return o.at(m, i), true
}

// at returns member i.
func (o *object) at(m *meter, i int) value {
	v := &o.members[i].value
	if v.kind == kindRaw {
		*v = m.known(*v)
	}
	return *v
}

// set sets a member. It does not charge for a new one, because the names of an object come from a template or a document.
func (o *object) set(name string, v value) {
	if i := o.find(name); i >= 0 {
		o.members[i].value = v
		return
	}
	o.members = append(o.members, member{name, v})
	switch {
	case o.index != nil:
		o.index[name] = len(o.members) - 1
	case len(o.members) == indexedFrom:
		o.index = make(map[string]int, 2*indexedFrom)
		for i, m := range o.members {
			o.index[m.name] = i
		}
	}
}

// makeObject makes an object with room for n members.
func (m *meter) makeObject(n int) *object {
	bytes := objectBytes + n*memberBytes
	if n >= indexedFrom {
		bytes += n * indexBytes
	}
	if m.make(bytes) != nil {
		return &object{}
	}
	return &object{members: make([]member, 0, n)}
}

func (o *object) names() []string {
	names := make([]string, len(o.members))
	for i, m := range o.members {
		names[i] = m.name
	}
	return names
}

func text(s string) value           { return value{kind: kindText, text: s} }
func boolean(b bool) value          { return value{kind: kindBool, bool: b} }
func integer(i int64) value         { return value{kind: kindInt, int: i} }
func float(f float64) value         { return value{kind: kindFloat, float: f} }
func array(list []value) value      { return value{kind: kindArray, list: list} }
func lazy(raw []byte) value         { return value{kind: kindRaw, raw: raw} }
func (v value) scalar() bool        { return v.kind >= kindBool && v.kind <= kindText }
func (v value) truthy() bool        { return v.kind != kindNil && (v.kind != kindBool || v.bool) }
func (v value) number() bool        { return v.kind == kindInt || v.kind == kindFloat }
func isBlankText(s string) bool     { return strings.TrimSpace(s) == "" }
func (v value) isLiteralKind() bool { return v.kind == kindEmpty || v.kind == kindBlank }

// known reads raw JSON one level deep.
func (m *meter) known(v value) value {
	if v.kind != kindRaw {
		return v
	}
	raw := v.raw
	if len(raw) == 0 || m.work(len(raw)/workBytes) != nil {
		return value{}
	}
	switch raw[0] {
	case 'n':
		return value{}
	case 't', 'f':
		return boolean(raw[0] == 't')
	case '"':
		return text(m.unquoted(raw))
	case '[':
		// The documents of an index and compacted requests are well formed: what follows a flaw is left out.
		n := 0
		_ = document.Elements(raw, func([]byte) error { n++; return nil })
		list := m.makeList(n)
		if m.err != nil {
			return value{}
		}
		_ = document.Elements(raw, func(item []byte) error {
			list = append(list, lazy(item))
			return nil
		})
		return array(list)
	case '{':
		o, _ := m.readObject(raw, "") // as above
		return value{kind: kindObject, object: o}
	}
	return m.numberOf(raw)
}

// readObject reads an object one level deep, without the member of a name.
func (m *meter) readObject(raw []byte, without string) (*object, error) {
	n := 0
	_ = document.Fields(raw, func(_, _ []byte) error { n++; return nil })
	o := m.makeObject(n)
	return o, document.Fields(raw, func(name, item []byte) error {
		if m.err == nil && (without == "" || string(name) != without) {
			o.set(m.string(name), lazy(item))
		}
		return m.err
	})
}

// item returns an item of an array, which is looked into once.
func (v value) item(m *meter, i int) value {
	if v.list[i].kind == kindRaw {
		v.list[i] = m.known(v.list[i])
	}
	return v.list[i]
}

// numberOf reads a JSON number. Whole numbers beyond 64 signed bits keep their digits.
func (m *meter) numberOf(raw []byte) value {
	whole := jsontext.IsInteger(raw)
	bytes := 2*len(raw) + 64 // errors of strconv have copies of the text
	if whole {
		bytes *= 2
	}
	if m.make(bytes) != nil {
		return value{}
	}
	digits := string(raw)
	if whole {
		if i, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return integer(i)
		}
		if _, err := strconv.ParseUint(digits, 10, 64); err == nil {
			f, _ := strconv.ParseFloat(digits, 64)
			return value{kind: kindFloat, float: f, text: digits}
		}
	}
	f, _ := strconv.ParseFloat(digits, 64) // infinite beyond its range
	return float(f)
}

// append appends the text of v as an output prints it. It cuts text longer than most (0: any length), leaving one byte more to show
// that.
func (m *meter) append(dst []byte, v value, most int) []byte {
	switch v.kind {
	case kindBool, kindInt:
		dst, ok := m.room(dst, 20)
		switch {
		case !ok:
			return dst
		case v.kind == kindBool:
			return strconv.AppendBool(dst, v.bool)
		}
		return strconv.AppendInt(dst, v.int, 10)
	case kindFloat:
		return m.appendFloat(dst, v)
	case kindText:
		return m.appendText(dst, upTo(v.text, dst, most))
	case kindArray:
		for i := range v.list {
			if over(dst, most) || m.work(1) != nil {
				break
			}
			dst = m.append(dst, v.list[i], most)
		}
	case kindObject:
		for i := range v.object.members {
			if over(dst, most) || m.work(1) != nil {
				break
			}
			member := &v.object.members[i]
			dst = m.append(m.appendText(dst, member.name), member.value, most)
		}
	case kindRaw:
		return m.appendJSON(dst, v.raw, most)
	}
	return dst
}

// over reports whether a text has more bytes than most (0: never).
func over(dst []byte, most int) bool { return most > 0 && len(dst) > most }

// upTo returns the part of a text that makes dst one byte longer than most, if the text is longer.
func upTo(s string, dst []byte, most int) string {
	if most > 0 {
		s = s[:min(len(s), max(most+1-len(dst), 0))]
	}
	return s
}

// text returns the text of v.
func (m *meter) text(v value) string {
	if v.kind == kindText {
		return v.text
	}
	return m.string(m.append(nil, v, 0))
}

// brief returns the beginning of the text of v, for errors.
func (m *meter) brief(v value) string {
	const most = 60
	return cut(m.string(m.append(nil, v, most)), most)
}

// appendJSON appends the text of raw JSON, which is the text of its value.
func (m *meter) appendJSON(dst, raw []byte, most int) []byte {
	if len(raw) == 0 || over(dst, most) || m.work(1+len(raw)/workBytes) != nil {
		return dst
	}
	switch raw[0] {
	case 'n':
	case 't', 'f':
		if dst, ok := m.room(dst, len(raw)); ok {
			return append(dst, raw...)
		}
	case '"':
		if dst, ok := m.room(dst, len(raw)); ok {
			return jsontext.AppendUnquoted(dst, raw)
		}
	case '[':
		_ = document.Elements(raw, func(item []byte) error {
			dst = m.appendJSON(dst, item, most)
			return m.enough(dst, most)
		})
	case '{':
		_ = document.Fields(raw, func(name, item []byte) error {
			if grown, ok := m.room(dst, len(name)); ok {
				dst = m.appendJSON(append(grown, name...), item, most)
			}
			return m.enough(dst, most)
		})
	default:
		return m.append(dst, m.numberOf(raw), most)
	}
	return dst
}

var errEnough = errors.New("enough")

// enough is an error when nothing is to be appended to a text any more.
func (m *meter) enough(dst []byte, most int) error {
	if m.err == nil && over(dst, most) {
		return errEnough
	}
	return m.err
}

// appendFloat never writes an exponent, nor an unnecessary point.
func (m *meter) appendFloat(dst []byte, v value) []byte {
	dst, ok := m.room(dst, max(numberBytes, len(v.text)))
	switch {
	case !ok:
		return dst
	case v.text != "":
		return append(dst, v.text...)
	case math.IsInf(v.float, 1):
		return append(dst, "inf"...)
	case math.IsInf(v.float, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, v.float, 'f', -1, 64)
}

// at looks into v: an item of an array, a member of an object, or one of the sizes and ends that go as members.
func (m *meter) at(v, key value) (value, bool) {
	switch v.kind {
	case kindArray:
		if i, ok := m.whole(key); ok {
			if i < 0 {
				i += int64(len(v.list))
			}
			if i < 0 || i >= int64(len(v.list)) {
				return value{}, false
			}
			return v.item(m, int(i)), true
		}
		switch m.text(key) {
		case "size":
			return integer(int64(len(v.list))), true
		case "first":
			if len(v.list) > 0 {
				return v.item(m, 0), true
			}
		case "last":
			if len(v.list) > 0 {
				return v.item(m, len(v.list)-1), true
			}
		}
	case kindObject:
		name := m.text(key)
		if item, ok := v.object.get(m, name); ok {
			return item, true
		}
		if name == "size" {
			return integer(int64(len(v.object.members))), true
		}
	case kindBool, kindInt, kindFloat, kindText:
		if m.text(key) == "size" {
			return integer(m.length(v)), true
		}
	}
	return value{}, false
}

// whole reads v as a whole number: also a text of digits, as filters take them.
func (m *meter) whole(v value) (int64, bool) {
	switch v.kind {
	case kindInt:
		return v.int, true
	case kindFloat:
		if v.float >= -1<<62 && v.float <= 1<<62 {
			return int64(v.float), true
		}
	case kindText:
		if m.numeral(v.text) {
			i, err := strconv.ParseInt(v.text, 10, 64)
			return i, err == nil
		}
	}
	return 0, false
}

// numeric reads v as a number, also from text.
func (m *meter) numeric(v value) (value, bool) {
	if v.number() {
		return v, true
	}
	if v.kind == kindText && m.numeral(v.text) {
		if i, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return integer(i), true
		}
		if f, err := strconv.ParseFloat(v.text, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return float(f), true
		}
	}
	return value{}, false
}

// numeral reports whether a text may be a number, and counts the memory for reading it.
func (m *meter) numeral(s string) bool {
	const longest = 1 << 10
	if s == "" || len(s) > longest || s[0] != '-' && s[0] != '+' && s[0] != '.' && !digit(s[0]) {
		return false
	}
	return m.make(2*(len(s)+64)) == nil // errors of strconv have copies of the text
}

// empty reports whether v equals the literal empty, or with blank set the literal blank.
func (v value) empty(blank bool) bool {
	switch v.kind {
	case kindNil, kindEmpty, kindBlank:
		return true
	case kindBool:
		return blank && !v.bool
	case kindText:
		return v.text == "" || blank && isBlankText(v.text)
	case kindArray:
		return len(v.list) == 0
	case kindObject:
		return len(v.object.members) == 0
	}
	return false
}

// equal compares two values. Compared with a boolean, any other scalar counts as true or false. empty and
// blank equal what they describe.
func (m *meter) equal(a, b value) bool {
	a, b = m.known(a), m.known(b)
	if m.work(1) != nil {
		return false
	}
	if b.isLiteralKind() {
		return a.empty(b.kind == kindBlank)
	}
	if a.isLiteralKind() {
		return b.empty(a.kind == kindBlank)
	}
	switch {
	case a.number() && b.number():
		order, ok := m.compare(a, b)
		return ok && order == 0
	case a.scalar() && b.kind == kindBool: // any value but false is true
		return a.truthy() == b.bool
	case b.scalar() && a.kind == kindBool:
		return b.truthy() == a.bool
	case a.kind != b.kind:
		return false
	case a.kind == kindText:
		return len(a.text) == len(b.text) && m.work(len(a.text)/workBytes) == nil && a.text == b.text
	case a.kind == kindArray:
		return len(a.list) == len(b.list) && slices.EqualFunc(a.list, b.list, m.equal)
	case a.kind == kindObject:
		if len(a.object.members) != len(b.object.members) {
			return false
		}
		for i := range a.object.members {
			other, ok := b.object.get(m, a.object.members[i].name)
			if !ok || !m.equal(a.object.members[i].value, other) {
				return false
			}
		}
		return true
	}
	return true // two nils
}

func (v value) asFloat() float64 {
	if v.kind == kindInt {
		return float64(v.int)
	}
	return v.float
}

// length counts characters, as filters do.
func length(s string) int64 { return int64(utf8.RuneCountInString(s)) }

// length counts the characters of the text of v.
func (m *meter) length(v value) int64 {
	s := m.text(v)
	if m.work(len(s)/workBytes) != nil {
		return 0
	}
	return length(s)
}

// compare orders two values; ok is false where they have no order.
func (m *meter) compare(a, b value) (order int, ok bool) {
	a, b = m.known(a), m.known(b)
	if m.work(1) != nil {
		return 0, false
	}
	switch {
	case a.kind == kindInt && b.kind == kindInt:
		return cmp.Compare(a.int, b.int), true
	case a.number() && b.number():
		return cmp.Compare(a.asFloat(), b.asFloat()), true
	case a.kind == kindText && b.kind == kindText:
		if m.work(min(len(a.text), len(b.text))/workBytes) != nil {
			return 0, false
		}
		return strings.Compare(a.text, b.text), true
	case a.kind == kindBool && b.kind == kindBool:
		return strings.Compare(strconv.FormatBool(a.bool), strconv.FormatBool(b.bool)), true
	}
	return 0, false
}
