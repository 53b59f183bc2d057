package rank

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// appendDetails appends the object that explains a score.
func (s *search) appendDetails(dst []byte, parts []part) []byte {
	d := detailWriter{dst: append(dst, '{')}
	for i := 0; i < len(parts); i++ {
		p := &parts[i]
		more := parts[i+1:]
		r := &s.rules[min(p.rule, len(s.rules)-1)]
		switch p.kind {
		case skipped:
			d.open("skipped")
		case ruleWords:
			d.open("words")
			d.integer("matchingWords", p.rank)
			d.integer("maxMatchingWords", p.ranks)
			d.score(p)
		case ruleTypo:
			d.open("typo")
			d.integer("typoCount", p.ranks-p.rank)
			d.integer("maxTypoCount", p.ranks-1)
			d.score(p)
		case ruleProximity:
			d.open("proximity")
			d.score(p)
		case ruleAttributeRank:
			if !r.merged {
				d.open("attributeRank")
				d.score(p)
				break
			}
			d.open("attribute")
			d.number("attributeRankingOrderScore", float64(p.rank)/float64(p.ranks))
			if len(more) > 0 && more[0].kind == ruleWordPosition {
				d.number("queryWordDistanceScore", float64(more[0].rank)/float64(more[0].ranks))
				d.number("score", score(parts[i:i+2]))
				i++
			} else {
				d.score(p)
			}
		case ruleWordPosition:
			d.open("wordPosition")
			d.score(p)
		case ruleExactAttribute:
			d.open("exactness")
			d.string("matchType", [...]string{"exactMatch", "matchesStart", "noExactMatch"}[p.ranks-p.rank])
			if len(more) > 0 && more[0].kind == ruleExactWords {
				if p.rank == 1 {
					d.integer("matchingWords", more[0].rank-1)
					d.integer("maxMatchingWords", more[0].ranks-1)
					d.number("score", score(parts[i:i+2]))
				}
				i++
				if p.rank == 1 {
					break
				}
			}
			d.score(p)
		case ruleExactWords:
			d.open("exactness")
			d.integer("matchingWords", p.rank-1)
			d.integer("maxMatchingWords", p.ranks-1)
			d.score(p)
		case ruleVector:
			d.open("vectorSort")
			if p.value.Class == OfNothing {
				d.name("similarity")
				d.dst = append(d.dst, "null"...)
			} else {
				d.number("similarity", p.value.Number)
			}
		case ruleSort:
			d.sort(r, p)
		case ruleGeo:
			d.geo(r, p)
		}
		d.dst = append(d.dst, '}')
	}
	return append(d.dst, '}')
}

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

func (d *detailWriter) sort(r *rule, p *part) {
	if r.hidden {
		d.open("<hidden-rule-" + strconv.FormatUint(d.order, 10) + ">")
		d.string("value", "<hidden>")
		return
	}
	d.open(r.key)
	switch p.value.Class {
	case OfNumber:
		d.number("value", p.value.Number)
	case OfText:
		d.string("value", string(p.value.Text))
	default:
		d.name("value")
		d.dst = append(d.dst, "null"...)
	}
}

func (d *detailWriter) geo(r *rule, p *part) {
	d.open(r.key)
	d.name("value")
	if p.value.Class == OfNothing {
		d.dst = append(d.dst, `null,"distance":null`...)
		return
	}
	d.dst = append(d.dst, `{"lat":`...)
	d.dst = appendFloat(d.dst, p.value.Lat)
	d.dst = append(d.dst, `,"lng":`...)
	d.dst = appendFloat(d.dst, p.value.Lng)
	d.dst = append(d.dst, '}')
	d.number("distance", p.value.Number)
}

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
