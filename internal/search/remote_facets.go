package search

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"

	"svc/internal/document"
	"svc/internal/jsontext"
	"svc/internal/text"
)

var errFacets = errors.New("it is no distribution of facets")

// parseFacets reads the facets of indexes as another instance has counted them. Texts stay in the JSON, which is compact.
func parseFacets(object []byte) (map[string][]facet, error) {
	if object[0] == 'n' {
		return nil, nil
	}
	all := map[string][]facet{}
	err := document.Members(object, func(_, uid, value []byte) error {
		if value[0] == 'n' {
			return nil
		}
		facets := []facet{}
		err := document.Members(value, func(_, name, value []byte) (err error) {
			switch string(name) {
			case "distribution":
				facets, err = parseDistribution(facets, value)
			case "stats":
				facets, err = parseStats(facets, value)
			}
			return err
		})
		// Statistics of a facet that has no distribution say nothing.
		facets = slices.DeleteFunc(facets, func(f facet) bool { return f.values == nil })
		slices.SortFunc(facets, func(a, b facet) int { return cmp.Compare(a.name, b.name) })
		all[string(uid)] = facets
		return err
	})
	return all, err
}

// facetNamed returns the facet of a name, which is added where there is none.
func facetNamed(facets []facet, name []byte) ([]facet, *facet) {
	i := slices.IndexFunc(facets, func(f facet) bool { return f.name == string(name) })
	if i < 0 {
		i = len(facets)
		facets = append(facets, facet{name: string(name)})
	}
	return facets, &facets[i]
}

// parseDistribution reads {facet: {value: count}}.
func parseDistribution(facets []facet, object []byte) ([]facet, error) {
	var keys []byte // of all values
	err := document.Members(object, func(_, name, counts []byte) error {
		var f *facet
		facets, f = facetNamed(facets, name)
		f.values = make([]facetValue, 0, bytes.Count(counts, []byte{','})+1)
		err := document.Members(counts, func(raw, shown, count []byte) error {
			n, err := strconv.Atoi(string(count))
			if err != nil {
				return errFacets
			}
			if bytes.IndexByte(raw, '\\') < 0 {
				shown = raw
			} else {
				shown = bytes.Clone(shown)
			}
			from := len(keys)
			keys = text.FacetKey(keys, shown)
			f.values = append(f.values, facetValue{key: keys[from:len(keys):len(keys)], shown: shown, count: n})
			return nil
		})
		slices.SortFunc(f.values, compareValue) // they may be ordered by their counts
		return err
	})
	return facets, err
}

// parseStats reads {facet: {"min": number, "max": number}}.
func parseStats(facets []facet, object []byte) ([]facet, error) {
	err := document.Members(object, func(_, name, value []byte) error {
		var f *facet
		facets, f = facetNamed(facets, name)
		f.numbers = true
		return document.Members(value, func(_, bound, number []byte) (err error) {
			switch string(bound) {
			case "min":
				f.min, err = strconv.ParseFloat(string(number), 64)
			case "max":
				f.max, err = strconv.ParseFloat(string(number), 64)
			}
			return err
		})
	})
	return facets, err
}

// drop notes that a hit is a duplicate: its values do not count.
func (a *RemoteAnswer) drop(h *remoteHit) {
	a.total--
	facets := a.facets[h.uid]
	for i := range facets {
		f := &facets[i]
		seen := map[string]bool{}
		h.eachValue(f.name, func(scalar []byte) {
			shown := string(scalar)
			if scalar[0] == '"' {
				shown = string(jsontext.AppendUnquoted(nil, scalar))
			} else if x, err := strconv.ParseFloat(shown, 64); err == nil {
				shown = strconv.FormatFloat(x, 'f', -1, 64)
			}
			k := slices.IndexFunc(f.values, func(v facetValue) bool { return string(v.shown) == shown })
			if k < 0 || seen[shown] {
				return
			}
			seen[shown] = true
			if f.values[k].count--; f.values[k].count == 0 {
				f.values = slices.Delete(f.values, k, k+1)
			}
		})
	}
}
