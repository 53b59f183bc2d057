package fastapi

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"svc/internal/geo"
	"svc/internal/text"
)

// phrase makes a text of a few words.
func (r walkRandom) phrase(most int) string {
	var b strings.Builder
	for i := range r.IntN(most + 1) {
		if i > 0 {
			b.WriteString(pick(r, " ", " ", " ", " ", ", ", ". ", "-", " "))
		}
		if r.many && r.chance(60) {
			fmt.Fprintf(&b, "ba%03d", r.IntN(400))
			continue
		}
		b.WriteString(pick(r, walkVocabulary...))
	}
	return b.String()
}

// large makes an integer that shares its float64 with others.
func (r walkRandom) large() uint64 {
	return pick[uint64](r, 1<<53, 1<<63-2, math.MaxUint64-3) + uint64(r.IntN(4))
}

// id makes an id below ids, or a large one.
func (r walkRandom) id(ids int) uint64 {
	if r.chance(15) {
		return r.large()
	}
	return uint64(r.IntN(ids))
}

func (r walkRandom) scalar() any {
	return pick[any](r, 1, 2, 4, 10, 9, -3, 1.5, 0.25, 1e21, 1e-7, r.large(), r.large(), -int64(r.large()>>1), float64(r.large()),
		"4", "q", "P", "p", "Q ", "é", "", "red", "red car", true, false, nil)
}

func (r walkRandom) value() any {
	switch r.IntN(8) {
	case 0:
		return []any{}
	case 1:
		return []any{r.scalar(), r.scalar(), r.scalar()}
	case 2:
		return map[string]any{}
	}
	return r.scalar()
}

// document makes a document, or a part of one, with an id below ids as a number or text.
func (r walkRandom) document(ids int) map[string]any {
	doc := map[string]any{"id": r.id(ids)}
	if r.chance(10) {
		doc["id"] = fmt.Sprint(doc["id"])
	}
	member := func(name string, percent int, value func() any) {
		if r.chance(percent) {
			doc[name] = value()
		}
	}
	member("t", 85, func() any { return r.phrase(9) })
	member("u", 60, func() any {
		if r.chance(30) {
			return []any{r.phrase(4), r.scalar(), r.phrase(3)}
		}
		return r.phrase(5)
	})
	member("o", 60, func() any {
		o := map[string]any{}
		if r.chance(70) {
			o["p"] = r.phrase(4)
		}
		if r.chance(70) {
			o["k"] = r.value()
		}
		return o
	})
	member("g", 70, func() any { return some[any](r, 3, "Red", "red", "blue", "Grün", "x y", "new york") })
	member("n", 80, func() any {
		return pick[any](r, 1, 2, 3, 5, 8.5, -2, []any{1, 9}, []any{r.large(), 2, "red"}, 100, r.large(), "7", nil)
	})
	member("b", 50, func() any { return r.chance(50) })
	member("x", 50, r.value)
	member("v", 50, r.elements)
	member("_geo", 50, func() any {
		place := pick(r, [2]float64{48.85, 2.35}, [2]float64{45.76, 4.83}, [2]float64{-33.9, 151.2}, [2]float64{40.7, -74}, [2]float64{})
		return map[string]any{"lat": place[0], "lng": place[1]}
	})
	return doc
}

// joined combines filters that leaf makes, and returns the test of a document.
func (r walkRandom) joined(depth int, leaf func() (string, func(*walkDoc) bool)) (string, func(*walkDoc) bool) {
	if depth == 0 || r.chance(50) {
		return leaf()
	}
	a, keepA := r.joined(depth-1, leaf)
	b, keepB := r.joined(depth-1, leaf)
	switch r.IntN(3) {
	case 0:
		return "NOT (" + a + ")", func(d *walkDoc) bool { return !keepA(d) }
	case 1:
		return "(" + a + ") AND (" + b + ")", func(d *walkDoc) bool { return keepA(d) && keepB(d) }
	default:
		return "(" + a + ") OR (" + b + ")", func(d *walkDoc) bool { return keepA(d) || keepB(d) }
	}
}

