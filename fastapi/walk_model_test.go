package fastapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"svc/internal/document"
	"svc/internal/geo"
	"svc/internal/numeric"
	"svc/internal/text"
)

// walkModel is the reference for an index: it keeps the documents as sent and tests them one by one.
type walkModel struct {
	docs   []*walkDoc // ordered by their numbers in the index
	known  map[string]bool
	set    walkSettings
	stayed map[string]int // positions of documents by id before some writes; deleted ones may return at other positions
}

// walkDoc is a document, with its values at each path.
type walkDoc struct {
	id      string
	members map[string]any
	fields  map[string]*walkField
	words   map[string][]walkSpot

	elements map[string][]*walkDoc // by path, as far as requested
}

// walkField has the values of a document at one path.
type walkField struct {
	path        string
	null, empty bool
	numbers     []walkNumber
	keys        []string // strings and booleans as facets compare them
	spellings   []string // the same as written
	positions   text.Positions
}

type walkSpot struct {
	field    string
	position int
}

func (m *walkModel) byID(id string) *walkDoc {
	if i := slices.IndexFunc(m.docs, func(d *walkDoc) bool { return d.id == id }); i >= 0 {
		return m.docs[i]
	}
	return nil
}

// put adds or replaces a document. With merge, it keeps the other members of the existing document.
func (m *walkModel) put(members map[string]any, merge bool) {
	id := fmt.Sprint(members["id"])
	d := m.byID(id)
	if d == nil {
		d = &walkDoc{id: id, members: map[string]any{}}
		m.docs = append(m.docs, d)
	} else if !merge {
		d.members = map[string]any{}
	}
	maps.Copy(d.members, members)
	m.read(d)
}

// remove deletes the selected documents.
func (m *walkModel) remove(meant func(*walkDoc) bool) {
	m.docs = slices.DeleteFunc(m.docs, func(d *walkDoc) bool {
		if !meant(d) {
			return false
		}
		delete(m.stayed, d.id)
		return true
	})
}

// reread parses all documents again under the current settings.
func (m *walkModel) reread() {
	for _, d := range m.docs {
		m.read(d)
	}
}

func (m *walkModel) read(d *walkDoc) {
	raw, err := json.Marshal(d.members)
	if err != nil {
		panic(err)
	}
	r := &walkReader{m: m, d: d}
	d.fields, d.words, d.elements = map[string]*walkField{}, map[string][]walkSpot{}, nil
	if err := document.Walk(raw, r); err != nil {
		panic(err)
	}
}

// walkReader receives the values of a document.
type walkReader struct {
	m      *walkModel
	d      *walkDoc
	fields []*walkField
}

func (r *walkReader) Field(path []byte) int {
	f := r.d.fields[string(path)]
	if f == nil {
		f = &walkField{path: string(path)}
		r.d.fields[f.path] = f
		r.m.known[f.path] = true
	}
	r.fields = append(r.fields, f)
	return len(r.fields) - 1
}

func (r *walkReader) Visit(field int) { r.fields[field].positions.Visit() }

func (r *walkReader) index(f *walkField, s string) {
	if !r.m.set.searches(f.path) {
		return
	}
	r.m.set.analyzer.Index(&f.positions, []byte(s), nil, func(word []byte, position uint16) {
		r.d.words[string(word)] = append(r.d.words[string(word)], walkSpot{f.path, int(position)})
	})
}

func (r *walkReader) key(f *walkField, s string) {
	if key := string(text.FacetKey(nil, []byte(s))); key != "" {
		f.keys, f.spellings = append(f.keys, key), append(f.spellings, s)
	}
}

func (r *walkReader) String(field int, s []byte, _ []int) {
	f := r.fields[field]
	r.index(f, string(s))
	r.key(f, string(s))
}

func (r *walkReader) Number(field int, s []byte, _ numeric.Value, _ []int) {
	f := r.fields[field]
	r.index(f, string(s))
	x, ok := parseWalkNumber(string(s))
	if !ok {
		panic(string(s))
	}
	f.numbers = append(f.numbers, x)
}

func (r *walkReader) Bool(field int, value bool, _ []int) {
	f := r.fields[field]
	r.index(f, strconv.FormatBool(value))
	r.key(f, strconv.FormatBool(value))
}

func (r *walkReader) Null(field int)  { r.fields[field].null = true }
func (r *walkReader) Empty(field int) { r.fields[field].empty = true }

var noField = &walkField{}

// at returns the values of a document at a path.
func (d *walkDoc) at(path string) *walkField {
	if f := d.fields[path]; f != nil {
		return f
	}
	return noField
}

