package aggregate

import (
	"svc/internal/numeric"
	"svc/segment"
)

// bands has a bucket for each band of numbers that the request names. Bands may overlap.
type bands struct{ list []band }

func newRange(a *Spec) node { return newBuckets(a, bands{a.bands}) }

func (b bands) size() int { return len(b.list) }

func (b bands) each(x numeric.Value, f func(id uint32)) {
	for i, r := range b.list {
		if (r.from == nil || x.Compare(*r.from) >= 0) && (r.to == nil || x.Compare(*r.to) < 0) {
			f(uint32(i))
		}
	}
}

func (bands) number(*work, numeric.Value) (key, bool, error) { return key{}, false, nil }
func (bands) text(*segment.Column, int) (key, bool)          { return key{}, false }
func (bands) between(_, _ key, _ func(key) bool)             {}

func (b bands) appendKey(dst []byte, k *key) []byte {
	r := b.list[int(k.number.Float)]
	if r.from != nil {
		dst = append(r.from.AppendText(append(dst, `"from":`...)), ',')
	}
	if r.to != nil {
		dst = append(r.to.AppendText(append(dst, `"to":`...)), ',')
	}
	return dst
}
