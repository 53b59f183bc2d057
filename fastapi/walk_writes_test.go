package fastapi

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// noCutoff makes results independent of the machine's load.
const noCutoff = `{"searchCutoffMs": 3600000}`

// create creates an index, which becomes the current one.
func (w *walk) create(uid string) {
	w.path = append(w.path, "create "+uid)
	w.done(w.c.json("POST", "/indexes", fmt.Sprintf(`{"uid": %q, "primaryKey": "id"}`, uid)))
	w.done(w.c.json("PATCH", "/indexes/"+uid+"/settings", noCutoff))
	if r := w.c.json("PUT", "/aliases/also-"+uid, `{"indexUid": "`+uid+`"}`); r.status != 200 {
		w.c.t.Fatalf("an alias: %d %s", r.status, r.body)
	}
	w.all = maps.Clone(walkDefaults)
	w.model = &walkModel{known: map[string]bool{}, set: parseWalkSettings(walkDefaults)}
	w.asked = nil
}

// swap exchanges the models of the two indexes.
func (w *walk) swap() {
	w.all, w.spare.all = w.spare.all, w.all
	w.model, w.spare.model = w.spare.model, w.model
	w.asked = nil
}

// other does something rare.
func (w *walk) other() {
	w.c.t.Helper()
	m := w.model
	switch w.IntN(5) {
	case 4:
		w.path = append(w.path, "swap")
		w.done(w.c.json("POST", "/swap-indexes", `[{"indexes": ["walk", "spare"]}]`))
		w.swap()
	case 0:
		w.done(w.write("POST", "/compact", ""))
	case 1: // one invalid document fails the task
		docs := []map[string]any{w.document(w.ids), {"id": "no id"}, w.document(w.ids)}
		if body := w.c.wait(w.write("POST", "/documents", encode(docs))); !strings.Contains(body, `"code":"invalid_document_id"`) {
			w.c.t.Fatalf("a bad id: %s", body)
		}
	case 2:
		if w.chance(10) {
			w.done(w.write("DELETE", "", ""))
			w.create("walk")
		}
	case 3: // attributes that are not allowed are refused
		for body, allowed := range map[string]bool{
			`{"filter": "n = 1"}`:               m.set.filters("n"),
			`{"facets": ["o.k"]}`:               m.set.filters("o.k"),
			`{"distinct": "g"}`:                 m.set.filters("g"),
			`{"sort": ["b:asc"]}`:               m.set.sorts("b") && m.set.sorting(),
			`{"filter": "_geoRadius(1, 1, 1)"}`: m.set.filters("_geo"),
		} {
			if r := w.c.json("POST", "/indexes/walk/search", body); (r.status == 200) != allowed || r.status != 200 && r.status != 400 {
				w.c.t.Fatalf("%s: %d %s\nsettings %s", body, r.status, r.body, encode(w.all))
			}
		}
	}
}

func (w *walk) changeSettings() {
	change := w.change()
	if w.chance(8) {
		w.done(w.write("DELETE", "/settings", ""))
		w.done(w.write("PATCH", "/settings", noCutoff))
		change = walkDefaults
	} else {
		w.done(w.write("PATCH", "/settings", encode(change)))
	}
	w.all = settingsAfter(w.all, change)
	w.model.set = parseWalkSettings(w.all)
	w.model.reread()
	w.asked = slices.DeleteFunc(w.asked, func(*walkSearch) bool { return true }) // their fields may no longer be allowed
}

// changeDocuments sends some writes at once, and waits for them.
func (w *walk) changeDocuments() {
	w.model.stayed = w.model.order()
	var last reply
	for range 1 + w.IntN(3) {
		last = w.changeSome()
	}
	w.done(last)
	w.list(w.model.stayed)
}

