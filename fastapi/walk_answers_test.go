package fastapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"svc/internal/geo"
	"svc/internal/text"
)

// walkAnswer has the members of an answer that are compared.
type walkAnswer struct {
	Hits               []map[string]any
	EstimatedTotalHits *int
	TotalHits          *int
	TotalPages         *int
	Page, HitsPerPage  *int
	Limit, Offset      *int
	FacetDistribution  map[string]map[string]int
	FacetStats         map[string]struct{ Min, Max any }
}

// compare returns how an answer differs from the model's result; "": it does not.
func (m *walkModel) compare(s *walkSearch, body string) string {
	var a walkAnswer
	if err := decodeExactly(body, &a); err != nil {
		return err.Error()
	}
	found := m.find(s)
	var want, got []string
	for _, h := range found.hits {
		line := h.id
		if s.scored {
			line += fmt.Sprintf(":%.9f", walkScore(h.ranks))
		}
		want = append(want, line)
	}
	for _, h := range a.Hits {
		line := plainID(fmt.Sprint(h["id"]))
		if s.scored {
			score, _ := h["_rankingScore"].(float64)
			line += fmt.Sprintf(":%.9f", score)
		}
		got = append(got, line)
	}
	if !slices.Equal(want, got) {
		return fmt.Sprintf("hits\n got %v\nwant %v", got, want)
	}
	total := min(len(found.candidates), m.set.Pagination.MaxTotalHits)
	switch {
	case !s.paged && (a.EstimatedTotalHits == nil || *a.EstimatedTotalHits != total):
		return fmt.Sprintf("total, want %d", total)
	case s.paged && (a.TotalHits == nil || *a.TotalHits != total || *a.TotalPages != pagesOf(total, s.perPage)):
		return fmt.Sprintf("total, want %d in %d pages", total, pagesOf(total, s.perPage))
	}
	for i, h := range found.hits {
		why := m.compareHit(s, h.walkDoc, a.Hits[i])
		if s.body["showRankingScoreDetails"] == true && why == "" {
			why = m.compareDetails(h, a.Hits[i])
		}
		if why != "" {
			return fmt.Sprintf("hit %s: %s", h.id, why)
		}
	}
	return m.compareFacets(s, found.candidates, &a)
}

// compareDistance checks the distance that a hit shows: to the first point of the order, if the hit shows its own point.
func compareDistance(s *walkSearch, d *walkDoc, hit map[string]any) string {
	i := slices.IndexFunc(s.sort, func(by walkSort) bool { return by.geo })
	if i < 0 || hit["_geo"] == nil {
		if hit["_geoDistance"] != nil {
			return "it shows a distance"
		}
		return ""
	}
	lat, lng, _ := d.point()
	if want := math.Round(geo.Distance(s.sort[i].lat, s.sort[i].lng, lat, lng)); hit["_geoDistance"] != want {
		return fmt.Sprintf("distance %v, want %v", hit["_geoDistance"], want)
	}
	return ""
}

func pagesOf(total, perPage int) int {
	if perPage == 0 {
		return 0
	}
	return (total + perPage - 1) / perPage
}

// plain converts a value to the types of decoded JSON.
func plain(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var x any
	if err := decodeExactly(string(raw), &x); err != nil {
		panic(err)
	}
	return x
}

// shown returns the members of a document at some paths; nil means all.
func (d *walkDoc) shown(paths []string) map[string]any {
	whole := plain(d.members).(map[string]any)
	if paths == nil {
		return whole
	}
	return under(whole, "", paths)
}

// under returns the members of an object, whose path is prefix, at the paths, and the objects that contain them.
func under(o map[string]any, prefix string, paths []string) map[string]any {
	kept := map[string]any{}
	for key, value := range o {
		path := prefix + key
		if covers(paths, path) {
			kept[key] = value
			continue
		}
		leads := slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, path+".") })
		switch below := value.(type) {
		case map[string]any:
			if leads {
				kept[key] = under(below, path+".", paths)
			}
		case nil:
			if leads {
				kept[key] = nil
			}
		case []any:
			if leads {
				kept[key] = []any{}
			}
		}
	}
	return kept
}

