package document

import (
	"fmt"
	"strings"

	"svc/internal/apierr"
	"svc/internal/jsontext"
)

// IfMissing says what an operation does if there is no document with its id.
type IfMissing uint8

const (
	SkipMissing   IfMissing = iota // nothing
	CreateMissing                  // it changes a new document that has only the id
	FailMissing                    // it fails with document_not_found
)

var ifMissingNames = [...]string{"skip", "create", "fail"}

func (m IfMissing) String() string { return ifMissingNames[m] }

// IfMissingNames returns the names in the order of their numbers.
func IfMissingNames() []string { return ifMissingNames[:] }

// ParseIfMissing reads a name.
func ParseIfMissing(name string) (m IfMissing, ok bool) {
	for i, n := range ifMissingNames {
		if n == name {
			return IfMissing(i), true
		}
	}
	return 0, false
}

// Operation is one entry of a payload of partial updates: an object with the id of a document and the changes to it.
type Operation struct {
	Filter    []byte // JSON as sent; nil: none. It aliases the line.
	IfMissing IfMissing
	changes   []change
}

// verb is what a change does to the value at its path. Within an operation, changes run in the order of these numbers and not of the
// members, because JSON does not define an order of members.
type verb uint8

const (
	set verb = iota
	unset
	increment
	appendTo
	addToSet
	removeFrom
	verbs = iota
)

var verbNames = [verbs]string{set: "set", unset: "unset", increment: "increment", appendTo: "append", addToSet: "addToSet", removeFrom: "remove"}

// change is one path of an operation.
type change struct {
	verb  verb
	path  string
	value []byte // nil for unset
}

// codeOperation is the code of an operation that is malformed.
const codeOperation = "invalid_document_operation"