// filter makes a filter over filterable fields, and the test of a document.
func (r walkRandom) filter(m *walkModel, depth int) (string, func(*walkDoc) bool) {
	return r.joined(depth, func() (string, func(*walkDoc) bool) { return r.part(m) })
}

// part makes a filter that does not combine others.
func (r walkRandom) part(m *walkModel) (string, func(*walkDoc) bool) {
	if m.set.filters("v.c") && r.chance(25) {
		return r.braces(m, "v")
	}
	if m.set.filters("_geo") && r.chance(15) {
		lat, lng, meters := float64(r.IntN(100)-50), float64(r.IntN(300)-150), float64(r.IntN(9_000_000))
		return fmt.Sprintf("_geoRadius(%v, %v, %.0f)", lat, lng, meters), func(d *walkDoc) bool {
			a, b, ok := d.point()
			return ok && geo.Distance(lat, lng, a, b) <= meters
		}
	}
	if m.set.filters("_geo") && r.chance(15) {
		bottom, left := float64(r.IntN(100)-60), float64(r.IntN(300)-170)
		top, right := min(90, bottom+float64(r.IntN(60))), left+float64(r.IntN(30))
		return fmt.Sprintf("_geoBoundingBox([%v, %v], [%v, %v])", top, right, bottom, left), func(d *walkDoc) bool {
			lat, lng, ok := d.point()
			return ok && bottom <= lat && lat <= top && left <= lng && lng <= right
		}
	}
	var fields []string
	for _, f := range walkFacetFields {
		if m.set.filters(f) {
			fields = append(fields, f)
		}
	}
	field := pick(r, fields...)
	return r.condition(m, field)
}

// condition makes a filter of one condition.
func (r walkRandom) condition(m *walkModel, field string) (string, func(*walkDoc) bool) {
	literal := func() string {
		return pick(r, "1", "2", "4", "9", "1.5", "red", "RED ", "x y", "q", "é", "true", "5", "100", "-2", fmt.Sprint(r.large()), fmt.Sprint(r.large()))
	}
	fold := func(s string) string { return string(text.FacetKey(nil, []byte(s))) }
	is := func(d *walkDoc, value string) bool {
		x, ok := parseWalkNumber(value)
		return ok && slices.ContainsFunc(d.at(field).numbers, func(y walkNumber) bool { return x.Cmp(y.Rat) == 0 }) || slices.Contains(d.at(field).keys, fold(value))
	}
	bound := func() string {
		return pick(r, strconv.Itoa(r.IntN(12)-3), strconv.Itoa(r.IntN(12)-3), fmt.Sprint(r.large()), "Red", "É", "Grün", "Q", "NEW YORK", "1.5")
	}
	quoted := strconv.Quote
	switch r.IntN(10) {
	case 0:
		value := literal()
		return field + " != " + quoted(value), func(d *walkDoc) bool { return m.known[field] && !is(d, value) }
	case 1:
		values := []string{literal(), literal(), literal()}
		return fmt.Sprintf("%s IN [%q, %q, %q]", field, values[0], values[1], values[2]), func(d *walkDoc) bool {
			return slices.ContainsFunc(values, func(v string) bool { return is(d, v) })
		}
	case 2:
		written := bound()
		op := pick(r, ">", ">=", "<", "<=")
		holds := func(c int) bool { return c > 0 && op[0] == '>' || c < 0 && op[0] == '<' || c == 0 && len(op) == 2 }
		limit, numeric := parseWalkNumber(written)
		return field + " " + op + " " + quoted(written), func(d *walkDoc) bool {
			return numeric && slices.ContainsFunc(d.at(field).numbers, func(x walkNumber) bool { return holds(x.Cmp(limit.Rat)) }) ||
				slices.ContainsFunc(d.at(field).keys, func(s string) bool { return holds(strings.Compare(s, fold(written))) })
		}
	case 3:
		low, high := bound(), bound()
		from, ok1 := parseWalkNumber(low)
		to, ok2 := parseWalkNumber(high)
		return fmt.Sprintf("%s %q TO %q", field, low, high), func(d *walkDoc) bool {
			return ok1 && ok2 && slices.ContainsFunc(d.at(field).numbers, func(x walkNumber) bool { return from.Cmp(x.Rat) <= 0 && x.Cmp(to.Rat) <= 0 }) ||
				slices.ContainsFunc(d.at(field).keys, func(s string) bool { return fold(low) <= s && s <= fold(high) })
		}
	case 4:
		return field + " EXISTS", func(d *walkDoc) bool { return d.fields[field] != nil }
	case 5:
		return field + " IS NULL", func(d *walkDoc) bool { return d.at(field).null }
	case 6:
		return field + " IS EMPTY", func(d *walkDoc) bool { return d.at(field).empty }
	case 7:
		beginning := pick(r, "r", "x ", "red ", "RED", " ", " r", "n", "4")
		return field + " STARTS WITH " + quoted(beginning), func(d *walkDoc) bool {
			begins := strings.ToLower(strings.TrimLeft(beginning, " "))
			return begins != "" && slices.ContainsFunc(d.at(field).keys, func(s string) bool { return strings.HasPrefix(s, begins) })
		}
	case 8:
		part := pick(r, "e", "ED", "w y", "4", "rü", " ", "d ", " c", "red", "ree", "ED C", "w yo", "ther", "grün", "zzz")
		return field + " CONTAINS " + quoted(part), func(d *walkDoc) bool {
			return slices.ContainsFunc(d.at(field).keys, func(s string) bool { return strings.Contains(s, norm.NFD.String(strings.ToLower(part))) })
		}
	default:
		value := literal()
		return field + " = " + quoted(value), func(d *walkDoc) bool { return is(d, value) }
	}
}

