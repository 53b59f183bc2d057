package fastapi

import (
	"fmt"
	"math"
	"strings"

	"svc/internal/text"
)

// facetSearch searches for values of a facet by prefix.
func (w *walk) facetSearch() {
	w.c.t.Helper()
	m := w.model
	field := pick(w.walkRandom, "g", "o.k", "n")
	if !m.set.FacetSearch || !m.set.filters(field) || m.set.DistinctAttribute != "" {
		return
	}
	s := &walkSearch{}
	body := map[string]any{"facetName": field}
	if w.chance(40) {
		s.q = w.q()
		body["q"] = s.q
	}
	if w.chance(40) {
		body["filter"], s.keep = w.filter(m, 1)
	}
	asked := ""
	if w.chance(60) {
		asked = pick(w.walkRandom, "r", "RE", "rde", "gru", "ne", "new yrok", "x y", "4", "1", "-", "90071992547", "9007199254740993", "900719925474093", "0.", "")
		body["facetQuery"] = asked
	}
	var got struct {
		FacetHits []struct {
			Value string
			Count int
		}
	}
	answer := w.ask("POST", "/facet-search", encode(body), &got)
	counts, spellings := map[string]int{}, map[string][]string{}
	for _, d := range m.find(s).candidates {
		seen := map[string]bool{}
		for i, key := range d.at(field).keys {
			if !seen[key] && m.begins(field, key, asked, false) {
				seen[key] = true
				counts[key]++
			}
			spellings[key] = append(spellings[key], d.at(field).spellings[i])
		}
		for _, x := range d.at(field).numbers {
			if text := x.text(); !seen[text] && m.begins(field, text, asked, true) {
				seen[text] = true
				counts[text]++
			}
		}
	}
	folded := map[string]int{}
	for _, h := range got.FacetHits {
		folded[string(text.FacetKey(nil, []byte(h.Value)))] = h.Count
	}
	// With a query, values are in the order of forms that are folded further than here.
	exact := asked == ""
	if why := compareCounts(counts, folded, m.set.Faceting.MaxValuesPerFacet, m.set.byCount(field), exact); why != "" {
		w.c.t.Fatalf("facet search %s: %s\n got %s\nwant %v\n%s", encode(body), why, answer, counts, w.state())
	}
}

// begins reports whether a value starts with the query, with a few typos.
func (m *walkModel) begins(field, key, asked string, number bool) bool {
	typo := &m.set.TypoTolerance
	asked, key = text.FacetSearchKey(asked, nil), text.FacetSearchKey(key, nil)
	for _, word := range typo.DisableOnWords {
		if text.Fold(word) == asked {
			return key == asked
		}
	}
	budget := 0
	switch {
	case !typo.Enabled, number && typo.DisableOnNumbers:
	case len(asked) >= typo.MinWordSizeForTypos.TwoTypos:
		budget = 2
	case len(asked) >= typo.MinWordSizeForTypos.OneTypo:
		budget = 1
	}
	for _, exact := range typo.DisableOnAttributes {
		if exact == field {
			budget = 0
		}
	}
	if budget == 0 {
		return strings.HasPrefix(key, asked)
	}
	return walkDistance([]rune(asked), []rune(key), true) <= budget
}

// compareCounts compares the values of a facet. At most most of them are shown: the most frequent, or the first.
func compareCounts(want, got map[string]int, most int, byCount, texts bool) string {
	if len(got) != min(most, len(want)) {
		return fmt.Sprintf("%d values of %d", len(got), len(want))
	}
	least, last := math.MaxInt, ""
	for value, n := range got {
		if want[value] != n {
			return fmt.Sprintf("%q has %d", value, n)
		}
		least, last = min(least, n), max(last, value)
	}
	for value, n := range want {
		_, shown := got[value]
		switch {
		case shown || !texts:
		case byCount && n > least:
			return fmt.Sprintf("%q is left out", value)
		case !byCount && value < last:
			return fmt.Sprintf("%q is left out", value)
		}
	}
	return ""
}
