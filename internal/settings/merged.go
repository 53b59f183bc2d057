package settings

import (
	"math"
	"strings"

	"svc/internal/apierr"
)

// orReset makes the reader of a member: null brings the default back, anything else is read.
func orReset(reset func(), read func(value) error) func(value) error {
	return func(v value) error {
		if v.null() {
			reset()
			return nil
		}
		return read(v)
	}
}

// readTypoTolerance merges the members of a body. It compares sizes sent in the same body at once, so that the error is about what
// was sent.
func readTypoTolerance(s *Settings, v value) error {
	t, def := &s.TypoTolerance, Default().TypoTolerance
	var one, two *uint8 // of this body
	size := func(dst, def *uint8, sent **uint8) func(value) error {
		return orReset(func() { *dst = *def }, func(v value) error {
			n, err := v.whole(math.MaxUint8)
			*dst = uint8(n)
			*sent = dst
			return err
		})
	}
	err := v.fields(map[string]func(value) error{
		"enabled": orReset(func() { t.Enabled = def.Enabled }, func(v value) (err error) {
			t.Enabled, err = v.boolean()
			return err
		}),
		"minWordSizeForTypos": orReset(func() { t.OneTypo, t.TwoTypos = def.OneTypo, def.TwoTypos }, func(v value) error {
			return v.fields(map[string]func(value) error{
				"oneTypo":  size(&t.OneTypo, &def.OneTypo, &one),
				"twoTypos": size(&t.TwoTypos, &def.TwoTypos, &two),
			})
		}),
		"disableOnWords": orReset(func() { t.DisableOnWords = nil }, func(v value) error {
			words, err := v.texts()
			for i, w := range words {
				words[i] = strings.ToLower(w)
			}
			t.DisableOnWords = sortedSet(words)
			return err
		}),
		"disableOnAttributes": orReset(func() { t.DisableOnAttributes = nil }, func(v value) error {
			return readSet(&t.DisableOnAttributes, v)
		}),
		"disableOnNumbers": orReset(func() { t.DisableOnNumbers = def.DisableOnNumbers }, func(v value) (err error) {
			t.DisableOnNumbers, err = v.boolean()
			return err
		}),
	})
	if err == nil && one != nil && two != nil {
		err = validTypoTolerance(s, v.code)
	}
	return err
}

func validTypoTolerance(s *Settings, code apierr.Code) error {
	if t := &s.TypoTolerance; t.OneTypo > t.TwoTypos {
		return apierr.New(code, "`minWordSizeForTypos` would have oneTypo (%d) above twoTypos (%d): "+
			"a word that may have two typos may have one, so set both.", t.OneTypo, t.TwoTypos)
	}
	return nil
}

func showTypoTolerance(t *TypoTolerance) any {
	return object{
		{"enabled", t.Enabled},
		{"minWordSizeForTypos", object{{"oneTypo", t.OneTypo}, {"twoTypos", t.TwoTypos}}},
		{"disableOnWords", list(t.DisableOnWords)},
		{"disableOnAttributes", list(t.DisableOnAttributes)},
		{"disableOnNumbers", t.DisableOnNumbers},
	}
}

// echoTypoTolerance shows the two sets sorted, in the case sent.
func echoTypoTolerance(v value, _ bool) any {
	members, err := v.members()
	if err != nil {
		return v.raw
	}
	o := make(object, len(members))
	for i, m := range members {
		o[i] = pair{m.key, m.raw}
		if m.key == "disableOnWords" || m.key == "disableOnAttributes" {
			o[i].value = echoSet(m.value, false)
		}
	}
	return o
}

// readFaceting merges the members of a body. A given order of facet values replaces the previous one, but "*" keeps its default.
func readFaceting(s *Settings, v value) error {
	def := Default().Faceting
	return v.fields(map[string]func(value) error{
		"maxValuesPerFacet": orReset(func() { s.Faceting.MaxValuesPerFacet = def.MaxValuesPerFacet }, func(v value) (err error) {
			s.Faceting.MaxValuesPerFacet, err = v.count()
			return err
		}),
		"sortFacetValuesBy": orReset(func() { s.Faceting.SortFacetValuesBy = def.SortFacetValuesBy }, func(v value) error {
			members, err := v.members()
			if err != nil {
				return err
			}
			orders := map[string]FacetOrder{"*": Alpha}
			for _, m := range members {
				n, err := m.choice(facetOrderNames[:]...)
				if err != nil {
					return err
				}
				orders[m.key] = FacetOrder(n)
			}
			s.Faceting.SortFacetValuesBy = orders
			return nil
		}),
	})
}

func showFaceting(f *Faceting) any {
	orders := make(map[string]string, len(f.SortFacetValuesBy))
	for facet, o := range f.SortFacetValuesBy {
		orders[facet] = o.String()
	}
	return object{{"maxValuesPerFacet", f.MaxValuesPerFacet}, {"sortFacetValuesBy", orders}}
}

func readPagination(s *Settings, v value) error {
	return v.fields(map[string]func(value) error{
		"maxTotalHits": orReset(func() { s.Pagination = Default().Pagination }, func(v value) error {
			n, err := v.count()
			if err == nil && n == 0 {
				err = v.wrong("at least 1")
			}
			s.Pagination.MaxTotalHits = n
			return err
		}),
	})
}