// changeSome sends one write.
func (w *walk) changeSome() reply {
	m := w.model
	switch n := w.IntN(20); {
	case n == 0:
		id := fmt.Sprint(w.id(w.ids))
		m.remove(func(d *walkDoc) bool { return d.id == id })
		return w.write("DELETE", "/documents/"+id, "")
	case n < 3:
		ids := []any{w.id(w.ids), w.id(w.ids), fmt.Sprint(w.id(w.ids))}
		m.remove(func(d *walkDoc) bool {
			return slices.ContainsFunc(ids, func(id any) bool { return fmt.Sprint(id) == d.id })
		})
		return w.write("POST", "/documents/delete-batch", encode(ids))
	case n < 5 && m.canFilter():
		filter, keep := w.filter(m, 1)
		m.remove(keep)
		return w.write("POST", "/documents/delete", encode(map[string]any{"filter": filter}))
	case n == 6 && m.canFilter():
		filter, keep := w.filter(m, 1)
		number := pick(w.walkRandom, uint64(w.IntN(9)), uint64(w.IntN(9)), min(w.large(), math.MaxInt64)) // literals of functions have this limit
		for _, d := range m.docs {
			if keep(d) {
				m.put(map[string]any{"id": d.members["id"], "n": number}, true)
			}
		}
		return w.write("POST", "/documents/edit", encode(map[string]any{"filter": filter, "function": fmt.Sprint("doc.n = ", number)}))
	case n == 7:
		return w.patchSome()
	case n == 5 && w.chance(15):
		m.remove(func(*walkDoc) bool { return true })
		return w.write("DELETE", "/documents", "")
	}
	method := pick(w.walkRandom, "POST", "PUT")
	skip := w.chance(10)
	docs := []map[string]any{}
	for range 1 + w.IntN(pick(w.walkRandom, 2, 4, 12, w.ids)) {
		docs = append(docs, w.document(w.ids))
	}
	for _, doc := range docs {
		if !skip || m.byID(fmt.Sprint(doc["id"])) != nil {
			m.put(doc, method == "PUT")
		}
	}
	path := "/documents"
	if skip {
		path += "?skipCreation=true"
	}
	return w.write(method, path, encode(docs))
}

// patchSome sends a partial update.
func (w *walk) patchSome() reply {
	m := w.model
	var operations []map[string]any
	for range 1 + w.IntN(6) {
		id := fmt.Sprint(w.id(w.ids))
		operation := map[string]any{"id": id}
		d := m.byID(id)
		does := d != nil
		if does && m.canFilter() && w.chance(40) {
			filter, keep := w.filter(m, 1)
			operation["filter"] = filter
			does = keep(d)
		} else if w.chance(30) {
			operation["ifMissing"] = "create"
			does = true
		}
		members := map[string]any{"id": id}
		if d != nil {
			members = maps.Clone(d.members)
		}
		switch w.IntN(3) {
		case 0:
			members["g"] = pick[any](w.walkRandom, "red", "blue", 3)
			operation["set"] = map[string]any{"g": members["g"]}
		case 1:
			delete(members, "u")
			operation["unset"] = []any{"u"}
		case 2:
			o, isObject := members["o"].(map[string]any)
			if _, there := members["o"]; there && !isObject {
				does = false // fails
			}
			o = maps.Clone(o)
			if o == nil {
				o = map[string]any{}
			}
			o["k"] = pick[any](w.walkRandom, 1, "q", true)
			operation["set"] = map[string]any{"o.k": o["k"]}
			members["o"] = o
		}
		if does {
			m.put(members, false)
		}
		operations = append(operations, operation)
	}
	return w.write("PATCH", "/documents", encode(operations))
}

// order returns the positions of documents by id.
func (m *walkModel) order() map[string]int {
	places := map[string]int{}
	for i, d := range m.docs {
		places[d.id] = i
	}
	return places
}

// list compares all documents with those of the model, and learns their order in the index: documents that stay keep their relative order.
func (w *walk) list(before map[string]int) {
	w.c.t.Helper()
	var list struct {
		Results []map[string]any
		Total   int
	}
	w.ask("GET", "/documents?limit=1000", "", &list)
	m := w.model
	if list.Total != len(m.docs) || len(list.Results) != len(m.docs) {
		w.c.t.Fatalf("%d documents of %d are listed, want %d", len(list.Results), list.Total, len(m.docs))
	}
	var docs []*walkDoc
	last := -1
	for _, got := range list.Results {
		d := m.byID(plainID(fmt.Sprint(got["id"])))
		if d == nil || !reflect.DeepEqual(got, plain(d.members)) {
			w.c.t.Fatalf("document\n got %s\nwant %s", encode(got), encode(w.model.members()))
		}
		if place, was := before[d.id]; was {
			if place < last {
				w.c.t.Fatalf("document %s has moved before others", d.id)
			}
			last = place
		}
		docs = append(docs, d)
	}
	m.docs = docs
}
