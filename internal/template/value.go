package template

import (
	"cmp"
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
	kindRaw   // JSON that nobody has looked into yet
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
}

type member struct {
	name  string
	value value
}

// indexedFrom is the number of members from which on they are found by hash.
const indexedFrom = 8

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
func (o *object) get(name string) (value, bool) {
	if i := o.find(name); i >= 0 {
		v := o.members[i].value.known()
		o.members[i].value = v
		return v, true
	}
	return value{}, false
}

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
func fromJSON(raw []byte) value     { return lazy(raw).known() }
func isBlankText(s string) bool     { return strings.TrimSpace(s) == "" }
func (v value) isLiteralKind() bool { return v.kind == kindEmpty || v.kind == kindBlank }

// known reads raw JSON one level deep.
func (v value) known() value {
	if v.kind != kindRaw {
		return v
	}
	raw := v.raw
	if len(raw) == 0 {
		return value{}
	}
	switch raw[0] {
	case 'n':
		return value{}
	case 't', 'f':
		return boolean(raw[0] == 't')
	case '"':
		return text(string(jsontext.AppendUnquoted(nil, raw)))
	case '[':
		var list []value
		// The documents of an index and compacted requests are well formed: what follows a flaw is left out.
		_ = document.Elements(raw, func(item []byte) error {
			list = append(list, lazy(item))
			return nil
		})
		return array(list)
	case '{':
		o := &object{}
		_ = document.Fields(raw, func(name, item []byte) error {
			o.set(string(name), lazy(item))
			return nil
		})
		return value{kind: kindObject, object: o}
	}
	return numberOf(string(raw))
}

// item returns an item of an array, which is looked into once.
func (v value) item(i int) value {
	v.list[i] = v.list[i].known()
	return v.list[i]
}

// numberOf reads a JSON number. Whole numbers beyond 64 signed bits keep their digits.
func numberOf(digits string) value {
	if i, err := strconv.ParseInt(digits, 10, 64); err == nil && digits != "-0" {
		return integer(i)
	}
	f, _ := strconv.ParseFloat(digits, 64) // infinite beyond its range
	v := float(f)
	if _, err := strconv.ParseUint(digits, 10, 64); err == nil {
		v.text = digits
	}
	return v
}

// append appends the text of v as an output prints it.
func (v value) append(dst []byte) []byte {
	switch v.kind {
	case kindBool:
		return strconv.AppendBool(dst, v.bool)
	case kindInt:
		return strconv.AppendInt(dst, v.int, 10)
	case kindFloat:
		if v.text != "" {
			return append(dst, v.text...)
		}
		return appendFloat(dst, v.float)
	case kindText:
		return append(dst, v.text...)
	case kindArray:
		for _, item := range v.list {
			dst = item.append(dst)
		}
	case kindObject:
		for _, m := range v.object.members {
			dst = append(dst, m.name...)
			dst = m.value.append(dst)
		}
	case kindRaw:
		return appendJSON(dst, v.raw)
	}
	return dst
}

func (v value) String() string {
	if v.kind == kindText {
		return v.text
	}
	return string(v.append(nil))
}

// appendJSON appends the text of raw JSON, which is that of the value it holds.
func appendJSON(dst, raw []byte) []byte {
	if len(raw) == 0 {
		return dst
	}
	switch raw[0] {
	case 'n':
	case 't', 'f':
		dst = append(dst, raw...)
	case '"':
		dst = jsontext.AppendUnquoted(dst, raw)
	case '[':
		_ = document.Elements(raw, func(item []byte) error {
			dst = appendJSON(dst, item)
			return nil
		})
	case '{':
		_ = document.Fields(raw, func(name, item []byte) error {
			dst = append(dst, name...)
			dst = appendJSON(dst, item)
			return nil
		})
	default:
		dst = numberOf(string(raw)).append(dst)
	}
	return dst
}

// appendFloat never writes an exponent, nor a point without need.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// at looks into v: an item of an array, a member of an object, or one of the sizes and ends that go as members.
func (v value) at(key value) (value, bool) {
	switch v.kind {
	case kindArray:
		if i, ok := key.whole(); ok {
			if i < 0 {
				i += int64(len(v.list))
			}
			if i < 0 || i >= int64(len(v.list)) {
				return value{}, false
			}
			return v.item(int(i)), true
		}
		switch key.String() {
		case "size":
			return integer(int64(len(v.list))), true
		case "first":
			if len(v.list) > 0 {
				return v.item(0), true
			}
		case "last":
			if len(v.list) > 0 {
				return v.item(len(v.list) - 1), true
			}
		}
	case kindObject:
		name := key.String()
		if item, ok := v.object.get(name); ok {
			return item, true
		}
		if name == "size" {
			return integer(int64(len(v.object.members))), true
		}
	case kindBool, kindInt, kindFloat, kindText:
		if key.String() == "size" {
			return integer(length(v.String())), true
		}
	}
	return value{}, false
}

// whole reads v as a whole number: also a text of digits, as filters take them.
func (v value) whole() (int64, bool) {
	switch v.kind {
	case kindInt:
		return v.int, true
	case kindFloat:
		if v.float >= -1<<62 && v.float <= 1<<62 {
			return int64(v.float), true
		}
	case kindText:
		i, err := strconv.ParseInt(v.text, 10, 64)
		return i, err == nil
	}
	return 0, false
}

// numeric reads v as a number, also from text.
func (v value) numeric() (value, bool) {
	if v.number() {
		return v, true
	}
	if v.kind == kindText {
		if i, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return integer(i), true
		}
		if f, err := strconv.ParseFloat(v.text, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return float(f), true
		}
	}
	return value{}, false
}

// empty reports whether v is what the literal empty, or with blank set the literal blank, stands for.
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

func equal(a, b value) bool {
	a, b = a.known(), b.known()
	if b.isLiteralKind() {
		return a.empty(b.kind == kindBlank)
	}
	if a.isLiteralKind() {
		return b.empty(a.kind == kindBlank)
	}
	switch {
	case a.number() && b.number():
		order, ok := compare(a, b)
		return ok && order == 0
	case a.scalar() && b.kind == kindBool: // any value but false is true
		return a.truthy() == b.bool
	case b.scalar() && a.kind == kindBool:
		return b.truthy() == a.bool
	case a.kind != b.kind:
		return false
	case a.kind == kindText:
		return a.text == b.text
	case a.kind == kindArray:
		return slices.EqualFunc(a.list, b.list, equal)
	case a.kind == kindObject:
		if len(a.object.members) != len(b.object.members) {
			return false
		}
		for _, m := range a.object.members {
			other, ok := b.object.get(m.name)
			if !ok || !equal(m.value, other) {
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

// compare orders two values; ok is false where they have no order.
func compare(a, b value) (order int, ok bool) {
	a, b = a.known(), b.known()
	switch {
	case a.kind == kindInt && b.kind == kindInt:
		return cmp.Compare(a.int, b.int), true
	case a.number() && b.number():
		return cmp.Compare(a.asFloat(), b.asFloat()), true
	case a.kind == kindText && b.kind == kindText:
		return strings.Compare(a.text, b.text), true
	case a.kind == kindBool && b.kind == kindBool:
		return strings.Compare(a.String(), b.String()), true
	}
	return 0, false
}
