package search

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"

	"github.com/cespare/xxhash/v2"

	"svc/internal/rank"
)

// The encoding of groups in PeerType, after the aggregations. First their number. Then for each group: key, spelling of a text, count
// of documents, place that a rule gives to it + 1, number of hits that lead it because rules pin them, and the places of these, 1 and
// its best hit or 0, and the number of its hits, which are the next ones of the answer. For each of these: the number of values that
// it is sorted by, and the values. Then 1 and a lower bound of the number of groups, or 0. Finally the number of hashes of the keys
// of all groups, and the hashes.
const (
	leastPeerGroup = 7
	leastPeerKey   = 1
	hashBytes      = 8
)

var (
	errGroups   = errors.New("it has more groups than requested")
	errNoGroups = errors.New("it has no groups, which need svc of the same version")
)

// appendPeerKey appends the key of a group.
func appendPeerKey(b []byte, k *rank.GroupKey) []byte {
	b = append(b, byte(k.Kind))
	switch k.Kind {
	case rank.NumberKey:
		b = appendNumber(b, k.Number)
	case rank.TextKey:
		b = appendText(b, k.Text)
	}
	return b
}

func hashKey(k *rank.GroupKey) uint64 {
	var buf [64]byte
	return xxhash.Sum64(appendPeerKey(buf[:0], k))
}

// key reads the key of a group.
func (p *peerReader) key() (k rank.GroupKey) {
	switch k.Kind = rank.KeyKind(p.byte()); k.Kind {
	case rank.NoKey:
	case rank.NumberKey:
		k.Number = p.exact()
	case rank.TextKey:
		text := p.text()
		if p.stop(p.make(len(text) + smallBytes)) {
			return k
		}
		k.Text = string(text)
	default:
		p.left, p.bad = nil, true
	}
	return k
}

// GroupKeysText encodes the keys of groups as a text for ParseGroupKeys.
func GroupKeysText(keys []rank.GroupKey) string {
	var b []byte
	for i := range keys {
		b = appendPeerKey(b, &keys[i])
	}
	return base64.StdEncoding.EncodeToString(b)
}

// ParseGroupKeys parses the keys of groups in a request of another instance. The result is not nil.
func ParseGroupKeys(text string) ([]rank.GroupKey, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	p := peerReader{left: b, Reading: new(Reading)}
	keys := []rank.GroupKey{}
	for len(p.left) >= leastPeerKey {
		keys = append(keys, p.key())
	}
	if p.bad {
		return nil, errPeer
	}
	return keys, nil
}

// appendPeerGroups appends the groups and the keys of all.
func (r *FederatedResponse) appendPeerGroups(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.groups)))
	for i := range r.groups {
		one := &r.groups[i]
		b = appendText(appendPeerKey(b, &one.key), one.shown)
		b = binary.AppendUvarint(b, uint64(one.count))
		b = binary.AppendUvarint(b, uint64(one.place+1))
		b = binary.AppendUvarint(b, uint64(len(one.pins)))
		for _, place := range one.pins {
			b = binary.AppendUvarint(b, uint64(place))
		}
		if one.best == nil {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(append(b, 1), uint64(one.best.position))
			b = appendFloat64(b, product(one.best.score, one.best.weight))
			b = appendPeerValues(b, one.best.values, one.best.weight)
			b = binary.AppendVarint(b, int64(one.best.spelling))
		}
		b = binary.AppendUvarint(b, uint64(len(one.hits)))
		for n := range one.hits {
			b = appendPeerValues(b, one.order[n], 1)
		}
	}
	b = binary.AppendUvarint(b, uint64(r.met.many))
	b = binary.AppendUvarint(b, uint64(len(r.met.hashes)))
	for _, hash := range r.met.hashes {
		b = binary.LittleEndian.AppendUint64(b, hash)
	}
	return b
}

func appendPeerValues(b []byte, values []rank.ScoreValue, weight float64) []byte {
	b = binary.AppendUvarint(b, uint64(len(values)))
	for i := range values {
		b = appendPeerValue(b, &values[i], weight)
	}
	return b
}

// values reads what appendPeerValues appended.
func (p *peerReader) values() []rank.ScoreValue {
	n := p.count(leastPeerValue)
	if n == 0 || p.stop(p.make(n*scoreBytes)) {
		return nil
	}
	values := make([]rank.ScoreValue, 0, n)
	for range n {
		if p.stop(p.step()) {
			return nil
		}
		values = append(values, p.value())
	}
	return values
}

// readGroups reads the groups whose hits were read before.
func (a *RemoteAnswer) readGroups(p *peerReader, asked *Asked) error {
	n, from := p.count(leastPeerGroup), 0
	if n > asked.Groups {
		return errGroups
	}
	if err := p.make(n * groupBytes); err != nil {
		return err
	}
	a.groups = make([]federatedGroup, 0, n)
	for range n {
		one := federatedGroup{key: p.key(), shown: p.text(), count: p.int(math.MaxInt)}
		one.place = p.int(math.MaxInt32) - 1
		pins := p.int(len(a.hits) - from)
		if err := p.make(pins * smallBytes); err != nil {
			return err
		}
		for range pins {
			one.pins = append(one.pins, p.int(math.MaxInt32))
		}
		if p.byte() != 0 {
			if err := p.make(groupBytes); err != nil {
				return err
			}
			best := head{federatedHit: federatedHit{remote: a}, weight: 1, position: p.int(maxRank), score: p.float(), values: p.values()}
			best.spelling = p.spelling()
			one.best = &best
		}
		hits := p.int(len(a.hits) - from)
		if hits > asked.GroupHits || len(one.pins) > hits {
			return errGroups
		}
		if err := p.make(hits * (hitBytes + groupBytes)); err != nil {
			return err
		}
		for i := range hits {
			one.hits = append(one.hits, federatedHit{remote: a, hit: from + i})
			one.order = append(one.order, p.values())
		}
		from += hits
		if p.bad {
			break
		}
		a.groups = append(a.groups, one)
	}
	a.met.many = p.int(math.MaxInt)
	hashes := p.count(hashBytes)
	if err := p.make(hashes * hashBytes); err != nil {
		return err
	}
	for range hashes {
		if b := p.bytes(hashBytes); b != nil {
			a.met.hashes = append(a.met.hashes, binary.LittleEndian.Uint64(b))
		}
	}
	if p.bad || from != len(a.hits) || len(a.pins) > 0 {
		p.left, p.bad = nil, true
	}
	return p.ended
}
