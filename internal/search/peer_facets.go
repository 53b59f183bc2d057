package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"svc/internal/budget"
	"svc/internal/index"
	"svc/internal/settings"
	"svc/internal/turns"
)

// FacetValues are the values of a facet that a search found in some of the documents, to be merged with others. Local ones are valid
// as long as the view.
type FacetValues struct{ list []facetValue }

// FindFacets returns the values of some documents that can be among the first values of all.
func FindFacets(ctx context.Context, v *index.View, r *FacetRequest) (*FacetValues, error) {
	found, err := searchFacet(ctx, v, r, mergedLimit(v.Settings.Faceting.Order(r.FacetName), v.Settings.Faceting.MaxValuesPerFacet))
	return &FacetValues{found}, err
}

// mergedLimit returns how many values of a part of the documents can be among the first limit values of all. In the order of values,
// only the first limit of each part can. In other orders any may: up to mergedFacets are taken.
func mergedLimit(order settings.FacetOrder, limit int) int {
	if limit == 0 || orderOf(order).byValue {
		return limit
	}
	return max(limit, mergedFacets)
}

// AppendPeer appends the values in the form of ReadType.
func (f *FacetValues) AppendPeer(ctx context.Context, dst []byte) ([]byte, error) {
	t := turns.Of(ctx)
	for i := range f.list {
		if i%clockValues == 0 {
			if err := t.Yield(); err != nil {
				return nil, err
			}
		}
		v := &f.list[i]
		dst = appendText(append(dst, 1), v.shown)
		if bytes.Equal(v.key, v.shown) {
			dst = append(dst, 0)
		} else {
			dst = appendText(dst, v.key)
		}
		dst = binary.AppendUvarint(dst, uint64(v.count))
	}
	return append(dst, 0), nil
}

// MostFacetValues returns how many values of each part are merged: an instance with the same settings sends no more.
func MostFacetValues(v *index.View) int {
	return max(mergedFacets, v.Settings.Faceting.MaxValuesPerFacet)
}

// ParseFacets reads the answer of an instance, which is in the body. It keeps the first most values. If reading ends early, it returns
// the error of reading.Ended.
func ParseFacets(body []byte, most int, reading *Reading) (f *FacetValues, err error) {
	p := peerReader{left: body, Reading: reading}
	f = new(FacetValues)
	for p.byte() == 1 && !p.stop(p.step()) {
		v := facetValue{shown: p.text(), key: p.text()}
		if len(v.key) == 0 {
			v.key = v.shown
		}
		if v.count = p.int(math.MaxUint32); len(f.list) >= most {
			continue
		}
		if f.list, err = makeRoom(reading, f.list, 1, valueBytes); err != nil {
			return nil, err
		}
		f.list = append(f.list, v)
	}
	return f, p.end()
}

// AppendFacetSearch appends the response body that merges the results of several parts of the documents. If parts spell a value
// differently, the spelling that is lowest in bytes is shown. The values are charged to the account. The error is that of the account.
func AppendFacetSearch(account *budget.Account, dst []byte, v *index.View, r *FacetRequest, parts []*FacetValues, errs *RemoteErrors, start time.Time) ([]byte, error) {
	n := 0
	for _, p := range parts {
		n += len(p.list)
	}
	if err := account.Hold(int64(n) * valueBytes); err != nil {
		return nil, err
	}
	values := make([]facetValue, 0, n)
	for _, p := range parts {
		values = append(values, p.list...)
	}
	slices.SortStableFunc(values, func(a, b facetValue) int {
		return cmp.Or(bytes.Compare(a.key, b.key), bytes.Compare(a.shown, b.shown))
	})
	merged := values[:0]
	for _, v := range values {
		if last := len(merged) - 1; last >= 0 && bytes.Equal(merged[last].key, v.key) {
			merged[last].count += v.count
		} else {
			merged = append(merged, v)
		}
	}
	orderOf(v.Settings.Faceting.Order(r.FacetName)).arrange(merged, newFacetQuery(v, r))
	merged = merged[:min(len(merged), v.Settings.Faceting.MaxValuesPerFacet)]
	return append(errs.AppendJSON(append(appendFacetHits(dst, r, merged, start), `,"remoteErrors":`...)), '}'), nil
}

// AppendRemote appends the body of the facet search for another instance.
func (r *FacetRequest) AppendRemote(dst []byte) []byte {
	o := objectWriter{append(dst, '{')}
	r.Search.writeNarrowing(&o)
	o.text("facetName", r.FacetName)
	if r.FacetQuery != nil {
		o.text("facetQuery", *r.FacetQuery)
	}
	o.flag("exhaustiveFacetCount", r.Exhaustive)
	return append(o.b, '}')
}
