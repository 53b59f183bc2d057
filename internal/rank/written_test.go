package rank

import "testing"

// TestWordsAsWrittenTellThePage has pages that words as they are written tell, and pages that they only seem to.
func TestWordsAsWrittenTellThePage(t *testing.T) {
	defer func(lead int, part float64) { leadRows, promisingPart = lead, part }(leadRows, promisingPart)
	leadRows, promisingPart = 1, 0.01
	for name, c := range map[string]struct {
		texts []string
		query string
		limit int
		want  string
		total int
	}{
		"both as they are written": {[]string{"alpha gamna", "gamma", "alpha gamma", "alpha", "alpha gamma"}, "alpha gamma ", 2, "2 4", 4},
		"too few":                  {[]string{"alpha gamna", "gamma", "alpha gamma", "alpha", "alpha gamma"}, "alpha gamma ", 3, "2 4 0", 4},
		"the first one misspelt":   {[]string{"alphb gamna", "alphb gamma", "alphb gamma"}, "alpha gamma ", 2, "1 2", 3},
		// As many typos, be they in this word or in that.
		"the second one misspelt as well":        {[]string{"alpha gamna", "alphb gamma", "alphb gamma"}, "alpha gamma ", 2, "0 1", 3},
		"only with a misspelt one are all there": {[]string{"alpha", "alpha", "gamma", "alpha gamna"}, "alpha gamma ", 2, "3 0", 3},
		"a prefix":                               {[]string{"alpha gamna", "alpha gam", "gamma", "alpha gamma"}, "alpha gam", 2, "1 0", 3},
		"split":                                  {[]string{"alpha gamma", "alpha gam ma", "alpha gamma"}, "alpha gamma ", 3, "0 2 1", 3},
		"three words":                            {[]string{"alpha betta gamma", "alpha beta gamma", "alpha beta gamma"}, "alpha beta gamma ", 2, "1 2", 3},
	} {
		var docs []*document
		for i, text := range c.texts {
			docs = append(docs, doc(i, "t", text))
		}
		ix := build(t, parseSettings(t, `{}`), [][]*document{docs}, nil)
		for _, plain := range []bool{false, true, true} { // the second time it is remembered
			got := mustSearch(t, ix, Request{Query: c.query, Limit: c.limit, Plain: plain})
			if found(got) != c.want || got.Total != c.total {
				t.Errorf("%s, plain %v: documents %s of %d, want %s of %d", name, plain, found(got), got.Total, c.want, c.total)
			}
		}
	}
}
