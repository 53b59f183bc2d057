package search

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"svc/internal/document"
	"svc/internal/jsontext"
	"svc/internal/text"
)

var errFacets = errors.New("it is not a facet distribution")

// parseFacets reads the facet counts of another instance by index. Texts stay in the JSON, which is compact.
func (p *answerParser) parseFacets(object []byte) (map[string][]facet, error) {
	if object[0] == 'n' {
		return nil, nil
	}
	all := map[string][]facet{}
	err := document.Members(object, func(_, uid, value []byte) error {
		asked := p.asked.facetsOf(uid)
		if asked == nil || value[0] == 'n' {
			return p.step()
		}
		f := facetParser{answerParser: p, asked: asked}
		err := document.Members(value, func(_, name, value []byte) error {
			switch string(name) {
			case "distribution":
				return f.parseDistribution(value)
			case "stats":
				return f.parseStats(value)
			}
			return p.step()
		})
		if err == nil {
			err = p.make(indexBytes)
		}
		// Statistics of a facet that has no distribution say nothing.
		facets := slices.DeleteFunc(f.facets, func(f facet) bool { return f.values == nil })
		slices.SortFunc(facets, func(a, b facet) int { return cmp.Compare(a.name, b.name) })
		all[asked.UID] = facets
		return err
	})
	return all, err
}

// facetParser parses the facets of one index.
type facetParser struct {
	*answerParser
	asked  *AskedFacets
	facets []facet
	places map[string]int // name → position in facets
	keys   []byte         // block for the keys of values
}

// named returns the facet of a name, and adds it if it is new. It returns nil for a facet that was not requested.
func (p *facetParser) named(name []byte) (*facet, error) {
	if err := p.step(); err != nil {
		return nil, err
	}
	i, ok := p.places[string(name)]
	if !ok {
		if len(name) > maxFacetName || !p.asked.has(string(name)) {
			return nil, nil
		}
		if err := p.make(indexBytes + 2*len(name)); err != nil {
			return nil, err
		}
		if p.places == nil {
			p.places = map[string]int{}
		}
		i = len(p.facets)
		p.places[string(name)] = i
		var err error
		if p.facets, err = makeRoom(p.Reading, p.facets, 1, facetBytes); err != nil {
			return nil, err
		}
		p.facets = append(p.facets, facet{name: string(name)})
	}
	return &p.facets[i], nil
}

const (
	maxFacetName = 4 << 10
	// leastValue is the length of the shortest value of a facet in JSON, with its comma.
	leastValue = len(`"":1,`)
)

// parseDistribution parses {facet: {value: count}}.
func (p *facetParser) parseDistribution(object []byte) error {
	return document.Members(object, func(_, name, counts []byte) error {
		f, err := p.named(name)
		if err != nil || f == nil {
			return err
		}
		n := min(bytes.Count(counts, []byte{','})+1, len(counts)/leastValue+1)
		if err := p.make(n * valueBytes); err != nil {
			return err
		}
		f.values = make([]facetValue, 0, n)
		err = document.Members(counts, func(raw, shown, count []byte) error {
			if err := p.step(); err != nil {
				return err
			}
			n, err := readCount(count, maxRank)
			if err != nil {
				return errFacets
			}
			if bytes.IndexByte(raw, '\\') < 0 {
				shown = raw
			} else if err := p.make(len(shown) + smallBytes); err != nil {
				return err
			} else {
				shown = bytes.Clone(shown)
			}
			key, err := p.key(shown)
			if err != nil {
				return err
			}
			f.values = append(f.values, facetValue{key: key, shown: shown, count: n})
			return nil
		})
		if err != nil {
			return err
		}
		return p.sortValues(f.values)
	})
}

// key returns the key by which facet values are compared. The keys of many values share a block.
func (p *facetParser) key(shown []byte) ([]byte, error) {
	const block = 4 << 10
	from, least := len(p.keys), keyLength(shown)
	if err := p.make(keyBytes(shown)); err != nil {
		return nil, err
	}
	if cap(p.keys)-from < least {
		size := max(least, min(block, 4*(from+least)))
		if err := p.make(size); err != nil {
			return nil, err
		}
		p.keys, from = make([]byte, 0, size), 0
	}
	p.keys = text.FacetKey(p.keys, shown)
	return p.keys[from:len(p.keys):len(p.keys)], nil
}

// sortValues sorts values by their keys. Remotes may send them by count.
func (r *Reading) sortValues(values []facetValue) error {
	if !slices.IsSortedFunc(values, compareValue) {
		slices.SortFunc(values, r.compareValue)
	}
	return r.ended
}

// compareValue is the function compareValue with a step, so that long sorts yield. After an error it returns 0, which ends the sort soon.
func (r *Reading) compareValue(a, b facetValue) int {
	if r.step() != nil {
		return 0
	}
	return compareValue(a, b)
}

// parseStats parses {facet: {"min": number, "max": number}}.
func (p *facetParser) parseStats(object []byte) error {
	return document.Members(object, func(_, name, value []byte) error {
		f, err := p.named(name)
		if err != nil || f == nil {
			return err
		}
		if err := p.make(statsBytes); err != nil {
			return err
		}
		return document.Members(value, func(_, end, number []byte) error {
			if string(end) != "min" && string(end) != "max" {
				return p.step()
			}
			x, err := readNumber(number)
			if err == nil {
				f.fold(x)
			}
			return err
		})
	})
}

// drop subtracts a duplicate hit from the total and the facet counts. It calls yield between facets, and returns its error.
func (a *RemoteAnswer) drop(h *remoteHit, yield func() error) error {
	a.total = max(a.total-1, 0)
	facets := a.facets[h.uid]
	for i := range facets {
		if err := yield(); err != nil {
			return err
		}
		f := &facets[i]
		var seen map[int]bool
		h.eachValue(f.name, func(scalar []byte) {
			shown := scalar
			if scalar[0] == '"' {
				shown = jsontext.AppendUnquoted(nil, scalar)
			} else if x, err := readNumber(scalar); err == nil {
				shown = x.AppendText(nil)
			}
			k, ok := slices.BinarySearchFunc(f.values, facetValue{key: text.FacetKey(nil, shown), shown: shown}, compareValue)
			if !ok || seen[k] {
				return
			}
			if seen == nil {
				seen = map[int]bool{}
			}
			seen[k] = true
			v := &f.values[k]
			v.count = max(v.count-1, 0)
			a.emptied = a.emptied || v.count == 0
		})
	}
	return nil
}

// settle removes the facet values that only duplicates had.
func (a *RemoteAnswer) settle() {
	if !a.emptied {
		return
	}
	for _, facets := range a.facets {
		for i := range facets {
			facets[i].values = slices.DeleteFunc(facets[i].values, func(v facetValue) bool { return v.count == 0 })
		}
	}
}