// canFilter reports whether any field is filterable.
func (m *walkModel) canFilter() bool { return slices.ContainsFunc(walkFacetFields, m.set.filters) }

// order makes the entries of a sort.
func (r walkRandom) order(m *walkModel) []walkSort {
	var by []walkSort
	for _, field := range some(r, 3, "n", "g", "o.k", "b", "t", "id", "_geo") {
		switch {
		case !m.set.sorts(field):
		case field == "_geo":
			lat, lng := float64(r.IntN(160)-80)+0.37, float64(r.IntN(340)-170)+0.21 // no two locations have the same distance
			by = append(by, walkSort{geo: true, lat: lat, lng: lng, desc: r.chance(50)})
		default:
			by = append(by, walkSort{field: field, desc: r.chance(50)})
		}
	}
	return by
}

func sortBody(by []walkSort) []string {
	var entries []string
	for _, s := range by {
		entries = append(entries, s.String())
	}
	return entries
}

// q makes a query.
func (r walkRandom) q() string {
	var b strings.Builder
	for i := range r.IntN(6) {
		if i > 0 {
			b.WriteString(pick(r, " ", " ", " ", " ", "  ", "-", ", "))
		}
		word := pick(r, walkVocabulary...)
		if r.many && r.chance(30) {
			word = pick(r, "b", "ba", "ba1", "ba12", "ba123", "ba321x", "bab1234567")
		}
		letters := []rune(word)
		switch at := r.IntN(len(letters)); r.IntN(12) {
		case 0:
			word = string(letters[:at+1])
		case 1:
			word = string(slices.Delete(letters, at, at+1))
		case 2:
			word = string(slices.Insert(letters, at, 'e'))
		case 3:
			word = `"` + r.phrase(3) + `"`
		case 4:
			if r.chance(40) {
				word = "-" + word
			}
		case 5:
			word += " " + word
		}
		b.WriteString(word)
	}
	return b.String() + pick(r, "", "", "", " ")
}