// compareHit checks the document that a hit shows.
func (m *walkModel) compareHit(s *walkSearch, d *walkDoc, hit map[string]any) string {
	retrieve, _ := s.body["attributesToRetrieve"].([]string)
	paths := m.set.DisplayedAttributes
	if retrieve != nil && !slices.Contains(retrieve, "*") {
		paths = m.displayed(retrieve)
	}
	formatted, shown := hit["_formatted"].(map[string]any)
	if shown && len(formatted) == 0 {
		return "nothing is formatted"
	}
	positions, _ := hit["_matchesPosition"].(map[string]any)
	own := maps.Clone(hit)
	for _, added := range []string{"_formatted", "_matchesPosition", "_rankingScore", "_rankingScoreDetails", "_geoDistance"} {
		delete(own, added)
	}
	if why := compareDistance(s, d, hit); why != "" {
		return why
	}
	if want := d.shown(paths); !reflect.DeepEqual(want, own) {
		return fmt.Sprintf("document\n got %v\nwant %v", own, want)
	}
	if s.body["cropLength"] != nil {
		return m.compareCrop(d, formatted, s.body["cropLength"].(int))
	}
	return m.compareMarks(s, d, formatted, positions)
}

// displayed returns the displayed paths among some paths.
func (m *walkModel) displayed(paths []string) []string {
	shown := []string{}
	for _, path := range paths {
		switch {
		case !m.known[path]:
		case m.set.DisplayedAttributes == nil || covers(m.set.DisplayedAttributes, path):
			shown = append(shown, path)
		default:
			for _, name := range m.set.DisplayedAttributes {
				if covers([]string{path}, name) {
					shown = append(shown, name)
				}
			}
		}
	}
	return shown
}

// compareDetails checks the score details of a hit: its words and typos, and its position in orders.
func (m *walkModel) compareDetails(h walkHit, hit map[string]any) string {
	details, _ := hit["_rankingScoreDetails"].(map[string]any)
	for _, r := range h.ranks {
		name := r.rule.name
		if s := r.rule.sort; s != nil {
			if s.geo || m.set.DisplayedAttributes != nil && !slices.Contains(m.set.DisplayedAttributes, s.field) {
				continue // shown in another form, or hidden
			}
			name = s.String()
		}
		of, _ := details[name].(map[string]any)
		want := map[string]any{}
		switch {
		case name == "words":
			want["matchingWords"], want["maxMatchingWords"] = r.rank, r.ranks
		case name == "typo":
			want["typoCount"], want["maxTypoCount"] = r.ranks-r.rank, r.ranks-1
		case r.rule.score != nil:
			want["level"], want["levels"] = r.rule.score.level(m, h.walkDoc), r.rule.score.Levels
		case r.rule.sort != nil:
			if v := h.sortValue(r.rule.sort.field, r.rule.sort.desc); v.class == 0 {
				want["value"] = v.number.value()
			} else if v.class == 1 {
				want["value"] = v.text
			}
		}
		for key, value := range want {
			if !reflect.DeepEqual(of[key], plain(value)) {
				return fmt.Sprintf("details of %s\n got %v\nwant %v", name, of, want)
			}
		}
	}
	return ""
}

