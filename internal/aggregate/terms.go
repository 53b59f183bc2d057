package aggregate

import (
	"svc/internal/jsontext"
	"svc/internal/numeric"
	"svc/segment"
)

// terms has a bucket for each value.
type terms struct{}

func newTerms(a *Spec) node { return newBuckets(a, terms{}) }

func (terms) number(_ *work, x numeric.Value) (key, bool, error) {
	return key{isNumber: true, number: x}, true, nil
}

func (terms) text(c *segment.Column, ord int) (key, bool) {
	return key{text: c.String(ord), shown: c.Original(ord)}, true
}

func (terms) between(_, _ key, _ func(key) bool) {}

func (terms) appendKey(dst []byte, k *key) []byte {
	dst = append(dst, `"key":`...)
	if k.isNumber {
		dst = k.number.AppendText(dst)
	} else {
		dst = jsontext.AppendQuoted(dst, k.shown)
	}
	return append(dst, ',')
}
