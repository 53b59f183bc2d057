package fastapi

import (
	"slices"
	"strings"
)

// walkElements is the pattern of the attributes whose objects are filtered separately.
const walkElements = "v.*"

// elements makes what stands at v: objects, in arrays or alone, and what is no object.
func (r walkRandom) elements() any {
	one := func() any {
		e := map[string]any{}
		if r.chance(80) {
			e["c"] = pick[any](r, "red", "Red", "RED ", "x y", []any{"red", "q"}, 4, true, "", nil)
		}
		if r.chance(80) {
			e["s"] = pick[any](r, 1, 2, 4, 9, 1.5, -2, "4", []any{2, 100}, r.large(), []any{})
		}
		switch r.IntN(6) {
		case 0:
			e["d"] = map[string]any{"k": r.value()}
		case 1:
			e["d"] = []any{map[string]any{"k": r.scalar()}, map[string]any{"k": r.scalar(), "l": 1}}
		case 2:
			e["d"] = r.value()
		}
		return e
	}
	list := []any{}
	for range r.IntN(4) {
		list = append(list, one())
	}
	switch r.IntN(8) {
	case 0:
		return one()
	case 1:
		return []any{list, one(), r.scalar()}
	}
	return list
}

// elements returns the objects at a path of a document, each as a document that has nothing else. It looks for them once.
func (m *walkModel) elements(d *walkDoc, path string) []*walkDoc {
	if of, ok := d.elements[path]; ok {
		return of
	}
	var objects []map[string]any
	var at func(value any, names []string)
	at = func(value any, names []string) {
		switch value := value.(type) {
		case []any:
			for _, one := range value {
				at(one, names)
			}
		case map[string]any:
			if len(names) == 0 {
				objects = append(objects, value)
			} else {
				at(value[names[0]], names[1:])
			}
		}
	}
	names := strings.Split(path, ".")
	at(d.members, names)
	of := []*walkDoc{}
	for _, object := range objects {
		var members any = object
		for _, name := range slices.Backward(names) {
			members = map[string]any{name: members}
		}
		one := &walkDoc{members: members.(map[string]any)}
		m.read(one)
		of = append(of, one)
	}
	if d.elements == nil {
		d.elements = map[string][]*walkDoc{}
	}
	d.elements[path] = of
	return of
}

// braces makes a filter on one object at a path of a document, and the test of the document.
func (r walkRandom) braces(m *walkModel, path string) (string, func(*walkDoc) bool) {
	leaf := func() (string, func(*walkDoc) bool) {
		if path == "v" && r.chance(15) {
			filter, keep := r.braces(m, "v.d")
			return strings.TrimPrefix(filter, "v."), keep
		}
		field := pick(r, "v.c", "v.c", "v.s", "v.s", "v.d", "v.d.k")
		if path == "v.d" {
			field = pick(r, "v.d.k", "v.d.k", "v.d.l")
		}
		filter, keep := r.condition(m, field)
		return strings.TrimPrefix(filter, path+"."), keep
	}
	filter, keep := r.joined(2, leaf)
	return path + ".{" + filter + "}", func(d *walkDoc) bool { return slices.ContainsFunc(m.elements(d, path), keep) }
}
