package search

import (
	"encoding/binary"
	"math"
	"strconv"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/jsontext"
	"svc/internal/numeric"
	"svc/internal/rank"
	"svc/internal/text"
)

// RemoteAnswer is the answer of another instance to queries of a federated search.
type RemoteAnswer struct {
	Remote string
	Err    *apierr.Error // why there is no answer; the rest is empty then
	// Refused says that there is not enough memory for the answer here. It fails the search, and does not count against the remote.
	Refused error

	hits         []remoteHit            // without pinned ones, in the order of the answer
	pins         []pinnedHit[remoteHit] // by their places
	total        int
	took         int                // milliseconds
	semantic     bool               // it says how many hits vectors found
	facets       map[string][]facet // by index: in the order of their names, each with its values in the order of their keys
	aggregations *aggregate.Result  // nil: none
	groups       []federatedGroup   // their hits are the hits, one after the other; groups were requested
	met          metHashes          // keys of all groups
	vectors      []remoteVector
	metadata     []remoteMetadata // a query each
	emptied      bool             // values of facets are no longer counted
	body         []byte           // of an answer whose hits are not validated yet, plus document.Padding; else nil
}

// remoteVector is the vector that a remote searched with for a query.
type remoteVector struct {
	position string // of the query
	vector   []byte // a JSON array of numbers
}

// remoteMetadata describes a query and its index at a remote, by metadataNames: JSON strings, or nil.
type remoteMetadata [len(metadataNames)][]byte

// metadataNames are the members of a query description, in the order of responses.
var metadataNames = [...]string{"indexUid", "primaryKey", "query", "queryUid"}

// BadAnswer is the error of an answer that cannot be used.
func BadAnswer(remote string, err error) *apierr.Error {
	return apierr.New("remote_bad_response", "The answer of the remote `%s` cannot be used: %v.", remote, err)
}

// remoteHit is a hit of another instance.
type remoteHit struct {
	raw      []byte // as it came
	from, to int    // where its member _federation is, which is shown with less and the name of the remote
	values   []rank.ScoreValue
	spelling int     // rank.Hit.Spelling
	score    float64 // weighted, as are the scores among the values
	position int     // of its query
	uid      string  // of its index
	extra    []byte  // an object of fields that it does not show; nil: none
	place    *int    // given by a rule of the instance; nil: none
	begin    int     // of raw in the body of the answer,
	unseen   bool    // raw and extra may be invalid JSON
}

// Upper bounds of the memory of parsed items besides the text of the answer.
const (
	hitBytes   = 160
	pinBytes   = 176
	scoreBytes = 80
	facetBytes = 88
	statsBytes = 400
	valueBytes = 104
	indexBytes = 224 // a name in a growing map
	smallBytes = 64  // a small allocation that belongs to an item
)

// appendShown appends the hit as it is shown.
func (h *remoteHit) appendShown(dst []byte, remote string) []byte {
	dst = append(append(dst, h.raw[:h.from]...), `"_federation":`...)
	dst = appendFederation(dst, h.uid, h.position, h.score)
	dst = append(appendRemoteName(dst, remote), '}')
	return append(dst, h.raw[h.to:]...)
}

// appendScoreValues appends the result of parseFederation, with weighted scores.
func appendScoreValues(dst []byte, values []rank.ScoreValue, weight float64) []byte {
	dst = append(dst, '[')
	for i := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch v := &values[i]; v.Kind {
		case rank.ByRelevance:
			dst = jsontext.AppendFloat(append(dst, `{"weightedScore":`...), product(v.Score, weight))
		case rank.BySimilarity:
			dst = jsontext.AppendFloat(append(dst, `{"vectorSort":`...), product(v.Score, weight))
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
				dst = jsontext.AppendValue(dst, v.Sort.Numeric())
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

// eachValueBelow calls f for the scalars at a path below a value, including those in arrays.
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

// distinctKey returns the key of a scalar in valueSet, or "" for one that is not a value.
func distinctKey(scalar []byte) string {
	if scalar[0] == '"' {
		if key := text.FacetKey(nil, jsontext.AppendUnquoted(nil, scalar)); len(key) > 0 {
			return "s" + string(key)
		}
		return ""
	}
	if x, ok := numeric.Parse(string(scalar)); ok {
		return numberKey(x)
	}
	return "s" + string(scalar) // true or false
}

// numberKey is a number as valueSet knows it.
func numberKey(x numeric.Value) string {
	key := binary.BigEndian.AppendUint64([]byte{'n'}, math.Float64bits(x.Float))
	return string(binary.BigEndian.AppendUint16(key, uint16(x.Rest)))
}
