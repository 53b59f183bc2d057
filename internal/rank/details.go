package rank

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// appendDetails appends the object that explains a score.
func appendDetails(dst []byte, parts []part) []byte {
	d := detailWriter{dst: append(dst, '{')}
	for len(parts) > 0 {
		n := parts[0].by.details(&d, parts)
		d.dst = append(d.dst, '}')
		parts = parts[n:]
	}
	return append(d.dst, '}')
}

// detailWriter writes the objects of rules, in order.
type detailWriter struct {
	dst   []byte
	order uint64
}

func (d *detailWriter) open(key string) {
	if d.order > 0 {
		d.dst = append(d.dst, ',')
	}
	d.dst = appendJSONString(d.dst, key)
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
	d.dst = appendFloat(d.dst, x)
}

func (d *detailWriter) string(key, s string) {
	d.name(key)
	d.dst = appendJSONString(d.dst, s)
}

func (d *detailWriter) score(p *part) { d.number("score", float64(p.rank)/float64(p.ranks)) }

// appendFloat appends a number with a decimal point, or an exponent where it is very small or large.
func appendFloat(dst []byte, x float64) []byte {
	a := math.Abs(x)
	if a != 0 && (a < 1e-5 || a >= 1e16) {
		begin := len(dst)
		dst = strconv.AppendFloat(dst, x, 'e', -1, 64)
		// Go writes e-07, e+20; the shortest form is e-7, e20.
		for i := begin; i < len(dst); i++ {
			if dst[i] != 'e' {
				continue
			}
			tail := dst[i+1:]
			sign := tail[0]
			digits := tail[1:]
			for len(digits) > 1 && digits[0] == '0' {
				digits = digits[1:]
			}
			out := dst[:i+1]
			if sign == '-' {
				out = append(out, '-')
			}
			return append(out, digits...)
		}
		return dst
	}
	begin := len(dst)
	dst = strconv.AppendFloat(dst, x, 'f', -1, 64)
	for _, c := range dst[begin:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// appendJSONString appends a JSON string.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', byte(c))
		case c < 0x20:
			const hex = "0123456789abcdef"
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&15])
		default:
			dst = utf8.AppendRune(dst, c)
		}
	}
	return append(dst, '"')
}
