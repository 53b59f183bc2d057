package document

import (
	"bytes"
	"errors"
	"slices"

	"svc/internal/jsontext"
)

var errDamaged = errors.New("cannot read a document: it is not one compact JSON object")

var errNoArray = errors.New("it is not one compact JSON array")

// Fields calls f for every first-level field of a document with its name (unescaped) and raw value, in order.
// Both are valid during the call only; value aliases doc. An error of f ends the walk and is returned.
func Fields(doc []byte, f func(name, value []byte) error) error {
	m, err := membersOf(doc)
	if err != nil {
		return err
	}
	for m.next() {
		if err := f(m.name(), m.value); err != nil {
			return err
		}
	}
	return m.err
}

// Members is Fields for any compact object. f also gets the names as they are written, without quotes.
func Members(object []byte, f func(raw, name, value []byte) error) error {
	m, err := membersOf(object)
	if err != nil {
		return err
	}
	for m.next() {
		if err := f(m.raw, m.name(), m.value); err != nil {
			return err
		}
	}
	return m.err
}

// AppendMember appends a member to an object that is not closed yet. The name is in its JSON form without quotes.
func AppendMember(dst, raw, value []byte) []byte { return appendMember(dst, raw, value) }

// Elements calls f with the raw value of every element of a compact JSON array, in order, under the same rules as Fields. Other text
// is an error.
func Elements(array []byte, f func(value []byte) error) error {
	n := len(array)
	if n < 2 || array[0] != '[' || array[n-1] != ']' {
		return errNoArray
	}
	for i := 1; i < n-1; i++ { // past the comma
		end := jsontext.ValueEnd(array, i)
		if end <= i || end >= n || end < n-1 && array[end] != ',' || end == n-2 {
			return errNoArray
		}
		if err := f(array[i:end:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// members walks the members of a compact object.
type members struct {
	b       []byte
	i       int
	raw     []byte // the name, quotes left out
	escaped bool   // the name has an escape in it
	value   []byte
	scratch []byte
	err     error
}

func membersOf(object []byte) (members, error) {
	n := len(object)
	if n < 2 || object[0] != '{' || object[n-1] != '}' {
		return members{}, errDamaged
	}
	return members{b: object, i: 1}, nil
}

// next moves to the next member of a compact object. Invalid text sets err.
func (m *members) next() bool {
	if m.i >= len(m.b)-1 {
		return false
	}
	if m.b[m.i] == ',' && m.i > 1 {
		m.i++
	}
	if m.b[m.i] != '"' {
		m.err = errDamaged
		return false
	}
	start := m.i + 1
	end, escaped := jsontext.TextEnd(m.b, start)
	if end < 0 || end >= len(m.b) || m.b[end] != ':' {
		m.err = errDamaged
		return false
	}
	m.raw, m.escaped = m.b[start:end-1], escaped
	last := jsontext.ValueEnd(m.b, end+1)
	if last < 0 || last >= len(m.b) || m.b[last] != ',' && m.b[last] != '}' {
		m.err = errDamaged
		return false
	}
	m.value = m.b[end+1 : last]
	m.i = last
	return true
}

// name returns the unescaped name of the member, valid until the next call.
func (m *members) name() []byte {
	if !m.escaped {
		return m.raw
	}
	m.scratch = jsontext.AppendUnescaped(m.scratch[:0], m.raw)
	return m.scratch
}

// appendDistinct appends a compact valid value so that no object in it has a key twice:
// the first place stays, with the last value.
func appendDistinct(dst, value []byte) []byte {
	switch value[0] {
	case '{':
		m, _ := membersOf(value)
		var names, values [][]byte
		place := make(map[string]int)
		for m.next() {
			at, ok := place[string(m.name())]
			if !ok {
				at = len(names)
				place[string(m.name())] = at
				names = append(names, m.raw)
				values = append(values, nil)
			}
			values[at] = m.value
		}
		dst = append(dst, '{')
		for i, name := range names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, '"')
			dst = append(dst, name...)
			dst = append(dst, '"', ':')
			dst = appendDistinct(dst, values[i])
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i := 1; i < len(value)-1; {
			end := jsontext.ValueEnd(value, i)
			dst = appendDistinct(dst, value[i:end])
			if i = end; value[i] == ',' {
				dst = append(dst, ',')
				i++
			}
		}
		return append(dst, ']')
	}
	return append(dst, value...)
}

// AppendMerge appends a document with the first-level fields of change merged over those of old. A field of both keeps its place and
// takes the value of change. A new field goes to the end. The members of _vectors, one per embedder, are merged in the same way. dst
// must not share memory with old and change.
func AppendMerge(dst, old, change []byte) ([]byte, error) {
	var own [32]field
	fields := own[:0]
	m, err := membersOf(change)
	if err != nil {
		return nil, err
	}
	for m.next() {
		fields = append(fields, field{name: unescaped(&m), raw: m.raw, value: m.value})
	}
	if m.err != nil {
		return nil, m.err
	}
	// More fields than that are looked up by name, not one by one.
	const few = 16
	var place map[string]int
	if len(fields) > few {
		place = make(map[string]int, len(fields))
		for i := range fields {
			place[string(fields[i].name)] = i
		}
	}
	find := func(name []byte) int {
		if place != nil {
			if i, ok := place[string(name)]; ok {
				return i
			}
			return -1
		}
		return slices.IndexFunc(fields, func(f field) bool { return bytes.Equal(f.name, name) })
	}

	out := append(slices.Grow(dst, len(old)+len(change)), '{')
	if m, err = membersOf(old); err != nil {
		return nil, err
	}
	for m.next() {
		value := m.value
		if i := find(m.name()); i >= 0 {
			fields[i].used = true
			if value = fields[i].value; value[0] == '{' && m.value[0] == '{' && string(fields[i].name) == VectorsField {
				if value, err = AppendMerge(nil, m.value, value); err != nil {
					return nil, err
				}
			}
		}
		out = appendMember(out, m.raw, value)
	}
	if m.err != nil {
		return nil, m.err
	}
	for _, f := range fields {
		if !f.used {
			out = appendMember(out, f.raw, f.value)
		}
	}
	return append(out, '}'), nil
}

type field struct {
	name, raw, value []byte
	used             bool
}

// unescaped returns the name of the member, valid as long as the object.
func unescaped(m *members) []byte {
	if !m.escaped {
		return m.raw
	}
	return jsontext.AppendUnescaped(nil, m.raw)
}

// appendMember appends a member to an open object. The name is in its JSON form.
func appendMember(dst, raw, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, raw...)
	dst = append(dst, '"', ':')
	return append(dst, value...)
}