// search makes a search with all its parameters.
func (r walkRandom) search(m *walkModel) *walkSearch {
	s := &walkSearch{body: map[string]any{}, offset: 0, limit: 20}
	if r.chance(85) {
		s.q = r.q()
		s.body["q"] = s.q
	}
	if r.chance(50) {
		s.strategy = pick(r, "last", "all", "frequency")
		s.body["matchingStrategy"] = s.strategy
	}
	if m.canFilter() && r.chance(45) {
		var filter string
		filter, s.keep = r.filter(m, 2)
		s.body["filter"] = filter
	}
	if m.set.sorting() && r.chance(40) {
		s.sort = r.order(m)
		s.body["sort"] = sortBody(s.sort)
	}
	if slices.Contains(m.set.RankingRules, "score") && r.chance(30) {
		scoring := r.scoring(func(field string) bool { return m.set.filters(field) || m.set.sorts(field) && field != "b" })
		s.scoring = scoring.sent()
		s.body["scoreFunctions"] = scoring
	}
	if r.chance(25) {
		s.on = []string{}
		for _, field := range some(r, 3, walkTexts...) {
			if m.known[field] && m.set.searches(field) {
				s.on = append(s.on, field)
			}
		}
		s.body["attributesToSearchOn"] = s.on
	}
	if field := pick(r, "g", "n", "o.k"); m.set.filters(field) && r.chance(25) {
		s.distinct = field
		s.body["distinct"] = field
	}
	if r.chance(35) {
		s.facets = []string{}
		for _, field := range some(r, 3, walkFacetFields...) {
			if m.set.filters(field) {
				s.facets = append(s.facets, field)
			}
		}
		if r.chance(20) {
			s.facets = []string{"*"}
		}
		s.body["facets"] = s.facets
	}
	if r.chance(50) {
		s.scored = true
		s.body["showRankingScore"] = true
	}
	if r.chance(20) {
		s.scored = true
		s.body["showRankingScore"], s.body["showRankingScoreDetails"] = true, true
	}
	if r.chance(15) {
		s.threshold = pick(r, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
		s.body["rankingScoreThreshold"] = s.threshold
	}
	if r.chance(25) {
		retrieve := append(some(r, 4, "t", "u", "o", "o.k", "o.p", "g", "n", "x", "nothing"), "id")
		s.body["attributesToRetrieve"] = retrieve
	}
	r.look(s)
	r.page(s)
	return s
}

// look requests highlights, positions or crops.
func (r walkRandom) look(s *walkSearch) {
	if !r.chance(30) {
		return
	}
	s.body["attributesToHighlight"] = append(some(r, 2, "o", "o.p", "nothing"), "t")
	if r.chance(50) {
		s.body["showMatchesPosition"] = true
	}
	if r.chance(30) {
		s.body["attributesToCrop"], s.body["cropLength"] = []string{"t"}, r.IntN(6)
	}
}

// page requests a page of the hits.
func (r walkRandom) page(s *walkSearch) {
	switch {
	case r.chance(30):
		s.paged, s.perPage = true, r.IntN(8)
		page := 1 + r.IntN(4)
		s.body["page"], s.body["hitsPerPage"] = page, s.perPage
		s.offset, s.limit = (page-1)*s.perPage, s.perPage
	case r.chance(50):
		s.offset, s.limit = r.IntN(12), r.IntN(12)
		s.body["offset"], s.body["limit"] = s.offset, s.limit
	}
}

// params returns the search as parameters of GET, which cannot express empty lists.
func (s *walkSearch) params() (_ string, ok bool) {
	params := url.Values{}
	if s.scoring != nil {
		return "", false
	}
	for name, value := range s.body {
		if list, ok := value.([]string); ok {
			if len(list) == 0 {
				return "", false
			}
			params.Set(name, strings.Join(list, ","))
		} else {
			params.Set(name, fmt.Sprint(value))
		}
	}
	return params.Encode(), true
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
