package search

import (
	"strconv"

	"svc/internal/aggregate"
	"svc/internal/jsontext"
	"svc/internal/query"
)

// AppendRemote appends the request as a query of a multi-search for another instance. It omits default values and the options of the
// federation. The query is for the index uid.
func (r *Request) AppendRemote(dst []byte, uid string, weight float64, position int) []byte {
	o := objectWriter{append(dst, '{')}
	o.text("indexUid", uid)
	r.writeNarrowing(&o)
	o.list("sort", r.Sort)
	o.list("attributesToRetrieve", r.AttributesToRetrieve)
	o.list("attributesToHighlight", r.AttributesToHighlight)
	o.list("attributesToCrop", r.AttributesToCrop)
	o.integer("cropLength", r.CropLength)
	o.text("cropMarker", r.CropMarker)
	o.text("highlightPreTag", r.HighlightPreTag)
	o.text("highlightPostTag", r.HighlightPostTag)
	o.flag("showMatchesPosition", r.ShowMatchesPosition)
	o.flag("showRankingScore", r.ShowRankingScore)
	o.flag("showRankingScoreDetails", r.ShowRankingScoreDetails)
	o.flag("retrieveVectors", r.RetrieveVectors)
	if d := r.Distinct; d != nil {
		o.text("distinct", *d)
	}
	if s := r.ScoreFunctions; s != nil {
		o.name("scoreFunctions")
		o.b = append(o.b, s.JSON()...)
	}
	o.name("federationOptions")
	inner := objectWriter{append(o.b, '{')}
	inner.number("weight", weight)
	inner.name("queryPosition")
	o.b = append(strconv.AppendInt(inner.b, int64(position), 10), '}')
	return append(o.b, '}')
}

// writeNarrowing writes the members that decide which documents match. Searches and facet searches share them.
func (r *Request) writeNarrowing(o *objectWriter) {
	o.text("q", r.Query)
	if r.Filter != nil {
		o.text("filter", r.Filter.String())
	}
	switch r.Strategy {
	case query.All:
		o.text("matchingStrategy", "all")
	case query.Frequency:
		o.text("matchingStrategy", "frequency")
	}
	o.list("locales", r.Locales)
	o.list("attributesToSearchOn", r.SearchOn)
	if t := r.RankingScoreThreshold; t != nil {
		o.number("rankingScoreThreshold", *t)
	}
	if h := r.Hybrid; h != nil {
		o.name("hybrid")
		inner := objectWriter{append(o.b, '{')}
		inner.text("embedder", h.Embedder)
		if h.Ratio != nil {
			inner.number("semanticRatio", *h.Ratio)
		}
		o.b = append(inner.b, '}')
	}
	if r.Vector != nil {
		o.name("vector")
		o.b = appendVector(o.b, r.Vector)
	}
	if r.Media != nil {
		o.name("media")
		o.b = append(o.b, r.Media...)
	}
}

// AppendRemote appends the federation's request to another instance: all hits up to the page's end, or Least. facets are the indexes whose
// facets are requested.
func (r *FederatedRequest) AppendRemote(dst []byte, facets []IndexFacets) []byte {
	o := objectWriter{append(dst, '{')}
	if _, _, paged := r.page(); paged {
		o.integer("page", 1)
		o.integer("hitsPerPage", r.until())
	} else {
		o.integer("offset", 0)
		o.integer("limit", r.until())
	}
	if r.Distinct != nil {
		o.text("distinct", *r.Distinct)
	}
	o.flag("showPerformanceDetails", r.ShowPerformanceDetails)
	o.aggregations(r.Aggregations)
	if by := r.GroupBy; by != nil {
		o.name("groupBy")
		inner := objectWriter{append(o.b, '{')}
		inner.text("attribute", by.Attribute)
		inner.integer("hitsPerGroup", by.Hits)
		inner.list("sort", by.Sort)
		o.b = append(inner.b, '}')
	}
	if r.GroupKeys != nil {
		o.text("groupKeys", GroupKeysText(r.GroupKeys))
	}
	if len(facets) > 0 {
		o.name("facetsByIndex")
		inner := objectWriter{append(o.b, '{')}
		for _, f := range facets {
			inner.list(f.View.UID, f.Names)
		}
		o.b = append(inner.b, '}')
	}
	return append(o.b, '}')
}

// objectWriter writes the members of an object whose brace is open.
type objectWriter struct{ b []byte }

func (o *objectWriter) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(jsontext.AppendQuoted(o.b, name), ':')
}

func (o *objectWriter) text(name, value string) {
	o.name(name)
	o.b = jsontext.AppendQuoted(o.b, value)
}

func (o *objectWriter) number(name string, value float64) {
	o.name(name)
	o.b = jsontext.AppendFloat(o.b, value)
}

func (o *objectWriter) integer(name string, value int) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, int64(value), 10)
}

// flag writes a flag that differs from its default.
func (o *objectWriter) flag(name string, value bool) {
	if value {
		o.name(name)
		o.b = append(o.b, "true"...)
	}
}

// aggregations writes aggregations as they were sent; nil: none.
func (o *objectWriter) aggregations(r *aggregate.Request) {
	if r != nil {
		o.name("aggregations")
		o.b = append(o.b, r.Text...)
	}
}

// list writes a list; nil: none.
func (o *objectWriter) list(name string, values []string) {
	if values == nil {
		return
	}
	o.name(name)
	o.b = jsontext.AppendStrings(o.b, values)
}
