package document

import (
	"bytes"
	"errors"
	"fmt"

	"svc/internal/jsontext"
)

// Element is an object of a list, with the position of one of its members.
type Element struct {
	Object      []byte
	Value, Ends int // of the member's value
	Member      int // where the member begins, with its name in quotes
}

// outliner notes where things stand while they are scanned.
type outliner struct {
	scanner
	list, member string
	found        bool // the list
	count        int  // of its elements
	each         func(name, value []byte) error
	element      func(i int, e Element) error
	err          error // of each or element
	scratch      []byte
}

// Outline validates a JSON object in one pass. Its member list must be an array of objects of up to MaxHitDepth levels that each have
// the named member once. Outline calls element for each object of the list, and each for all other members of the outer object, with
// unescaped names. Both get text without insignificant white space, which stays valid with the object. If the object has white space,
// a second pass repeats the calls for the text before it. An error of either callback ends the pass and is returned. Other errors say
// where the object is wrong. Outline owns the object from then on, and may read 8 bytes beyond its end. It returns the object without
// white space.
func Outline(object []byte, list, member string, each func(name, value []byte) error, element func(i int, e Element) error) ([]byte, error) {
	object = bytes.TrimSpace(object)
	o := outliner{list: list, member: member, each: each, element: element}
	o.loose = true
	o.data, o.end = append(object, make([]byte, Padding)...), len(object)
	if o.data[0] != '{' {
		return nil, errors.New("it is not a JSON object")
	}
	o.out = o.data[:0] // compacts in place: the scanner never writes beyond what it has read
	i := o.outer()
	if i >= 0 && i < o.end {
		i = o.failAt(i, "it has trailing text")
	}
	switch {
	case o.err != nil:
		return nil, o.err
	case i < 0:
		return nil, fmt.Errorf("at byte %d: %s", o.at+1, o.fail)
	case !o.found:
		return nil, fmt.Errorf("it has no member %s", list)
	case o.from > 0: // there was white space: without it, once more
		return Outline(append(o.out, o.data[o.from:i]...), list, member, each, element)
	}
	return o.data[:i], nil
}

// longestName is the maximum length in bytes of a name whose escapes are decoded. All names that callers know are shorter.
const longestName = 256

// name scans the name of a member at i and the colon after it. It returns the name, whether it is the wanted one, and where the value
// begins, or −1. The name is valid only if there was no white space so far.
func (o *outliner) name(i int, wanted string) (name []byte, found bool, end int) {
	if o.data[i] != '"' {
		return nil, false, o.failAt(i, "expected a field name in double quotes")
	}
	end, escaped := o.str(i + 1)
	if end < 0 {
		return nil, false, -1
	}
	name = o.data[i+1 : end-1]
	if escaped && len(name) <= longestName {
		o.scratch = jsontext.AppendUnescaped(o.scratch[:0], name)
		name = o.scratch
	}
	found = string(name) == wanted // before white space that follows moves the name
	if end = o.space(end); o.data[end] != ':' {
		return nil, false, o.failAt(end, "expected a colon after a field name")
	}
	return name, found, end + 1
}

// next returns where the value after a comma at i begins. ends is true if closing is there instead.
func (o *outliner) next(i int, closing byte) (at int, ends bool) {
	switch o.data[i] {
	case ',':
		return o.space(i + 1), false
	case closing:
		return i + 1, true
	}
	return o.failAt(i, "expected a comma or the end of an object or array"), true
}

// outerDepth is the depth around the object, whose list has hits.
const outerDepth = hitDepth - 2

// outer scans the object.
func (o *outliner) outer() int {
	i := o.space(1)
	if o.data[i] == '}' {
		return i + 1
	}
	for ends := false; ; {
		name, found, value := o.name(i, o.list)
		if value < 0 {
			return -1
		}
		if found {
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
		if i = o.listed(i); i < 0 {
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

// listed scans an object of the list and passes it to element.
func (o *outliner) listed(i int) int {
	from, e := i, Element{}
	if o.data[i] != '{' {
		return o.failAt(i, "expected an object")
	}
	if i = o.space(i + 1); o.data[i] == '}' {
		return o.failAt(from, "there is no member "+o.member)
	}
	for ends := false; ; {
		at := i
		_, wanted, value := o.name(i, o.member)
		if value < 0 {
			return -1
		}
		if i = o.value(value, outerDepth+2); i < 0 {
			return -1
		}
		if wanted {
			if e.Ends > 0 {
				return o.failAt(at, "there are two members "+o.member)
			}
			e.Member, e.Value, e.Ends = at-from, value-from, i-from
		}
		if i, ends = o.next(i, '}'); ends {
			break
		}
	}
	if i >= 0 && e.Ends == 0 {
		return o.failAt(from, "there is no member "+o.member)
	}
	if i >= 0 && o.from == 0 {
		e.Object = o.data[from:i:i]
		if o.err = o.element(o.count, e); o.err != nil {
			return -1
		}
		o.count++
	}
	return i
}
