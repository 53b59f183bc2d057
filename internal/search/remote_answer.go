package search

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/jsontext"
	"svc/internal/rank"
	"svc/internal/text"
)

// RemoteAnswer is what another instance answered to the queries of a federated search that it was sent.
type RemoteAnswer struct {
	Remote string
	Err    *apierr.Error // why there is no answer; the rest is empty then
	// Refused says that there is no room for the answer here, which fails the search: it is no fault of the remote.
	Refused error

	hits     []remoteHit         // that are not pinned, in the order of the answer
	pins     []placed[remoteHit] // by their places
	total    int
	took     int                          // milliseconds
	semantic bool                         // it says how many hits vectors found
	facets   map[string][]facet           // by index: in the order of their names, each with its values in that of their keys
	vectors  map[string]json.RawMessage   // by query position
	metadata []map[string]json.RawMessage // a query each
	body     []byte                       // of an answer whose hits are not looked at yet, and document.Padding; else nil
}

// BadAnswer is the error of an answer that cannot be used.
func BadAnswer(remote string, err error) *apierr.Error {
	return apierr.New("remote_bad_response", "The answer of the remote `%s` cannot be used: %v.", remote, err)
}

// remoteHit is a hit of another instance.
type remoteHit struct {
	raw      []byte // as it came
	from, to int    // where its member _federation stands, which is shown with less and the name of the remote
	values   []rank.ScoreValue
	score    float64 // weighted, as are the scores among the values
	position int     // of its query
	uid      string  // of its index
	extra    []byte  // an object of fields that it does not show; nil: none
	place    *int    // that a rule of the instance gives to it; nil: none
	begin    int     // of raw in the body of the answer,
	unseen   bool    // where raw and extra may not be JSON
}

