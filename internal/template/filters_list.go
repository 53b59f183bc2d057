package template

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// items returns the items of an array, known; the slice is a copy.
func (r *renderer) items(v value) ([]value, error) {
	if v.kind != kindArray {
		return nil, errArray
	}
	return r.appendItems(r.makeList(len(v.list)), v), nil
}

// appendItems appends the items of an array. There is room for them, unless the rendering has ended.
func (r *renderer) appendItems(dst []value, v value) []value {
	for i := range v.list {
		if r.err != nil {
			return nil
		}
		dst = append(dst, v.item(r.meter, i))
	}
	return dst
}

// end takes the first item, or character, or the last one.
func end(last bool) func(*renderer, value, []value) (value, error) {
	return func(r *renderer, v value, _ []value) (value, error) {
		switch {
		case v.kind == kindArray && len(v.list) == 0:
			return value{}, nil
		case v.kind == kindArray && last:
			return v.item(r.meter, len(v.list)-1), nil
		case v.kind == kindArray:
			return v.item(r.meter, 0), nil
		case v.scalar() && last:
			s := r.text(v)
			_, n := utf8.DecodeLastRuneInString(s)
			return text(s[len(s)-n:]), nil
		case v.scalar():
			s := r.text(v)
			_, n := utf8.DecodeRuneInString(s)
			return text(s[:n]), nil
		}
		return value{}, errArray
	}
}

func size(r *renderer, v value, _ []value) (value, error) {
	switch {
	case v.kind == kindArray:
		return integer(int64(len(v.list))), nil
	case v.kind == kindObject:
		return integer(int64(len(v.object.members))), nil
	case v.scalar():
		return integer(r.length(v)), nil
	}
	return integer(0), nil
}

func join(r *renderer, v value, args []value) (value, error) {
	if v.kind != kindArray {
		return value{}, errArray
	}
	by := " "
	if len(args) > 0 {
		by = r.text(args[0])
	}
	var out []byte
	for i := range v.list {
		if r.work(1) != nil {
			break
		}
		if i > 0 {
			out = r.appendText(out, by)
		}
		out = r.append(out, v.list[i], 0)
	}
	return text(r.string(out)), nil
}

func reverse(r *renderer, v value, _ []value) (value, error) {
	list, err := r.items(v)
	slices.Reverse(list)
	return array(list), err
}

func concat(r *renderer, v value, args []value) (value, error) {
	if v.kind != kindArray || args[0].kind != kindArray {
		return value{}, errArray
	}
	list := r.makeList(len(v.list) + len(args[0].list))
	return array(r.appendItems(r.appendItems(list, v), args[0])), nil
}

// property returns a member of an object, or nil.
func (r *renderer) property(v value, name string) value {
	if v.kind == kindObject {
		member, _ := v.object.get(r.meter, name)
		return member
	}
	return value{}
}

// by returns what an item is judged by: itself, or the member that the first argument names.
func (r *renderer) by(args []value) func(item value) value {
	if len(args) == 0 {
		return func(item value) value { return item }
	}
	name := r.text(args[0])
	return func(item value) value { return r.property(item, name) }
}

func mapTo(r *renderer, v value, args []value) (value, error) {
	list, err := r.items(v)
	of := r.by(args)
	for i := range list {
		list[i] = of(list[i])
	}
	return array(list), err
}

func compact(r *renderer, v value, args []value) (value, error) {
	list, err := r.items(v)
	of := r.by(args)
	return array(slices.DeleteFunc(list, func(item value) bool { return of(item).kind == kindNil })), err
}

// where selects the objects whose member has a value, or with one argument, is true.
func where(r *renderer, v value, args []value) (value, error) {
	list, err := r.items(v)
	of := r.by(args)
	return array(slices.DeleteFunc(list, func(item value) bool {
		if len(args) > 1 {
			return !r.equal(of(item), args[1])
		}
		return !of(item).truthy()
	})), err
}

// keyBytes is what uniq takes for a text that it has seen.
const keyBytes = 96

// uniq keeps the first of equal items.
func uniq(r *renderer, v value, args []value) (value, error) {
	list, err := r.items(v)
	if err != nil {
		return value{}, err
	}
	kept := list[:0]
	keys := r.makeList(len(list))
	texts := map[string]bool{} // strings, the most common values, are compared by hash
	of := r.by(args)
	for _, item := range list {
		key := of(item)
		if key.kind == kindText {
			if r.work(len(key.text)/workBytes) != nil {
				break
			}
			if texts[key.text] {
				continue
			}
			if r.make(keyBytes) != nil {
				break
			}
			texts[key.text] = true
			kept = append(kept, item)
			continue
		}
		if !slices.ContainsFunc(keys, func(k value) bool { return k.kind == key.kind && r.equal(k, key) }) {
			keys = append(keys, key)
			kept = append(kept, item)
		}
		if r.err != nil {
			break
		}
	}
	return array(kept), nil
}

// order puts numbers before texts and nil last.
func (r *renderer) order(a, b value) int {
	if o, ok := r.compare(a, b); ok {
		return o
	}
	return rank(a) - rank(b)
}

// rank is the place of a kind of values in a sorted list. Values of different kinds have no order otherwise.
func rank(v value) int {
	switch v.kind {
	case kindBool:
		return 0
	case kindInt, kindFloat:
		return 1
	case kindText:
		return 2
	case kindNil:
		return 9
	}
	return 3
}

// sorted makes the filters that sort, natural without regard to case.
func sorted(natural bool) func(*renderer, value, []value) (value, error) {
	type keyed struct{ key, item value }
	return func(r *renderer, v value, args []value) (value, error) {
		list, err := r.items(v)
		if err != nil || r.make(2*valueBytes*len(list)) != nil {
			return value{}, err
		}
		of := r.by(args)
		all := make([]keyed, len(list))
		for i, item := range list {
			k := keyed{of(item), item}
			if natural && k.key.kind == kindText && r.make(4*len(k.key.text)) == nil {
				k.key.text = strings.ToLower(k.key.text)
			}
			if r.err != nil {
				return value{}, nil
			}
			all[i] = k
		}
		slices.SortStableFunc(all, func(a, b keyed) int { return r.order(a.key, b.key) })
		for i := range all {
			list[i] = all[i].item
		}
		return array(list), nil
	}
}