// Read reads the operation in a line of compact JSON, as Convert writes it, for an index with a primary key. defaults applies to
// missing documents if the operation does not say what to do. The fields of o alias the line. The error is an *apierr.Error:
// invalid_document_operation, invalid_document_if_missing. ExternalID checks the id.
func (o *Operation) Read(line []byte, primaryKey string, defaults IfMissing) error {
	o.Filter, o.IfMissing, o.changes = nil, defaults, o.changes[:0]
	var values [verbs][]byte
	err := Fields(line, func(name, value []byte) error {
		if isKeyPart(primaryKey, name) {
			return nil
		}
		switch string(name) {
		case "filter":
			if string(value) != "null" {
				o.Filter = value
			}
			return nil
		case "ifMissing":
			m, ok := ParseIfMissing(string(jsontext.AppendUnquoted(nil, value)))
			if !ok || value[0] != '"' {
				return apierr.New("invalid_document_if_missing", "`ifMissing` must be one of %s, but it is %s.", quotedList(ifMissingNames[:]), Excerpt(value))
			}
			o.IfMissing = m
			return nil
		}
		for v, known := range verbNames {
			if string(name) == known {
				values[v] = value
				return nil
			}
		}
		return apierr.New(codeOperation, "An operation has the unknown member `%s`. It may have the primary key `%s`, `filter`, `ifMissing` and %s.",
			Excerpt(name), primaryKey, quotedList(verbNames[:]))
	})
	if err != nil {
		return err
	}
	for v, value := range values {
		if value != nil {
			if err := o.readChanges(verb(v), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// isKeyPart reports whether a member of an operation is the primary key, or leads to it.
func isKeyPart(primaryKey string, name []byte) bool {
	n := len(name)
	return string(name) == primaryKey || n < len(primaryKey) && primaryKey[n] == '.' && primaryKey[:n] == string(name)
}

func quotedList(names []string) string {
	return "`" + strings.Join(names, "`, `") + "`"
}

// readChanges reads what one member of an operation says.
func (o *Operation) readChanges(v verb, value []byte) error {
	add := func(path, value []byte) error {
		p := string(path)
		if strings.Contains("."+p+".", "..") {
			return apierr.New(codeOperation, "`%s` has the path %q. A path consists of names separated by dots, and no name is empty.", verbNames[v], Excerpt(path))
		}
		if v == increment && value[0] != '-' && !isDigit(value[0]) {
			return apierr.New(codeOperation, "`increment` adds numbers, but for `%s` it has %s.", p, Excerpt(value))
		}
		o.changes = append(o.changes, change{v, p, value})
		return nil
	}
	switch {
	case v == unset && value[0] == '[':
		var scratch []byte
		return Elements(value, func(path []byte) error {
			if path[0] != '"' {
				return apierr.New(codeOperation, "`unset` is an array of paths, but it has %s.", Excerpt(path))
			}
			scratch = jsontext.AppendUnquoted(scratch[:0], path)
			return add(scratch, nil)
		})
	case v == unset:
		return apierr.New(codeOperation, "`unset` is an array of paths, such as [\"a\", \"b.c\"], but it is %s.", Excerpt(value))
	case value[0] != '{':
		return apierr.New(codeOperation, "`%s` is an object of paths and values, such as {\"a.b\": 1}, but it is %s.", verbNames[v], Excerpt(value))
	}
	return Fields(value, add)
}

// inapplicable returns the error of an operation that the current document does not allow.
func inapplicable(format string, args ...any) error {
	return apierr.New("inapplicable_document_operation", format, args...)
}

// Create appends a document that has nothing but the id of the operation in a line. A primary key with too many levels for a document
// is an *apierr.Error with the code inapplicable_document_operation.
func Create(dst, line []byte, primaryKey string) ([]byte, error) {
	value, _, err := lookup(line, primaryKey)
	if err != nil {
		return nil, err
	}
	if deep := 1 + strings.Count(primaryKey, "."); deep > MaxDepth {
		return nil, inapplicable("The primary key `%.60s` would nest the id %d levels deep; the maximum is %d.", primaryKey, deep, MaxDepth)
	}
	return append(appendNested(append(dst, '{'), primaryKey, value), '}'), nil
}

// A Patcher applies operations to documents. Its memory is used again.
type Patcher struct{ a, b []byte }

// Apply returns the result of an operation on a compact document, or doc itself. The result is valid until the next call, which must
// not get it as its document. The error is an *apierr.Error with the code inapplicable_document_operation, or says that the document
// is damaged.
func (p *Patcher) Apply(doc []byte, o *Operation) ([]byte, error) {
	for i := range o.changes {
		c := &o.changes[i]
		next, err := c.apply(p.b[:0], doc)
		if err != nil {
			return nil, err
		}
		if next == nil { // it changes nothing
			continue
		}
		if len(next) > MaxBytes {
			return nil, inapplicable("`%s` would make the document larger than %d bytes, the maximum.", verbNames[c.verb], MaxBytes)
		}
		doc = next
		p.a, p.b = next, p.a // doc is in a, and b is free
	}
	return doc, nil
}

// slot is the place of a path in a document.
type slot struct {
	found bool
	// The member, when it is found: doc[member:to] with its name, doc[from:to] its value.
	member, from, to int
	// Otherwise the place for it: the rest of the path, before the closing brace at end of an object at this depth.
	rest  string
	end   int
	depth int
	in    string // when not "": no object stands at this part of the path, and the path leads nowhere
	is    []byte // what stands there
}

// find looks up a path in the object doc[at:]. A member whose name is the whole path takes precedence over nested objects.
func find(doc []byte, at int, path string, depth int) (slot, error) {
	end := jsontext.ValueEnd(doc, at)
	if end < 0 {
		return slot{}, errDamaged
	}
	m, err := membersOf(doc[at:end])
	if err != nil {
		return slot{}, err
	}
	into := slot{rest: path, end: end - 1, depth: depth}
	inside := false
	for m.next() {
		name, to := m.name(), at+m.i
		from := to - len(m.value)
		if string(name) == path {
			return slot{found: true, member: from - len(m.raw) - len(`"":`), from: from, to: to, depth: depth}, nil
		}
		if inside && into.found || !isKeyPart(path, name) {
			continue
		}
		s := slot{in: string(name), is: m.value}
		if m.value[0] == '{' {
			if s, err = find(doc, from, path[len(name)+1:], depth+1); err != nil {
				return slot{}, err
			}
		}
		if s.found || !inside {
			into, inside = s, true
		}
	}
	return into, m.err
}

// apply appends the document with one change to dst. It returns nil when nothing changes.
func (c *change) apply(dst, doc []byte) ([]byte, error) {
	s, err := find(doc, 0, c.path, 1)
	if err != nil {
		return nil, err
	}
	if !s.found {
		return c.insert(dst, doc, &s)
	}
	was := doc[s.from:s.to]
	switch c.verb {
	case set:
		if string(was) == string(c.value) {
			return nil, nil
		}
		if err := c.fits(s.depth); err != nil {
			return nil, err
		}
		return replace(dst, doc, s.from, s.to, c.value), nil
	case unset:
		from, to := s.member, s.to
		if doc[to] == ',' {
			to++
		} else if doc[from-1] == ',' {
			from--
		}
		return replace(dst, doc, from, to, nil), nil
	case increment:
		return c.add(dst, doc, &s)
	}
	return c.changeList(dst, doc, &s)
}

func replace(dst, doc []byte, from, to int, value []byte) []byte {
	dst = append(dst, doc[:from]...)
	dst = append(dst, value...)
	return append(dst, doc[to:]...)
}

// insert is apply where nothing stands at the path.
func (c *change) insert(dst, doc []byte, s *slot) ([]byte, error) {
	if c.verb == unset || c.verb == removeFrom {
		return nil, nil
	}
	if s.in != "" {
		return nil, inapplicable("`%s` cannot change `%s`: `%s` in the path is not an object but %s.", verbNames[c.verb], c.path, s.in, Excerpt(s.is))
	}
	if err := c.fits(s.depth + strings.Count(s.rest, ".")); err != nil {
		return nil, err
	}
	dst = append(dst, doc[:s.end]...)
	if doc[s.end-1] != '{' {
		dst = append(dst, ',')
	}
	value := c.value
	if c.verb == appendTo || c.verb == addToSet {
		var err error
		if value, err = c.list(nil); err != nil {
			return nil, err
		}
	}
	dst = appendNested(dst, s.rest, value)
	return append(dst, doc[s.end:]...), nil
}

// appendNested appends a member, whose path may lead through new objects.
func appendNested(dst []byte, path string, value []byte) []byte {
	name, rest, nested := strings.Cut(path, ".")
	dst = append(jsontext.AppendQuoted(dst, name), ':')
	if !nested {
		return append(dst, value...)
	}
	return append(appendNested(append(dst, '{'), rest, value), '}')
}

// fits refuses a value that would be nested too deeply in an object at some depth.
func (c *change) fits(depth int) error {
	deep := depth + depthOf(c.value)
	if (c.verb == appendTo || c.verb == addToSet) && c.value[0] != '[' { // it becomes an element
		deep++
	}
	if deep > MaxDepth {
		return inapplicable("`%s` would nest `%.60s` %d levels deep; the maximum is %d.", verbNames[c.verb], c.path, deep, MaxDepth)
	}
	return nil
}

// depthOf returns how many objects and arrays are open at once in a compact value.
func depthOf(value []byte) (most int) {
	depth := 0
	for i := 0; i < len(value); {
		switch value[i] {
		case '"':
			i = jsontext.StringEnd(value, i)
			if i < 0 {
				return most
			}
			continue
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
		i++
	}
	return most
}

// add increments the number at a path. Null counts as 0.
func (c *change) add(dst, doc []byte, s *slot) ([]byte, error) {
	was := doc[s.from:s.to]
	if string(was) == "null" {
		return replace(dst, doc, s.from, s.to, c.value), nil
	}
	if was[0] != '-' && !isDigit(was[0]) {
		return nil, inapplicable("`increment` adds to numbers, but `%s` is %s.", c.path, Excerpt(was))
	}
	var room [32]byte
	sum, ok := appendSum(room[:0], was, c.value)
	if !ok {
		return nil, inapplicable("`increment` would exceed the range of numbers in `%s`: %s and %s.", c.path, Excerpt(was), Excerpt(c.value))
	}
	if string(sum) == string(was) {
		return nil, nil
	}
	return replace(dst, doc, s.from, s.to, sum), nil
}

// changeList changes the array at a path. Null counts as no array.
func (c *change) changeList(dst, doc []byte, s *slot) ([]byte, error) {
	was := doc[s.from:s.to]
	if string(was) == "null" {
		if c.verb == removeFrom {
			return nil, nil
		}
		was = nil
	} else if was[0] != '[' {
		return nil, inapplicable("`%s` changes arrays, but `%s` is %s.", verbNames[c.verb], c.path, Excerpt(was))
	}
	if c.verb != removeFrom {
		if err := c.fits(s.depth); err != nil {
			return nil, err
		}
	}
	is, err := c.list(was)
	if err != nil || is == nil {
		return nil, err
	}
	return replace(dst, doc, s.from, s.to, is), nil
}

// list returns the array that results from a change of an array, or of a missing one. It is nil if the array does not change.
func (c *change) list(was []byte) ([]byte, error) {
	var have, named [][]byte
	gather := func(into *[][]byte) func([]byte) error {
		return func(v []byte) error {
			*into = append(*into, v)
			return nil
		}
	}
	if c.value[0] != '[' {
		named = [][]byte{c.value}
	} else if err := Elements(c.value, gather(&named)); err != nil {
		return nil, fmt.Errorf("cannot read an operation: %w", err)
	}
	if c.verb == appendTo && was != nil {
		if len(named) == 0 {
			return nil, nil
		}
		is := append([]byte(nil), was[:len(was)-1]...)
		return appendElements(is, named), nil
	}
	if was != nil {
		if err := Elements(was, gather(&have)); err != nil {
			return nil, err
		}
	}
	before := len(have)
	switch c.verb {
	case appendTo:
		have = append(have, named...)
	case addToSet:
		known := newValueSet(have)
		for _, v := range named {
			if known.add(v) {
				have = append(have, v)
			}
		}
	case removeFrom:
		gone := newValueSet(named)
		kept := have[:0]
		for _, v := range have {
			if !gone.has(v) {
				kept = append(kept, v)
			}
		}
		have = kept
	}
	if was != nil && len(have) == before {
		return nil, nil
	}
	return appendElements([]byte{'['}, have), nil
}

// appendElements appends elements to an array that is open, and closes it.
func appendElements(dst []byte, elements [][]byte) []byte {
	for _, v := range elements {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = append(dst, v...)
	}
	return append(dst, ']')
}
