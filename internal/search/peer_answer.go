package search

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"svc/internal/aggregate"
	"svc/internal/document"
	"svc/internal/numeric"
	"svc/internal/rank"
)

// PeerType is the content type of an answer between instances of svc, which needs no parser. Clients that do not ask for it get JSON.
// In its layout, integers are varints, floats are 8 bytes little endian, numbers of documents are a float and the varint of their
// rest (numeric.Value), and texts follow their lengths:
//
//	the hits as they are shown, one after the other, each with the member "_federation":null
//	milliseconds, total, 1 if vectors searched, object of query vectors or "", array of metadata or ""
//	number of hits, and of each: length, where its member stands, uid of its index, or "" for that of the hit before, position of its
//	  query, score, number of values and the values, what its accents count as a signed varint (rank.Hit.Spelling), place that a rule
//	  gives it + 1, object of fields that it does not show or ""
//	number of indexes with facets, and of each: uid, number of facets, and of each: name, 0, or 1 and min and max, number of values,
//	  and of each value: text, key if it differs, count; in the order of keys
//	the states of the aggregations, if the request has any (aggregate.Result)
//	the groups, if the request has any (appendPeerGroups)
//	4 bytes: the length of the hits
//
// A value has a byte with its kind and, in the fourth bit, whether it is descending; then a score, or a class and the value of that
// class.
//
// Until hits-1 the numbers of documents were floats, until hits-2 hits had no accents, and until hits-3 groups had no pins. Between
// instances that share no form, answers are JSON. JSON has no groups: the answer to a search with groupBy is then refused.
const PeerType = "application/vnd.svc.hits-4"

const (
	peerMember   = `"_federation":null`
	peerDesc     = 1 << 3
	peerTrailer  = 4
	maxPeerHits  = 1<<32 - 1
	noExtra      = "{}"
	leastPeerHit = 12 // bytes of one, at least

	leastPeerValue      = 2
	leastPeerIndex      = 2
	leastPeerFacet      = 3
	leastPeerFacetValue = 3
)

var (
	errPeer      = errors.New("it is not an answer of another instance")
	errPeerLarge = errors.New("the answer is too large for the binary form between instances")
)

// peerReader reads the notes. A truncated or invalid message sets bad. From then on it returns zero values.
type peerReader struct {
	*Reading
	left []byte
	bad  bool
}

// count reads the number of following items. Each of them takes at least this many bytes.
func (p *peerReader) count(least int) int { return p.int(len(p.left) / least) }

// stop marks the notes as bad if err is not nil, and reports whether they are bad.
func (p *peerReader) stop(err error) bool {
	if err != nil {
		p.left, p.bad = nil, true
	}
	return p.bad
}

// number reads a varint. An invalid one ends the reading: all later calls return 0.
func (p *peerReader) number() uint64 {
	x, n := binary.Uvarint(p.left)
	if n <= 0 {
		p.left, p.bad = nil, true
		return 0
	}
	p.left = p.left[n:]
	return x
}

// int reads a number up to most.
func (p *peerReader) int(most int) int {
	x := p.number()
	if x > uint64(most) {
		p.left, p.bad = nil, true
		return 0
	}
	return int(x)
}

// bytes returns the next n bytes, which alias the answer.
func (p *peerReader) bytes(n int) []byte {
	if n > len(p.left) {
		p.left, p.bad = nil, true
		return nil
	}
	b := p.left[:n:n]
	p.left = p.left[n:]
	return b
}

func (p *peerReader) text() []byte { return p.bytes(p.int(len(p.left))) }