// point returns the location of a document.
func (d *walkDoc) point() (lat, lng float64, ok bool) {
	p, ok := d.members["_geo"].(map[string]any)
	if !ok {
		return 0, 0, false
	}
	return p["lat"].(float64), p["lng"].(float64), true
}

// covers reports whether one of the names is a field or contains it.
func covers(names []string, field string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return name == field || strings.HasPrefix(field, name+".") })
}

// walkValue is the sort key of a document.
type walkValue struct {
	class  int // 0 number, 1 text, 2 missing
	number walkNumber
	text   string
}

func (v walkValue) compare(o walkValue, desc bool) int {
	c := cmp.Or(v.number.Cmp(o.number.Rat), cmp.Compare(v.text, o.text))
	if desc {
		c = -c
	}
	return cmp.Or(cmp.Compare(v.class, o.class), c)
}

// sortValue returns the first value of a field in sort order.
func (d *walkDoc) sortValue(field string, desc bool) walkValue {
	f := d.at(field)
	all := []walkValue{noWalkValue}
	for _, x := range f.numbers {
		all = append(all, walkValue{number: x})
	}
	for _, s := range f.keys {
		all = append(all, walkValue{class: 1, number: walkFloat(0), text: s})
	}
	return slices.MinFunc(all, func(a, b walkValue) int { return a.compare(b, desc) })
}

// walkSort is an entry of the sort of a request, or a rule that sorts.
type walkSort struct {
	field    string
	desc     bool
	geo      bool
	lat, lng float64
}

func (s walkSort) String() string {
	name, order := s.field, ":asc"
	if s.geo {
		name = "_geoPoint(" + strconv.FormatFloat(s.lat, 'f', -1, 64) + "," + strconv.FormatFloat(s.lng, 'f', -1, 64) + ")"
	}
	if s.desc {
		order = ":desc"
	}
	return name + order
}

var noWalkValue = walkValue{class: 2, number: walkFloat(0)}

// compare orders two documents.
func (s walkSort) compare(a, b *walkDoc) int {
	if !s.geo {
		return a.sortValue(s.field, s.desc).compare(b.sortValue(s.field, s.desc), s.desc)
	}
	distance := func(d *walkDoc) walkValue {
		lat, lng, ok := d.point()
		if !ok {
			return noWalkValue
		}
		return walkValue{number: walkFloat(geo.Distance(s.lat, s.lng, lat, lng))}
	}
	return distance(a).compare(distance(b), s.desc)
}

// walkFacet is a value of a facet with its number of documents.
type walkFacet struct {
	walkValue
	count int
}

// walkFacets counts the values of a field. Numbers are listed by their text, like equal strings; a document with both counts once.
func walkFacets(docs []*walkDoc, field string) (facets map[string]*walkFacet, spellings map[string][]string, numbers []walkNumber) {
	facets, spellings = map[string]*walkFacet{}, map[string][]string{}
	for _, d := range docs {
		for _, x := range d.at(field).numbers {
			facets[x.text()] = &walkFacet{walkValue: walkValue{number: x}}
			numbers = append(numbers, x)
		}
	}
	for _, d := range docs {
		of := map[string]bool{}
		for _, x := range d.at(field).numbers {
			of[x.text()] = true
		}
		for i, key := range d.at(field).keys {
			of[key] = true
			spellings[key] = append(spellings[key], d.at(field).spellings[i])
		}
		for key := range of {
			if facets[key] == nil {
				facets[key] = &walkFacet{walkValue: walkValue{class: 1, number: walkFloat(0), text: key}}
			}
			facets[key].count++
		}
	}
	return facets, spellings, numbers
}

// firstFacets returns the values that are shown: the most frequent ones, with ties in their order, or the first ones. If they are not
// listed by count, numbers are in the order of their texts, which svc uses for few documents.
func firstFacets(facets map[string]*walkFacet, most int, byCount bool) map[string]int {
	keys := slices.SortedFunc(maps.Keys(facets), func(a, b string) int {
		x, y := facets[a], facets[b]
		switch {
		case byCount:
			return cmp.Or(cmp.Compare(y.count, x.count), x.compare(y.walkValue, false))
		case x.class == 0 && y.class == 0:
			return cmp.Compare(a, b)
		}
		return x.compare(y.walkValue, false)
	})
	first := map[string]int{}
	for _, key := range keys[:min(most, len(keys))] {
		first[key] = facets[key].count
	}
	return first
}
