package document

import (
	"bytes"
	"errors"
	"fmt"

	"svc/internal/jsontext"
)

// Span is where an object of a list stands, and one of its members.
type Span struct {
	From, To     int // of the object
	Member, Ends int // of the member with its name, from quote to end; both 0: it has none
	Value        int // where the member's value begins
}

// outliner notes where things stand while they are scanned.
type outliner struct {
	scanner
	list, member string
	found        bool // the list
	spans        []Span
	each         func(name, value []byte) error
	err          error // of each
	scratch      []byte
}

// Outline validates a JSON object, whose member list is an array of objects, in one pass. It returns the object without insignificant
// white space, and where each object of the list stands in it, with its member of a name. each gets all other members, their names
// unescaped, as Compact would leave them; they may come twice. An error of each is returned. What is no JSON, has a list that is none,
// or has either member twice, is an error that says where. The object may be read over by 8 bytes, and is not to be used again: it
// has to be the caller's own.
func Outline(object []byte, list, member string, each func(name, value []byte) error) ([]byte, []Span, error) {
	object = bytes.TrimSpace(object)
	o := outliner{list: list, member: member, each: each}
	o.data, o.end = append(object, make([]byte, Padding)...), len(object)
	if o.data[0] != '{' {
		return nil, nil, errors.New("it is no JSON object")
	}
	i := o.outer()
	if i >= 0 && i < o.end {
		i = o.failAt(i, "there is more after its end")
	}
	switch {
	case o.err != nil:
		return nil, nil, o.err
	case i < 0:
		return nil, nil, fmt.Errorf("at byte %d: %s", o.at+1, o.fail)
	case !o.found:
		return nil, nil, fmt.Errorf("it has no member %s", list)
	case o.from > 0: // there was white space: without it, once more
		return Outline(append(o.out, o.data[o.from:i]...), list, member, each)
	}
	return o.data[:i], o.spans, nil
}

// name scans the name of a member at i and the colon after it. It returns where the value begins, or −1.
func (o *outliner) name(i int) (name []byte, end int) {
	if o.data[i] != '"' {
		return nil, o.failAt(i, "expected a field name in double quotes")
	}
	end, escaped := o.str(i + 1)
	if end < 0 {
		return nil, -1
	}
	name = o.data[i+1 : end-1]
	if escaped {
		o.scratch = jsontext.AppendUnescaped(o.scratch[:0], name)
		name = o.scratch
	}
	if end = o.space(end); o.data[end] != ':' {
		return nil, o.failAt(end, "expected a colon after a field name")
	}
	return name, end + 1
}

// next returns where what follows a comma at i begins. ends says that closing is there instead.
func (o *outliner) next(i int, closing byte) (at int, ends bool) {
	switch o.data[i] {
	case ',':
		return o.space(i + 1), false
	case closing:
		return i + 1, true
	}
	return o.failAt(i, "expected a comma or the end of an object or array"), true
}

// Depths are counted from the objects of the list, which are documents.
const outerDepth = -1

// outer scans the object.
func (o *outliner) outer() int {
	i := o.space(1)
	if o.data[i] == '}' {
		return i + 1
	}
	for ends := false; ; {
		name, value := o.name(i)
		if value < 0 {
			return -1
		}
		if string(name) == o.list {
			if o.found {
				return o.failAt(i, "there are two members "+o.list)
			}
			o.found = true
			i = o.elements(o.space(value))
		} else if i = o.value(value, outerDepth); i >= 0 && o.from == 0 {
			if o.err = o.each(name, o.data[value:i]); o.err != nil {
				return -1
			}
		}
		if i < 0 {
			return -1
		}
		if i, ends = o.next(i, '}'); ends {
			return i
		}
	}
}

// elements scans the list.
func (o *outliner) elements(i int) int {
	if o.data[i] != '[' {
		return o.failAt(i, "expected an array of objects")
	}
	if i = o.space(i + 1); o.data[i] == ']' {
		return o.space(i + 1)
	}
	for ends := false; ; {
		if i = o.element(i); i < 0 {
			return -1
		}
		if i, ends = o.next(o.space(i), ']'); ends {
			if i < 0 {
				return -1
			}
			return o.space(i)
		}
	}
}

// element scans an object of the list.
func (o *outliner) element(i int) int {
	s := Span{From: i}
	if o.data[i] != '{' {
		return o.failAt(i, "expected an object")
	}
	if i = o.space(i + 1); o.data[i] == '}' {
		s.To = i + 1
		o.spans = append(o.spans, s)
		return i + 1
	}
	for ends := false; ; {
		at := i
		name, value := o.name(i)
		if value < 0 {
			return -1
		}
		wanted := string(name) == o.member
		if i = o.value(value, outerDepth+2); i < 0 {
			return -1
		}
		if wanted {
			if s.Ends > 0 {
				return o.failAt(at, "there are two members "+o.member)
			}
			s.Member, s.Value, s.Ends = at, value, i
		}
		if i, ends = o.next(i, '}'); ends {
			s.To = i
			o.spans = append(o.spans, s)
			return i
		}
	}
}