func (p *peerReader) byte() byte {
	if b := p.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// float reads a number that JSON can have.
func (p *peerReader) float() float64 {
	b := p.bytes(8)
	if b == nil {
		return 0
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if math.IsNaN(x) || math.IsInf(x, 0) {
		p.left, p.bad = nil, true
		return 0
	}
	return x
}

// spelling reads a signed number of words.
func (p *peerReader) spelling() int {
	n, size := binary.Varint(p.left)
	if size <= 0 || n < -maxSpelling || n > maxSpelling {
		p.left, p.bad = nil, true
		return 0
	}
	p.left = p.left[size:]
	return int(n)
}

// exact reads what appendNumber appended.
func (p *peerReader) exact() numeric.Value {
	x := numeric.Of(p.float())
	rest := p.number()
	if x.Rest = int16(rest>>1) ^ -int16(rest&1); rest > math.MaxUint16 || !x.Exact() {
		p.left, p.bad = nil, true
		return numeric.Value{}
	}
	return x
}

// ParsePeer parses an answer in the form of PeerType. It appends 8 bytes to the body, and the answer keeps the body. Hits are validated as
// JSON when they are merged. If reading ended early, it returns the error of reading.Ended.
func ParsePeer(remote string, body []byte, asked *Asked, reading *Reading) (*RemoteAnswer, error) {
	if len(body) < peerTrailer {
		return nil, errPeer
	}
	notes := len(body) - peerTrailer
	length := binary.LittleEndian.Uint32(body[notes:])
	if uint64(length) > uint64(notes) {
		return nil, errPeer
	}
	p := peerReader{left: body[length:notes:notes], Reading: reading}
	a := &RemoteAnswer{Remote: remote, body: append(body, make([]byte, document.Padding)...)}
	a.took, a.total, a.semantic = int(min(p.number(), math.MaxInt32)), int(min(p.number(), math.MaxInt)), p.byte() != 0
	if err := a.readMembers(p.text(), p.text(), asked, reading); err != nil {
		return nil, err
	}
	if err := a.readHits(&p, int(length), asked); err != nil {
		return nil, err
	}
	if err := a.readFacets(&p, asked); err != nil {
		return nil, err
	}
	if asked.Aggregations != nil {
		var err error
		if a.aggregations, err = asked.Aggregations.ReadPeer(peerStates{&p}); err != nil {
			return nil, err
		}
	}
	if asked.Groups > 0 {
		if err := a.readGroups(&p, asked); err != nil {
			return nil, err
		}
	}
	if p.ended != nil {
		return nil, p.ended
	}
	if p.bad || len(p.left) > 0 {
		return nil, errPeer
	}
	return a, nil
}

// readMembers parses the JSON members, if they were requested.
func (a *RemoteAnswer) readMembers(vectors, metadata []byte, asked *Asked, reading *Reading) (err error) {
	p := answerParser{Reading: reading, asked: asked}
	if asked.Vectors && len(vectors) > 0 {
		if !json.Valid(vectors) {
			return errVectors
		}
		if a.vectors, err = p.parseVectors(vectors); err != nil {
			return err
		}
	}
	if asked.Metadata && len(metadata) > 0 {
		if !json.Valid(metadata) {
			return errMetadata
		}
		a.metadata, err = p.parseMetadata(metadata)
	}
	return err
}

// readHits reads the hits. It trusts no count beyond the remaining bytes.
func (a *RemoteAnswer) readHits(p *peerReader, length int, asked *Asked) (err error) {
	n := p.count(leastPeerHit)
	if n > asked.Hits {
		return errHits
	}
	if err := p.make(n * hitBytes); err != nil {
		return err
	}
	a.hits = make([]remoteHit, 0, n)
	var values []rank.ScoreValue // room for those of hits
	uid, from := "", 0
	for i := range n {
		if err := p.step(); err != nil {
			return err
		}
		to := from + p.int(length-from)
		h := remoteHit{raw: a.body[from:to:to], begin: from, unseen: true}
		h.from = p.int(len(h.raw))
		h.to = h.from + len(peerMember)
		if h.to > len(h.raw) || string(h.raw[h.from:h.to]) != peerMember {
			return errPeer
		}
		if t := p.text(); len(t) > 0 {
			if err := p.make(len(t) + smallBytes); err != nil {
				return err
			}
			uid = string(t)
		}
		h.uid, h.position, h.score = uid, p.int(maxRank), p.float()
		count := p.count(leastPeerValue)
		if cap(values)-len(values) < count { // most hits have equally many; the remaining bytes limit the rest
			room := max(count, min(count*(n-i), len(p.left)/leastPeerValue, 64*count))
			if err := p.make(room * scoreBytes); err != nil {
				return err
			}
			values = make([]rank.ScoreValue, 0, room)
		}
		first := len(values)
		for range count {
			if p.stop(p.step()) {
				break
			}
			values = append(values, p.value())
		}
		h.values = values[first:len(values):len(values)]
		h.spelling = p.spelling()
		if place := p.int(math.MaxInt32); place > 0 {
			place--
			h.place = &place
		}
		if h.extra = p.text(); len(h.extra) == 0 || !asked.Hidden {
			h.extra = nil
		}
		switch {
		case p.bad:
			return cmp.Or(p.ended, errPeer)
		case h.place == nil:
			a.hits = append(a.hits, h)
		default:
			if a.pins, err = makeRoom(p.Reading, a.pins, 1, pinBytes); err != nil {
				return err
			}
			a.pins = append(a.pins, pinnedHit[remoteHit]{*h.place, h})
		}
		from = to
	}
	if p.bad || from != length {
		return errPeer
	}
	return nil
}

// value reads a value that orders hits. An unknown kind makes the answer invalid.
func (p *peerReader) value() (v rank.ScoreValue) {
	kind := p.byte()
	v.Kind, v.Desc = rank.ScoreKind(kind&^peerDesc), kind&peerDesc != 0
	switch v.Kind {
	case rank.ByRelevance, rank.BySimilarity:
		v.Score = p.float()
		return v
	case rank.ByField, rank.ByDistance:
	default:
		p.bad = true
		return v
	}
	switch v.Sort.Class = rank.ValueClass(p.byte()); v.Sort.Class {
	case rank.OfNothing:
	case rank.OfText:
		v.Sort.Text = p.text()
	case rank.OfNumber:
		v.Sort = rank.NumberValue(p.exact())
	case rank.OfPlace:
		v.Sort.Number = p.float()
	default:
		p.bad = true
	}
	return v
}

// readFacets reads the facets. It skips them if neither they, nor the aggregations and groups after them, were requested.
func (a *RemoteAnswer) readFacets(p *peerReader, asked *Asked) error {
	if len(asked.Facets) == 0 && asked.Aggregations == nil && asked.Groups == 0 {
		p.left = nil
		return nil
	}
	for range p.count(leastPeerIndex) {
		of := asked.facetsOf(p.text())
		n := p.count(leastPeerFacet)
		var facets []facet
		for range n {
			f, err := p.facet(of)
			if err != nil {
				return err
			}
			if f.values == nil {
				continue
			}
			if facets, err = makeRoom(p.Reading, facets, 1, facetBytes); err != nil {
				return err
			}
			facets = append(facets, f)
		}
		if of == nil {
			continue
		}
		if err := p.make(indexBytes); err != nil {
			return err
		}
		if a.facets == nil {
			a.facets = map[string][]facet{}
		}
		if facets == nil {
			facets = []facet{}
		}
		a.facets[of.UID] = facets
	}
	return nil
}

// facet reads a facet. If it was not requested, it gets no list of values, not even an empty one.
func (p *peerReader) facet(of *AskedFacets) (f facet, err error) {
	name := p.text()
	kept := of != nil && len(name) <= maxFacetName && of.has(string(name))
	if kept {
		if err := p.make(len(name) + smallBytes); err != nil {
			return f, err
		}
		f.name = string(name)
	}
	if p.byte() != 0 {
		if err := p.make(statsBytes); err != nil {
			return f, err
		}
		f.stats = aggregate.EndFigures()
		f.stats.ReadPeer(peerStates{p}, 0)
	}
	n := p.count(leastPeerFacetValue)
	if kept {
		if err := p.make(n * valueBytes); err != nil {
			return f, err
		}
		f.values = make([]facetValue, 0, n)
	}
	for range n {
		if err := p.step(); err != nil {
			return f, err
		}
		v := facetValue{shown: p.text()}
		if v.key = p.text(); len(v.key) == 0 {
			v.key = v.shown
		}
		v.count = int(min(p.number(), maxRank))
		if kept {
			f.values = append(f.values, v)
		}
	}
	if p.bad {
		return f, cmp.Or(p.ended, errPeer)
	}
	return f, nil
}

// broken reports whether a hit, or the part that it does not show, is not valid JSON.
func (h *remoteHit) broken(body []byte) bool {
	if !h.unseen {
		return false
	}
	h.unseen = false
	if !document.Compacted(body, h.begin, h.begin+len(h.raw)) {
		return true
	}
	n := len(h.extra)
	return n > 0 && !document.Compacted(append(slices.Clone(h.extra), make([]byte, document.Padding)...), 0, n)
}

var errHit = errors.New("one of its hits is not a JSON object")

// spoil records that the answer of an instance is invalid. Hits of it that are merged already have to be removed.
func (a *RemoteAnswer) spoil() {
	a.Err = BadAnswer(a.Remote, errHit)
	a.total, a.semantic, a.facets, a.aggregations, a.vectors, a.metadata = 0, false, nil, nil, nil, nil
	a.groups, a.met = nil, metHashes{}
}

// spoilt reports whether it is of such an answer.
func (h *federatedHit) spoilt() bool { return h.remote != nil && h.remote.Err != nil }
