package search

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/rank"
	"svc/internal/text"
)

// RemoteAnswer is what another instance answered to the queries of a federated search that it was sent.
type RemoteAnswer struct {
	Remote string
	Err    *apierr.Error // why there is no answer; the rest is empty then

	hits     []remoteHit         // that are not pinned, in the order of the answer
	pins     []placed[remoteHit] // by their places
	total    int
	took     int                          // milliseconds
	semantic bool                         // it says how many hits vectors found
	facets   map[string]*remoteFacets     // by index
	vectors  map[string]json.RawMessage   // by query position
	metadata []map[string]json.RawMessage // a query each
}

// remoteFacets are the facets of an index as an instance counted them.
type remoteFacets struct {
	Distribution map[string]map[string]int             `json:"distribution"`
	Stats        map[string]struct{ Min, Max float64 } `json:"stats"`
}

// remoteHit is a hit of another instance.
type remoteHit struct {
	raw      []byte // as it is shown, its member _federation apart from the name of the remote
	values   []rank.ScoreValue
	score    float64 // weighted, as are the scores among the values
	position int     // of its query
	uid      string  // of its index
	extra    []byte  // an object of fields that it does not show; nil: none
	place    *int    // that a rule of the instance gives to it; nil: none
}

// ParseRemote reads the answer of an instance. What lacks the data that hits are merged by is an error.
func ParseRemote(remote string, body []byte) (*RemoteAnswer, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	var a struct {
		Hits               []json.RawMessage
		ProcessingTimeMs   int
		EstimatedTotalHits *int
		TotalHits          *int
		SemanticHitCount   *int
		FacetsByIndex      map[string]*remoteFacets
		QueryVectors       map[string]json.RawMessage
		Metadata           []map[string]json.RawMessage
	}
	if err := json.Unmarshal(compact.Bytes(), &a); err != nil {
		return nil, err
	}
	if a.Hits == nil || a.EstimatedTotalHits == nil && a.TotalHits == nil {
		return nil, errors.New("it is no answer to a federated search")
	}
	r := &RemoteAnswer{Remote: remote, took: a.ProcessingTimeMs, semantic: a.SemanticHitCount != nil,
		facets: a.FacetsByIndex, vectors: a.QueryVectors, metadata: a.Metadata}
	if a.TotalHits == nil {
		a.TotalHits = a.EstimatedTotalHits
	}
	r.total = *a.TotalHits
	for i, raw := range a.Hits {
		var h remoteHit
		if err := h.parse(raw, remote); err != nil {
			return nil, fmt.Errorf("hit %d: %w", i, err)
		}
		if h.place != nil {
			r.pins = append(r.pins, placed[remoteHit]{*h.place, h})
		} else {
			r.hits = append(r.hits, h)
		}
	}
	return r, nil
}

// parse takes a hit apart.
func (h *remoteHit) parse(raw []byte, remote string) error {
	found := false
	h.raw = append(make([]byte, 0, len(raw)+len(remote)+16), '{')
	err := eachMember(raw, func(key, value []byte) error {
		if len(h.raw) > 1 {
			h.raw = append(h.raw, ',')
		}
		h.raw = append(append(h.raw, key...), ':')
		if string(key) != `"_federation"` {
			h.raw = append(h.raw, value...)
			return nil
		}
		found = true
		return h.parseFederation(value, remote)
	})
	h.raw = append(h.raw, '}')
	if err == nil && !found {
		err = errors.New("it has no _federation")
	}
	return err
}

// remoteValue is one of the values that hits are compared by.
type remoteValue struct {
	WeightedScore *float64
	VectorSort    *float64
	Sort          *struct {
		Asc   bool
		Value json.RawMessage
	}
	GeoSort *struct {
		Asc      bool
		Distance *float64
	}
}

