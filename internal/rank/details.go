package rank

import (
	"strconv"

	"svc/internal/jsontext"
)

// appendDetails appends the object that explains a score. shares returns the shares of the score functions for the document.
func appendDetails(dst []byte, verdicts []verdict, shares func() []float64) []byte {
	d := detailWriter{dst: append(dst, '{'), shares: shares}
	for len(verdicts) > 0 {
		if verdicts[0].by.traits().hidden {
			verdicts = verdicts[1:]
			continue
		}
		n := verdicts[0].by.details(&d, verdicts)
		d.dst = append(d.dst, '}')
		verdicts = verdicts[n:]
	}
	return append(d.dst, '}')
}

// detailWriter writes the objects of rules, in order.
type detailWriter struct {
	dst    []byte
	order  uint64
	shares func() []float64
}

func (d *detailWriter) open(key string) {
	if d.order > 0 {
		d.dst = append(d.dst, ',')
	}
	d.dst = jsontext.AppendQuoted(d.dst, key)
	d.dst = append(d.dst, ":{"...)
	d.dst = append(d.dst, `"order":`...)
	d.dst = strconv.AppendUint(d.dst, d.order, 10)
	d.order++
}

func (d *detailWriter) name(key string) {
	d.dst = append(d.dst, `,"`...)
	d.dst = append(d.dst, key...)
	d.dst = append(d.dst, `":`...)
}

func (d *detailWriter) null(key string) {
	d.name(key)
	d.dst = append(d.dst, "null"...)
}

func (d *detailWriter) integer(key string, n uint64) {
	d.name(key)
	d.dst = strconv.AppendUint(d.dst, n, 10)
}

func (d *detailWriter) number(key string, x float64) {
	d.name(key)
	d.dst = jsontext.AppendFloat(d.dst, x)
}

func (d *detailWriter) string(key, s string) {
	d.name(key)
	d.dst = jsontext.AppendQuoted(d.dst, s)
}

func (d *detailWriter) score(p *verdict) { d.number("score", float64(p.rank)/float64(p.ranks)) }
