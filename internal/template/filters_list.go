package template

import (
	"slices"
	"strings"
)

// items returns the items of an array, known; the slice is a copy.
func items(v value) ([]value, error) {
	if v.kind != kindArray {
		return nil, errArray
	}
	list := make([]value, len(v.list))
	for i := range v.list {
		list[i] = v.item(i)
	}
	return list, nil
}

// end takes the first item, or character, or the last one.
func end(from int) func(*renderer, value, []value) (value, error) {
	return func(_ *renderer, v value, _ []value) (value, error) {
		switch {
		case v.kind == kindArray && len(v.list) == 0:
			return value{}, nil
		case v.kind == kindArray:
			return v.item(max(from+len(v.list), 0) % len(v.list)), nil
		case v.scalar():
			runes := []rune(v.String())
			if len(runes) == 0 {
				return text(""), nil
			}
			return text(string(runes[(from+len(runes))%len(runes)])), nil
		}
		return value{}, errArray
	}
}

func size(_ *renderer, v value, _ []value) (value, error) {
	switch {
	case v.kind == kindArray:
		return integer(int64(len(v.list))), nil
	case v.kind == kindObject:
		return integer(int64(len(v.object.members))), nil
	case v.scalar():
		return integer(length(v.String())), nil
	}
	return integer(0), nil
}

func join(r *renderer, v value, args []value) (value, error) {
	list, err := items(v)
	if err != nil {
		return value{}, err
	}
	by := " "
	if len(args) > 0 {
		by = args[0].String()
	}
	if err := r.workText(len(by), len(list)); err != nil {
		return value{}, err
	}
	var out []byte
	for i, item := range list {
		if i > 0 {
			out = append(out, by...)
		}
		out = item.append(out)
	}
	return text(string(out)), nil
}

func reverse(_ *renderer, v value, _ []value) (value, error) {
	list, err := items(v)
	slices.Reverse(list)
	return array(list), err
}

func concat(_ *renderer, v value, args []value) (value, error) {
	first, err := items(v)
	if err != nil {
		return value{}, err
	}
	second, err := items(args[0])
	return array(slices.Concat(first, second)), err
}

// property is a member of an object, nil when there is none.
func property(v value, name value) value {
	if v.kind == kindObject {
		member, _ := v.object.get(name.String())
		return member
	}
	return value{}
}

// by is what an item is judged by: itself, or the member that the first argument names.
func by(v value, args []value) value {
	if len(args) > 0 {
		return property(v, args[0])
	}
	return v
}

func mapTo(_ *renderer, v value, args []value) (value, error) {
	list, err := items(v)
	for i, item := range list {
		list[i] = property(item, args[0])
	}
	return array(list), err
}

func compact(_ *renderer, v value, args []value) (value, error) {
	list, err := items(v)
	return array(slices.DeleteFunc(list, func(item value) bool { return by(item, args).kind == kindNil })), err
}

// where keeps the objects whose member has a value, or with one argument, is true.
func where(_ *renderer, v value, args []value) (value, error) {
	list, err := items(v)
	return array(slices.DeleteFunc(list, func(item value) bool {
		member := property(item, args[0])
		if len(args) > 1 {
			return !equal(member, args[1])
		}
		return !member.truthy()
	})), err
}

// uniq keeps the first of equal items.
func uniq(r *renderer, v value, args []value) (value, error) {
	list, err := items(v)
	if err != nil {
		return value{}, err
	}
	kept := list[:0]
	var keys []value
	texts := map[string]bool{} // texts, which are most of what is compared, by hash
	for _, item := range list {
		key := by(item, args)
		if key.kind == kindText {
			if texts[key.text] {
				continue
			}
			texts[key.text] = true
			kept = append(kept, item)
			continue
		}
		if err := r.work(len(keys)); err != nil {
			return value{}, err
		}
		if !slices.ContainsFunc(keys, func(k value) bool { return k.kind == key.kind && equal(k, key) }) {
			keys = append(keys, key)
			kept = append(kept, item)
		}
	}
	return array(kept), nil
}

// order puts numbers before texts and nil last.
func order(a, b value) int {
	if o, ok := compare(a, b); ok {
		return o
	}
	return rank(a) - rank(b)
}

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

func naturalOrder(a, b value) int {
	if a.kind == kindText && b.kind == kindText {
		return strings.Compare(strings.ToLower(a.text), strings.ToLower(b.text))
	}
	return order(a, b)
}

func sorted(compare func(a, b value) int) func(*renderer, value, []value) (value, error) {
	return func(r *renderer, v value, args []value) (value, error) {
		list, err := items(v)
		if err != nil {
			return value{}, err
		}
		if err := r.work(16 * len(list)); err != nil {
			return value{}, err
		}
		slices.SortStableFunc(list, func(a, b value) int { return compare(by(a, args), by(b, args)) })
		return array(list), nil
	}
}