func (h *remoteHit) parseFederation(object []byte, remote string) error {
	var f struct {
		IndexUID             *string `json:"indexUid"`
		QueriesPosition      *int
		WeightedRankingScore *float64
		WeightedScoreValues  []remoteValue
		PinnedPosition       *uint32
		ExtraDocument        json.RawMessage `json:"extra_document"`
	}
	if err := json.Unmarshal(object, &f); err != nil {
		return err
	}
	if f.IndexUID == nil || f.QueriesPosition == nil || f.WeightedRankingScore == nil || f.WeightedScoreValues == nil {
		return errors.New("its _federation lacks what hits are merged by")
	}
	h.uid, h.position, h.score = *f.IndexUID, *f.QueriesPosition, *f.WeightedRankingScore
	if len(f.ExtraDocument) > 2 {
		h.extra = f.ExtraDocument
	}
	if f.PinnedPosition != nil {
		place := int(*f.PinnedPosition)
		h.place = &place
	}
	h.values = make([]rank.ScoreValue, len(f.WeightedScoreValues))
	for i, v := range f.WeightedScoreValues {
		var err error
		if h.values[i], err = v.score(); err != nil {
			return err
		}
	}
	h.raw = appendFederation(h.raw, h.uid, h.position, h.score)
	h.raw = append(appendRemoteName(h.raw, remote), '}')
	return nil
}

func (v *remoteValue) score() (s rank.ScoreValue, err error) {
	switch {
	case v.WeightedScore != nil:
		return rank.ScoreValue{Kind: rank.ByRelevance, Score: *v.WeightedScore}, nil
	case v.VectorSort != nil:
		return rank.ScoreValue{Kind: rank.BySimilarity, Score: *v.VectorSort}, nil
	case v.GeoSort != nil:
		s = rank.ScoreValue{Kind: rank.ByDistance, Desc: !v.GeoSort.Asc, Sort: rank.SortValue{Class: rank.OfNothing}}
		if d := v.GeoSort.Distance; d != nil {
			s.Sort = rank.SortValue{Class: rank.OfPlace, Number: *d}
		}
		return s, nil
	case v.Sort != nil:
		s = rank.ScoreValue{Kind: rank.ByField, Desc: !v.Sort.Asc, Sort: rank.SortValue{Class: rank.OfNothing}}
		switch raw := v.Sort.Value; {
		case len(raw) == 0 || raw[0] == 'n':
		case raw[0] == '"':
			s.Sort = rank.SortValue{Class: rank.OfText, Text: text.FacetKey(nil, document.AppendUnquoted(nil, raw))}
		default:
			s.Sort.Class = rank.OfNumber
			s.Sort.Number, err = strconv.ParseFloat(string(raw), 64)
		}
		return s, err
	}
	return s, errors.New("one of its values is of no kind that is known here")
}

