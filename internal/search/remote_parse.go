package search

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"svc/internal/document"
	"svc/internal/jsontext"
	"svc/internal/numeric"
	"svc/internal/rank"
	"svc/internal/text"
)

// maxVector is the largest dimension of a query vector.
const maxVector = 65536

var (
	errHits           = errors.New("it has more hits than requested")
	errVectors        = errors.New("one of its query vectors is not an array of numbers")
	errNoAggregations = errors.New("it has no aggregation states, which need svc of the same version")
	errMetadata       = errors.New("its metadata is not a list of descriptions")
)

// ParseRemote parses an answer in JSON. An answer without the data that hits are merged by is an error. If reading ended early, it returns
// the error of reading.Ended. The answer keeps the body, which the caller must not use any more.
func ParseRemote(remote string, body []byte, asked *Asked, reading *Reading) (*RemoteAnswer, error) {
	p := answerParser{Reading: reading, asked: asked, answer: &RemoteAnswer{Remote: remote, total: -1}, left: len(body) / leastScore}
	_, err := document.Outline(body, "hits", "_federation", p.member, p.hit)
	if err != nil {
		return nil, fmt.Errorf("it is not an answer to a federated search: %w", err)
	}
	if asked.Aggregations != nil {
		return nil, errNoAggregations
	}
	if asked.Groups > 0 {
		return nil, errNoGroups
	}
	if p.answer.total < 0 {
		return nil, errors.New("it is not an answer to a federated search: it has no total")
	}
	return p.answer, nil
}

// answerParser parses an answer in JSON.
type answerParser struct {
	*Reading
	asked   *Asked
	answer  *RemoteAnswer
	hits    int               // parsed so far, including pinned ones
	left    int               // upper bound of the score values in the rest of the answer
	values  []rank.ScoreValue // block for the values of several hits
	scratch []rank.ScoreValue // values of the current hit
	uid     string            // index of the previous hit
}

// answerMembers parse the members of an answer except hits. A test attacks by each of them.
var answerMembers = map[string]func(p *answerParser, value []byte) error{
	"processingTimeMs": func(p *answerParser, value []byte) (err error) {
		p.answer.took, err = readCount(value, math.MaxInt32)
		return err
	},
	"estimatedTotalHits": (*answerParser).total,
	"totalHits":          (*answerParser).total,
	"semanticHitCount":   func(p *answerParser, value []byte) error { p.answer.semantic = string(value) != "null"; return nil },
	"facetsByIndex": func(p *answerParser, value []byte) (err error) {
		p.answer.facets, err = p.parseFacets(value)
		return err
	},
	"queryVectors": func(p *answerParser, value []byte) (err error) {
		p.answer.vectors, err = p.parseVectors(value)
		return err
	},
	"metadata": func(p *answerParser, value []byte) (err error) {
		p.answer.metadata, err = p.parseMetadata(value)
		return err
	},
}

func (p *answerParser) total(value []byte) (err error) {
	p.answer.total, err = readCount(value, math.MaxInt)
	return err
}

// member parses a member of the answer. If a member occurs twice, the last one counts.
func (p *answerParser) member(name, value []byte) error {
	read := answerMembers[string(name)]
	if read == nil {
		return p.step()
	}
	err := read(p, value)
	if err != nil && p.ended == nil {
		err = fmt.Errorf("its member %s: %w", name, err)
	}
	return err
}

// hit parses hit i of the answer. Outline passes the hits before the first white space twice.
func (p *answerParser) hit(i int, e document.Element) error {
	a := p.answer
	if i < p.hits {
		return nil
	}
	if i >= p.asked.Hits {
		return errHits
	}
	if err := p.step(); err != nil {
		return err
	}
	h := remoteHit{raw: e.Object, from: e.Member, to: e.Ends, uid: p.uid}
	err := p.parseFederation(&h, e.Object[e.Value:e.Ends])
	if err == nil {
		h.values, err = p.keepValues(len(p.scratch))
	}
	if err == nil && h.place == nil {
		if a.hits, err = makeRoom(p.Reading, a.hits, 1, hitBytes); err == nil {
			a.hits = append(a.hits, h)
		}
	} else if err == nil {
		if a.pins, err = makeRoom(p.Reading, a.pins, 1, pinBytes); err == nil {
			a.pins = append(a.pins, pinnedHit[remoteHit]{*h.place, h})
		}
	}
	if err != nil && p.ended == nil {
		err = fmt.Errorf("hit %d: its _federation: %w", i, err)
	}
	p.uid, p.hits = h.uid, i+1
	return err
}