// compareMarks checks highlights: without tags they equal the text, they agree with the match positions, and exact words are among them.
func (m *walkModel) compareMarks(s *walkSearch, d *walkDoc, formatted, positions map[string]any) string {
	t, ok := formatted["t"].(string)
	original, isText := d.members["t"].(string)
	if !ok || !isText {
		return ""
	}
	if bare := strings.NewReplacer("<em>", "", "</em>", "").Replace(t); bare != original {
		return fmt.Sprintf("highlight %q of %q", t, original)
	}
	marked := map[int]int{} // start → length
	for rest, at := t, 0; ; {
		before, after, found := strings.Cut(rest, "<em>")
		if !found {
			break
		}
		inside, behind, _ := strings.Cut(after, "</em>")
		marked[at+len(before)] = len(inside)
		rest, at = behind, at+len(before)+len(inside)
	}
	if s.body["showMatchesPosition"] == true {
		list, _ := positions["t"].([]any)
		said := map[int]int{}
		for _, p := range list {
			place := p.(map[string]any)
			said[int(place["start"].(float64))] = int(place["length"].(float64))
		}
		if !maps.Equal(said, marked) {
			return fmt.Sprintf("%q: matches stand at %v", t, said)
		}
	}
	typed := map[string]bool{}
	for _, term := range m.query(s.q, s.strategy, nil).Terms.Terms {
		if slices.ContainsFunc(m.docs, func(d *walkDoc) bool { return len(d.words[term.Word]) > 0 }) {
			typed[term.Word] = true
		}
	}
	// Straße may be a stop word, which is highlighted only in phrases. strasse, of the same form, is not a stop word.
	for _, token := range m.set.analyzer.Tokens(nil, original, nil, true) {
		inside := func(start, length int) bool { return start <= token.Start && token.Start < start+length }
		found := false
		for start, length := range marked {
			found = found || inside(start, length)
		}
		if token.Kind == text.Word && typed[token.Form] && !found {
			return fmt.Sprintf("%q is not marked in %q", token.Form, t)
		}
	}
	return ""
}

// compareCrop checks a crop: it is a part of the text with at most so many words.
func (m *walkModel) compareCrop(d *walkDoc, formatted map[string]any, words int) string {
	t, ok := formatted["t"].(string)
	original, isText := d.members["t"].(string)
	if !ok || !isText {
		return ""
	}
	bare := strings.NewReplacer("<em>", "", "</em>", "", "…", "").Replace(t)
	count := 0
	for _, token := range m.set.analyzer.Tokens(nil, bare, nil, false) {
		if token.Kind == text.Word {
			count++
		}
	}
	if !strings.Contains(original, bare) || words > 0 && count > words {
		return fmt.Sprintf("crop %q to %d words of %q", t, words, original)
	}
	return ""
}

// compareFacets checks the values of facets and their numbers of documents.
func (m *walkModel) compareFacets(s *walkSearch, candidates []*walkDoc, a *walkAnswer) string {
	if s.facets == nil {
		return ""
	}
	fields := slices.Sorted(maps.Keys(m.known))
	for _, field := range fields {
		asked := slices.Contains(s.facets, "*") || covers(s.facets, field)
		distribution, shown := a.FacetDistribution[field]
		if asked && m.set.filters(field) != shown {
			return fmt.Sprintf("facet %s is shown: %t", field, shown)
		}
		if !shown {
			continue
		}
		facets, spellings, numbers := walkFacets(candidates, field)
		folded := map[string]int{}
		for value, n := range distribution {
			key := string(text.FacetKey(nil, []byte(value)))
			folded[key] = n
			if len(spellings[key]) > 0 && !slices.Contains(spellings[key], value) && facets[value] == nil {
				return fmt.Sprintf("facet %s: no document spells %q", field, value)
			}
		}
		order := m.set.byCount(field)
		if i := slices.IndexFunc(s.facets, func(f string) bool { return f == "*" || covers([]string{f}, field) }); i >= 0 {
			order = m.set.byCount(s.facets[i])
			if slices.Contains(s.facets, "*") {
				order = m.set.byCount("*")
			}
		}
		if want := firstFacets(facets, m.set.Faceting.MaxValuesPerFacet, order); !maps.Equal(folded, want) {
			return fmt.Sprintf("facet %s\n got %v\nwant %v", field, folded, want)
		}
		stats, has := a.FacetStats[field]
		compare := func(a, b walkNumber) int { return a.Cmp(b.Rat) }
		if has != (len(numbers) > 0) || has && (stats.Min != slices.MinFunc(numbers, compare).value() || stats.Max != slices.MaxFunc(numbers, compare).value()) {
			return fmt.Sprintf("statistics of facet %s: %v of %v", field, stats, numbers)
		}
	}
	return ""
}