// ParseRemote reads the answer of an instance. What lacks the data that hits are merged by is an error. The body is not to be used again:
// the answer stands in it.
func ParseRemote(remote string, body []byte) (*RemoteAnswer, error) {
	r := &RemoteAnswer{Remote: remote, total: -1}
	body, spans, err := document.Outline(body, "hits", "_federation", func(name, value []byte) (err error) {
		switch string(name) {
		case "processingTimeMs":
			r.took, err = strconv.Atoi(string(value))
		case "estimatedTotalHits", "totalHits":
			r.total, err = strconv.Atoi(string(value))
		case "semanticHitCount":
			r.semantic = string(value) != "null"
		case "facetsByIndex":
			r.facets, err = parseFacets(value)
		case "queryVectors":
			err = json.Unmarshal(value, &r.vectors)
		case "metadata":
			err = json.Unmarshal(value, &r.metadata)
		}
		if err != nil {
			err = fmt.Errorf("its member %s: %w", name, err)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("it is no answer to a federated search: %w", err)
	}
	if r.total < 0 {
		return nil, errors.New("it is no answer to a federated search: it has no total")
	}
	r.hits = make([]remoteHit, 0, len(spans))
	var values []rank.ScoreValue // of all hits
	uid := ""
	for i, s := range spans {
		if s.Ends == 0 {
			return nil, fmt.Errorf("hit %d: it has no _federation", i)
		}
		h := remoteHit{raw: body[s.From:s.To:s.To], from: s.Member - s.From, to: s.Ends - s.From, values: values[len(values):], uid: uid}
		if err := h.parseFederation(body[s.Value:s.Ends]); err != nil {
			return nil, fmt.Errorf("hit %d: its _federation: %w", i, err)
		}
		if values, uid = h.values, h.uid; i == 0 { // others have as many
			values = make([]rank.ScoreValue, 0, len(h.values)*len(spans))
		}
		h.values = slices.Clip(h.values)
		if h.place != nil {
			r.pins = append(r.pins, placed[remoteHit]{*h.place, h})
		} else {
			r.hits = append(r.hits, h)
		}
	}
	return r, nil
}

// hitBytes is what is kept of a hit beside its text, about.
const hitBytes = 256

// valueBytes is what is kept of a value of a facet, about.
const valueBytes = 160

// scoreBytes is what is kept of a value that a hit is merged by, and facetBytes of a facet or an index with facets, about.
const scoreBytes, facetBytes = 80, 128

// Overhead is how many bytes an answer in JSON takes beside its text.
func (a *RemoteAnswer) Overhead() int64 {
	n := hitBytes * int64(len(a.hits)+len(a.pins))
	for _, facets := range a.facets {
		for i := range facets {
			n += valueBytes * int64(len(facets[i].values))
		}
	}
	return n
}

// appendShown appends the hit as it is shown.
func (h *remoteHit) appendShown(dst []byte, remote string) []byte {
	dst = append(append(dst, h.raw[:h.from]...), `"_federation":`...)
	dst = appendFederation(dst, h.uid, h.position, h.score)
	dst = append(appendRemoteName(dst, remote), '}')
	return append(dst, h.raw[h.to:]...)
}

func (h *remoteHit) parseFederation(object []byte) error {
	var has struct{ uid, position, score, values bool }
	err := document.Members(object, func(_, name, value []byte) (err error) {
		switch string(name) {
		case "indexUid":
			has.uid = value[0] == '"'
			var buf [64]byte
			if text := jsontext.AppendUnquoted(buf[:0], value); string(text) != h.uid { // mostly that of the hit before
				h.uid = string(text)
			}
		case "queriesPosition":
			has.position = true
			h.position, err = strconv.Atoi(string(value))
		case "weightedRankingScore":
			has.score = true
			h.score, err = strconv.ParseFloat(string(value), 64)
		case "weightedScoreValues":
			has.values = true
			err = document.Elements(value, func(element []byte) error {
				v, err := scoreValue(element)
				h.values = append(h.values, v)
				return err
			})
		case "pinnedPosition":
			if value[0] != 'n' {
				var place uint64
				place, err = strconv.ParseUint(string(value), 10, 31)
				at := int(place)
				h.place = &at
			}
		case "extra_document":
			if value[0] == '{' && len(value) > 2 {
				h.extra = value
			}
		}
		return err
	})
	if err == nil && has != (struct{ uid, position, score, values bool }{true, true, true, true}) {
		err = errors.New("it lacks what hits are merged by")
	}
	return err
}

var errScoreValue = errors.New("one of its values is of no kind that is known here")

// scoreValue reads one of the values that hits are compared by: an object with one member.
func scoreValue(object []byte) (s rank.ScoreValue, err error) {
	known := false
	err = document.Members(object, func(_, name, value []byte) (err error) {
		known = true
		switch string(name) {
		case "weightedScore":
			s.Kind = rank.ByRelevance
			s.Score, err = strconv.ParseFloat(string(value), 64)
		case "vectorSort":
			s.Kind = rank.BySimilarity
			s.Score, err = strconv.ParseFloat(string(value), 64)
		case "sort":
			s, err = ordered(rank.ByField, "value", value)
		case "geoSort":
			s, err = ordered(rank.ByDistance, "distance", value)
			if s.Sort.Class == rank.OfNumber {
				s.Sort.Class = rank.OfPlace
			}
		default:
			known = false
		}
		return err
	})
	if err == nil && !known {
		err = errScoreValue
	}
	return s, err
}

// ordered reads {"asc": bool, <name>: value}.
func ordered(kind rank.ScoreKind, name string, object []byte) (s rank.ScoreValue, err error) {
	s = rank.ScoreValue{Kind: kind, Desc: true, Sort: rank.SortValue{Class: rank.OfNothing}}
	err = document.Members(object, func(_, member, value []byte) (err error) {
		switch {
		case string(member) == "asc":
			s.Desc = string(value) != "true"
		case string(member) != name || value[0] == 'n':
		case value[0] == '"' && kind == rank.ByField:
			s.Sort = rank.SortValue{Class: rank.OfText, Text: text.FacetKey(nil, jsontext.AppendUnquoted(nil, value))}
		default:
			s.Sort.Class = rank.OfNumber
			s.Sort.Number, err = strconv.ParseFloat(string(value), 64)
		}
		return err
	})
	return s, err
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
			dst = jsontext.AppendFloat(append(dst, `{"weightedScore":`...), v.Score*weight)
		case rank.BySimilarity:
			dst = jsontext.AppendFloat(append(dst, `{"vectorSort":`...), v.Score*weight)
		case rank.ByDistance:
			dst = strconv.AppendBool(append(dst, `{"geoSort":{"asc":`...), !v.Desc)
			dst = append(dst, `,"distance":`...)
			if v.Sort.Class == rank.OfNothing {
				dst = append(dst, "null"...)
			} else {
				dst = jsontext.AppendFloat(dst, v.Sort.Number)
			}
			dst = append(dst, '}')
		case rank.ByField:
			dst = strconv.AppendBool(append(dst, `{"sort":{"asc":`...), !v.Desc)
			dst = append(dst, `,"value":`...)
			switch v.Sort.Class {
			case rank.OfNumber:
				dst = jsontext.AppendFloat(dst, v.Sort.Number)
			case rank.OfText:
				dst = jsontext.AppendQuoted(dst, v.Sort.Text)
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
	return jsontext.EachMember(object, func(key, value []byte) error {
		name := jsontext.AppendUnquoted(buf[:0], key)
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
		return jsontext.EachElement(value, func(element []byte) error { return eachValueBelow(element, path, f) })
	}
	return nil
}

func eachScalar(value []byte, f func(scalar []byte)) error {
	switch value[0] {
	case '[':
		return jsontext.EachElement(value, func(element []byte) error { return eachScalar(element, f) })
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
		if key := text.FacetKey(nil, jsontext.AppendUnquoted(nil, scalar)); len(key) > 0 {
			return "s" + string(key)
		}
		return ""
	}
	if x, err := strconv.ParseFloat(string(scalar), 64); err == nil {
		return numberKey(x)
	}
	return "s" + string(scalar) // true or false
}

// numberKey is a number as valueSet knows it.
func numberKey(x float64) string {
	return string(binary.BigEndian.AppendUint64([]byte{'n'}, math.Float64bits(x)))
}