// leastScore is the length of the shortest score value in JSON, with its comma.
const leastScore = len(`{"sort":{}},`)

// keepValues copies the first n values of scratch into a block. A block has room for several hits, because most have equally many values.
func (p *answerParser) keepValues(n int) ([]rank.ScoreValue, error) {
	const most = 64 // hits per block
	if cap(p.values)-len(p.values) < n {
		room := max(n, min(n*min(p.asked.Hits-p.hits, most), p.left))
		if err := p.make(room * scoreBytes); err != nil {
			return nil, err
		}
		p.values = make([]rank.ScoreValue, 0, room)
	}
	p.left -= n
	from := len(p.values)
	p.values = append(p.values, p.scratch[:n]...)
	return p.values[from:len(p.values):len(p.values)], nil
}

// hitMembers parse the members of a hit's _federation. A test attacks by each of them.
var hitMembers = map[string]func(p *answerParser, h *remoteHit, value []byte) error{
	"indexUid": (*answerParser).uidOf,
	"queriesPosition": func(_ *answerParser, h *remoteHit, value []byte) (err error) {
		h.position, err = readCount(value, maxRank)
		return err
	},
	"weightedRankingScore": func(_ *answerParser, h *remoteHit, value []byte) (err error) {
		h.score, err = readFloat(value)
		return err
	},
	"weightedScoreValues": func(p *answerParser, _ *remoteHit, value []byte) error {
		p.scratch = p.scratch[:0]
		return document.Elements(value, p.scoreValue)
	},
	"spelling": func(_ *answerParser, h *remoteHit, value []byte) (err error) {
		h.spelling, err = readSpelling(value)
		return err
	},
	"pinnedPosition": func(_ *answerParser, h *remoteHit, value []byte) error {
		if h.place = nil; value[0] == 'n' {
			return nil
		}
		place, err := readCount(value, math.MaxInt32)
		h.place = &place
		return err
	},
	"extra_document": func(p *answerParser, h *remoteHit, value []byte) error {
		if h.extra = nil; p.asked.Hidden && value[0] == '{' && len(value) > 2 {
			h.extra = value
		}
		return nil
	},
}

// neededMembers are the members without which a hit cannot be merged.
var neededMembers = [...]string{"indexUid", "queriesPosition", "weightedRankingScore", "weightedScoreValues"}

// parseFederation parses a hit's _federation. It leaves the score values in scratch.
func (p *answerParser) parseFederation(h *remoteHit, object []byte) error {
	var has [len(neededMembers)]bool
	p.scratch = p.scratch[:0]
	err := document.Members(object, func(_, name, value []byte) error {
		read := hitMembers[string(name)]
		if read == nil {
			return p.step()
		}
		if i := slices.Index(neededMembers[:], string(name)); i >= 0 {
			has[i] = true
		}
		return cmp.Or(p.ended, read(p, h, value))
	})
	if err == nil && slices.Contains(has[:], false) {
		err = errors.New("it lacks the values that order hits")
	}
	return err
}

// maxUID is the longest uid of an index in bytes of JSON. Other engines may allow longer ones than svc.
const maxUID = 4 << 10

// uidOf parses the uid of a hit's index, which is mostly that of the previous hit.
func (p *answerParser) uidOf(h *remoteHit, value []byte) error {
	if value[0] != '"' || len(value) > maxUID {
		return errors.New("its indexUid is not a uid")
	}
	var buf [64]byte
	text := jsontext.AppendUnquoted(buf[:0], value)
	if string(text) == h.uid {
		return nil
	}
	if err := p.make(2*len(value) + smallBytes); err != nil {
		return err
	}
	h.uid = string(text)
	return nil
}

