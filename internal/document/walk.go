package document

import (
	"bytes"
	"errors"
	"sync"

	"svc/internal/jsontext"
	"svc/internal/numeric"
)

// Visitor receives the values of a document from Walk. Every slice is valid only during the call.
//
// For each member of each object, in document order, Walk first calls Field with the full path of the member. So the paths passed to
// Field are those that exist in the document, including parents. Then come the calls for the value:
//
//	member of the document    value in it                  calls
//	"a": scalar               the scalar                   Visit, scalar
//	"a": []  or {}                                         Visit, Empty
//	"a": [1, [2], [], {}]     1, 2 and the empty ones      Visit and scalar for 1 and 2, Visit for the empty ones
//	"a": {…}                  none                         Field for each member
//
// The same holds for members of nested objects, with one more Visit before the others if the value is an array or an object. Members
// of objects inside arrays have the path of the array plus their name, so a path may occur several times. So may the path of a key
// "a.b" beside an object "a" with a key "b".
//
// scalar is one of String, Number, Bool and Null. Null and Empty are called only if the value is directly at the path, not inside an
// array: [null] is neither null nor empty. An empty string is passed to String, and then to Empty under the same condition.
type Visitor interface {
	// Field maps a full dotted path to a handle that the other calls get. A negative
	// handle skips the member with all that is below it.
	Field(path []byte) (handle int)
	// Visit says that the path occurs once more in this document. Each visit after the first moves the base of the positions. It
	// comes before the value.
	Visit(field int)
	// String, Number and Bool receive scalars. text is the unescaped text of a string, or a number in the form in which it is
	// indexed: 64-bit integers with all digits, other numbers in shortest decimal form. indices are the array indices on the way from
	// the document to the value, outermost first, or nil if there are none.
	String(field int, text []byte, indices []int)
	Number(field int, text []byte, value numeric.Value, indices []int)
	Bool(field int, value bool, indices []int)
	// Null is a null; Empty an empty string, array or object.
	Null(field int)
	Empty(field int)
}

// KeyVisitor is a Visitor that distinguishes a key with a dot from a path: {"a.b": 1} from {"a": {"b": 1}}.
type KeyVisitor interface {
	Visitor
	// DottedKey says that the whole path is one key of the document itself. It is called directly after Field.
	DottedKey(field int)
}

// ObjectVisitor is a Visitor that also receives where nested objects begin and end.
type ObjectVisitor interface {
	Visitor
	// Enter says that an object begins at doc[at]. It is at the path of field, as its value or inside arrays; arrays is the number of
	// arrays on the way from the document. Leave says that it ends before doc[at]. Both are called for empty objects, too.
	Enter(field, at, arrays int)
	Leave(field, at int)
	// NullIn is called for each null, and EmptyIn for each "", [] and {}, at any depth. arrays is as in Enter.
	NullIn(field, arrays int)
	EmptyIn(field, arrays int)
}

// Walk visits a document's values in the order in which words get positions. The document must be compact, as Convert writes it.
// Nesting beyond MaxDepth, or text that is not a document, is an error after a partial visit. Walk allocates nothing once its scratch
// memory has grown. If the visitor is a Spooler, large strings with escapes need no scratch memory.
func Walk(doc []byte, v Visitor) error {
	w := walkers.Get().(*walker)
	defer walkers.Put(w)
	w.b, w.v = doc, v
	w.keys, _ = v.(KeyVisitor)
	w.place, _ = v.(Spooler)
	w.objects, _ = v.(ObjectVisitor)
	w.path, w.indices = w.path[:0], w.indices[:0]
	end, err := w.object(0, 1)
	w.b, w.v, w.keys, w.place, w.objects = nil, nil, nil, nil, nil
	if err == nil && end != len(doc) {
		err = errDamaged
	}
	return err
}