// appendScoreValues appends what parseFederation reads, the scores weighted.
func appendScoreValues(dst []byte, values []rank.ScoreValue, weight float64) []byte {
	dst = append(dst, '[')
	for i := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch v := &values[i]; v.Kind {
		case rank.ByRelevance:
			dst = document.AppendFloat(append(dst, `{"weightedScore":`...), v.Score*weight)
		case rank.BySimilarity:
			dst = document.AppendFloat(append(dst, `{"vectorSort":`...), v.Score*weight)
		case rank.ByDistance:
			dst = strconv.AppendBool(append(dst, `{"geoSort":{"asc":`...), !v.Desc)
			dst = append(dst, `,"distance":`...)
			if v.Sort.Class == rank.OfNothing {
				dst = append(dst, "null"...)
			} else {
				dst = document.AppendFloat(dst, v.Sort.Number)
			}
			dst = append(dst, '}')
		case rank.ByField:
			dst = strconv.AppendBool(append(dst, `{"sort":{"asc":`...), !v.Desc)
			dst = append(dst, `,"value":`...)
			switch v.Sort.Class {
			case rank.OfNumber:
				dst = document.AppendFloat(dst, v.Sort.Number)
			case rank.OfText:
				dst = document.AppendQuoted(dst, v.Sort.Text)
			default:
				dst = append(dst, "null"...)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// eachValueAt calls f for every scalar at a dotted path in an object, through arrays; names may have dots of their own.
func eachValueAt(object []byte, path string, f func(scalar []byte)) error {
	var buf [64]byte
	return eachMember(object, func(key, value []byte) error {
		name := document.AppendUnquoted(buf[:0], key)
		switch n := len(name); {
		case string(name) == path:
			return eachScalar(value, f)
		case len(path) > n && path[:n] == string(name) && path[n] == '.':
			return eachValueBelow(value, path[n+1:], f)
		}
		return nil
	})
}

func eachValueBelow(value []byte, path string, f func(scalar []byte)) error {
	switch value[0] {
	case '{':
		return eachValueAt(value, path, f)
	case '[':
		return eachElement(value, func(element []byte) error { return eachValueBelow(element, path, f) })
	}
	return nil
}

func eachScalar(value []byte, f func(scalar []byte)) error {
	switch value[0] {
	case '[':
		return eachElement(value, func(element []byte) error { return eachScalar(element, f) })
	case '{', 'n':
		return nil
	}
	f(value)
	return nil
}

// eachValue calls f for every scalar that the hit has at a path, shown or not.
func (h *remoteHit) eachValue(path string, f func(scalar []byte)) {
	for _, object := range [][]byte{h.raw, h.extra} {
		if object != nil {
			_ = eachValueAt(object, path, f) // both were read before
		}
	}
}

// distinctKey is a scalar as valueSet knows it, "" for one that is no value.
func distinctKey(scalar []byte) string {
	if scalar[0] == '"' {
		if key := text.FacetKey(nil, document.AppendUnquoted(nil, scalar)); len(key) > 0 {
			return "s" + string(key)
		}
		return ""
	}
	if x, err := strconv.ParseFloat(string(scalar), 64); err == nil {
		return numberKey(x)
	}
	return "s" + string(scalar) // true or false
}

// drop notes that a hit is a duplicate: its values do not count.
func (a *RemoteAnswer) drop(h *remoteHit) {
	a.total--
	of := a.facets[h.uid]
	if of == nil {
		return
	}
	for name, counts := range of.Distribution {
		seen := map[string]bool{}
		h.eachValue(name, func(scalar []byte) {
			shown := string(scalar)
			if scalar[0] == '"' {
				shown = string(document.AppendUnquoted(nil, scalar))
			} else if x, err := strconv.ParseFloat(shown, 64); err == nil {
				shown = strconv.FormatFloat(x, 'f', -1, 64)
			}
			if n, counted := counts[shown]; counted && !seen[shown] {
				seen[shown] = true
				if counts[shown] = n - 1; n == 1 {
					delete(counts, shown)
				}
			}
		})
	}
}

// list returns the facets in the order of their names, each with its values in the order of their texts. byCount says how the
// values of a facet are to be ordered.
func (f *remoteFacets) list(byCount func(name string) bool) []facet {
	var facets []facet
	for name, counts := range f.Distribution {
		one := facet{name: name, byCount: byCount(name)}
		for shown, n := range counts {
			one.values = append(one.values, facetValue{key: text.FacetKey(nil, []byte(shown)), shown: []byte(shown), count: n})
		}
		slices.SortFunc(one.values, func(a, b facetValue) int { return cmp.Or(bytes.Compare(a.key, b.key), bytes.Compare(a.shown, b.shown)) })
		if s, ok := f.Stats[name]; ok {
			one.numbers, one.min, one.max = true, s.Min, s.Max
		}
		facets = append(facets, one)
	}
	slices.SortFunc(facets, func(a, b facet) int { return cmp.Compare(a.name, b.name) })
	return facets
}

// numberKey is a number as valueSet knows it.
func numberKey(x float64) string {
	return string(binary.BigEndian.AppendUint64([]byte{'n'}, math.Float64bits(x)))
}