var errScoreValue = errors.New("one of its values has an unknown kind")

// scoreValue parses one of the values that hits are compared by: an object with one member.
func (p *answerParser) scoreValue(object []byte) (err error) {
	if err := p.step(); err != nil {
		return err
	}
	known := false
	var s rank.ScoreValue
	err = document.Members(object, func(_, name, value []byte) (err error) {
		known = true
		switch string(name) {
		case "weightedScore":
			s.Kind = rank.ByRelevance
			s.Score, err = readFloat(value)
		case "vectorSort":
			s.Kind = rank.BySimilarity
			s.Score, err = readFloat(value)
		case "sort":
			s, err = p.ordered(rank.ByField, "value", value)
		case "geoSort":
			s, err = p.ordered(rank.ByDistance, "distance", value)
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
	if err == nil {
		p.scratch, err = makeRoom(p.Reading, p.scratch, 1, scoreBytes)
	}
	if err == nil {
		p.scratch = append(p.scratch, s)
	}
	return err
}

// ordered parses {"asc": bool, <name>: value}.
func (p *answerParser) ordered(kind rank.ScoreKind, name string, object []byte) (s rank.ScoreValue, err error) {
	s = rank.ScoreValue{Kind: kind, Desc: true, Sort: rank.SortValue{Class: rank.OfNothing}}
	err = document.Members(object, func(_, member, value []byte) (err error) {
		switch {
		case string(member) == "asc":
			s.Desc = string(value) != "true"
		case string(member) != name || value[0] == 'n':
		case value[0] == '"' && kind == rank.ByField:
			if err = p.make(2*len(value) + 3*keyLength(value) + keyBytes(value) + smallBytes); err == nil {
				s.Sort = rank.SortValue{Class: rank.OfText, Text: text.FacetKey(nil, jsontext.AppendUnquoted(nil, value))}
			}
		default:
			var x numeric.Value
			x, err = readNumber(value)
			s.Sort = rank.NumberValue(x)
		}
		return err
	})
	return s, err
}

// parseVectors parses {position: vector}.
func (p *answerParser) parseVectors(object []byte) (all []remoteVector, err error) {
	if !p.asked.Vectors || object[0] != '{' {
		return nil, nil
	}
	err = document.Members(object, func(_, name, value []byte) error {
		position, err := readCount(name, maxRank)
		if err != nil || len(all) >= p.asked.Queries { // it belongs to no query
			return nil
		}
		n := 0
		err = document.Elements(value, func(number []byte) error {
			if n++; n > maxVector || number[0] != '-' && (number[0] < '0' || number[0] > '9') {
				return errVectors
			}
			return p.step()
		})
		if err != nil {
			return cmp.Or(p.ended, errVectors)
		}
		if err := p.make(3 * smallBytes); err != nil { // includes the growth of the list
			return err
		}
		all = append(all, remoteVector{strconv.Itoa(position), value})
		return nil
	})
	return all, err
}

// parseMetadata parses the list of query descriptions.
func (p *answerParser) parseMetadata(list []byte) (all []remoteMetadata, err error) {
	if !p.asked.Metadata || list[0] == 'n' {
		return nil, nil
	}
	err = document.Elements(list, func(item []byte) error {
		if len(all) >= p.asked.Queries {
			return errMetadata
		}
		var m remoteMetadata
		err := document.Members(item, func(_, name, value []byte) error {
			if i := slices.Index(metadataNames[:], string(name)); i >= 0 && value[0] == '"' {
				m[i] = value
			}
			return p.step()
		})
		if err != nil {
			return cmp.Or(p.ended, errMetadata)
		}
		if err := p.make(3 * len(m) * 24); err != nil { // includes the growth of the list
			return err
		}
		all = append(all, m)
		return nil
	})
	return all, err
}