// walker is one walk. It checks once which optional interfaces the visitor has.
type walker struct {
	b       []byte
	v       Visitor
	keys    KeyVisitor    // v, when it is one
	place   Spooler       // v, when it is one
	objects ObjectVisitor // v, when it is one
	path    []byte        // of the object whose members are visited, with a dot at its end unless it is the document
	indices []int
	scratch []byte
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

// object visits the members of the object at b[i] and returns its end.
func (w *walker) object(i, depth int) (int, error) {
	b := w.b
	if i >= len(b) || b[i] != '{' || depth > MaxDepth {
		return 0, errDamaged
	}
	i++
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	base := len(w.path)
	for {
		if i >= len(b) || b[i] != '"' {
			return 0, errDamaged
		}
		end, escaped := jsontext.TextEnd(b, i+1)
		if end < 0 || end+1 >= len(b) || b[end] != ':' {
			return 0, errDamaged
		}
		w.path = w.path[:base]
		if escaped {
			w.path = jsontext.AppendUnescaped(w.path, b[i+1:end-1])
		} else {
			w.path = append(w.path, b[i+1:end-1]...)
		}
		var err error
		if field := w.v.Field(w.path); field >= 0 {
			if depth == 1 && w.keys != nil && bytes.IndexByte(w.path, '.') >= 0 {
				w.keys.DottedKey(field)
			}
			i, err = w.member(field, end+1, depth)
		} else if i = jsontext.ValueEnd(b, end+1); i < 0 {
			err = errDamaged
		}
		if err != nil {
			return 0, err
		}
		if i >= len(b) {
			return 0, errDamaged
		}
		switch b[i] {
		case ',':
			i++
		case '}':
			w.path = w.path[:base]
			return i + 1, nil
		default:
			return 0, errDamaged
		}
	}
}

// member visits the value at b[i] of a member. Its path is w.path.
func (w *walker) member(field, i, depth int) (int, error) {
	c := w.b[i]
	if c != '{' && c != '[' {
		w.v.Visit(field)
		return w.scalar(field, i)
	}
	if depth > 1 {
		w.v.Visit(field)
	}
	if i+1 < len(w.b) && w.b[i+1] == c+2 { // ] and } stand two after [ and {
		w.v.Visit(field)
		if len(w.indices) == 0 {
			w.v.Empty(field)
		}
		w.empty(field, i)
		return i + 2, nil
	}
	if c == '[' {
		return w.array(field, i, depth+1)
	}
	w.path = append(w.path, '.')
	return w.nested(field, i, depth+1)
}

// nested visits the members of the object at b[i], which is the value of a field. w.path has a dot at its end.
func (w *walker) nested(field, i, depth int) (int, error) {
	if w.objects == nil {
		return w.object(i, depth)
	}
	w.objects.Enter(field, i, len(w.indices))
	end, err := w.object(i, depth)
	if err == nil {
		w.objects.Leave(field, end)
	}
	return end, err
}

// empty tells of the empty array or object at b[i].
func (w *walker) empty(field, i int) {
	if w.objects == nil {
		return
	}
	w.objects.EmptyIn(field, len(w.indices))
	if w.b[i] == '{' {
		w.objects.Enter(field, i, len(w.indices))
		w.objects.Leave(field, i+2)
	}
}

// array visits the elements of the non-empty array at b[i], whose path is w.path.
func (w *walker) array(field, i, depth int) (int, error) {
	b := w.b
	if depth > MaxDepth {
		return 0, errDamaged
	}
	w.indices = append(w.indices, 0)
	level, base := len(w.indices), len(w.path)
	i++
	for {
		if i+1 >= len(b) {
			return 0, errDamaged
		}
		var err error
		switch c := b[i]; {
		case c != '{' && c != '[':
			w.v.Visit(field)
			i, err = w.scalar(field, i)
		case b[i+1] == c+2:
			w.v.Visit(field)
			w.empty(field, i)
			i += 2
		case c == '[':
			i, err = w.array(field, i, depth+1)
		default:
			w.path = append(w.path, '.')
			i, err = w.nested(field, i, depth+1)
			w.path = w.path[:base]
		}
		if err != nil {
			return 0, err
		}
		if i >= len(b) {
			return 0, errDamaged
		}
		switch b[i] {
		case ',':
			i++
			w.indices[level-1]++
		case ']':
			w.indices = w.indices[:level-1]
			return i + 1, nil
		default:
			return 0, errDamaged
		}
	}
}

// scalar visits the string, number or literal at b[i] and returns its end.
func (w *walker) scalar(field, i int) (int, error) {
	b := w.b
	indices := w.indices
	if len(indices) == 0 {
		indices = nil
	}
	if b[i] == '"' {
		end, escaped := jsontext.TextEnd(b, i+1)
		if end < 0 {
			return 0, errDamaged
		}
		text := b[i+1 : end-1]
		if escaped && len(text) > spoolBytes && w.place != nil {
			return end, w.largeString(field, text, indices)
		}
		if escaped {
			w.scratch = jsontext.AppendUnescaped(w.scratch[:0], text)
			text = w.scratch
		}
		w.v.String(field, text, indices)
		if len(text) == 0 && indices == nil {
			w.v.Empty(field)
		}
		if len(text) == 0 && w.objects != nil {
			w.objects.EmptyIn(field, len(indices))
		}
		return end, nil
	}
	end := jsontext.ScalarEnd(b, i)
	if end < 0 {
		return 0, errDamaged
	}
	switch c := b[i]; {
	case c == '-' || isDigit(c):
		var value numeric.Value
		w.scratch, value = jsontext.ReadNumber(w.scratch[:0], b[i:end])
		w.v.Number(field, w.scratch, value, indices)
	case string(b[i:end]) == "true" || string(b[i:end]) == "false":
		w.v.Bool(field, c == 't', indices)
	case string(b[i:end]) == "null":
		if indices == nil {
			w.v.Null(field)
		}
		if w.objects != nil {
			w.objects.NullIn(field, len(indices))
		}
	default:
		return 0, errDamaged
	}
	return end, nil
}

// largeString visits a string with escapes, in its JSON form, whose text is too large for memory.
func (w *walker) largeString(field int, escaped []byte, indices []int) error {
	spool, err := w.place.Spool()
	if err == nil {
		err = unescapeTo(spool, escaped)
	}
	var text []byte
	if err == nil {
		text, err = spool.Bytes()
	}
	if err == nil {
		w.v.String(field, text, indices)
	}
	return errors.Join(err, spool.Close())
}
