package filter

import (
	"strconv"
	"strings"
)

// String prints the filter in its own language.
func (e *Expr) String() string {
	if e == nil {
		return ""
	}
	return string(print(nil, e.root, ""))
}

// print appends a node. prefix is the path before the braces around the node, which is not printed.
func print(b []byte, n node, prefix string) []byte {
	switch n := n.(type) {
	case *junction:
		for i, k := range n.kids {
			if i > 0 && n.or {
				b = append(b, " OR "...)
			} else if i > 0 {
				b = append(b, " AND "...)
			}
			b = printInside(b, k, prefix)
		}
	case *not:
		b = printInside(append(b, "NOT "...), n.kid, prefix)
	case *condition:
		b = n.print(b, prefix)
	case *radius:
		b = append(b, "_geoRadius("...)
		b = printNumbers(b, n.center.lat, n.center.lng, n.meters)
		if n.resolution != 0 {
			b = printNumbers(append(b, ", "...), n.resolution)
		}
		b = append(b, ')')
	case *box:
		b = append(b, "_geoBoundingBox(["...)
		b = append(printNumbers(b, n.topRight.lat, n.topRight.lng), "], ["...)
		b = append(printNumbers(b, n.bottomLeft.lat, n.bottomLeft.lng), "])"...)
	case *polygon:
		b = append(b, "_geoPolygon("...)
		for i, p := range n.points {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(printNumbers(append(b, '['), p.lat, p.lng), ']')
		}
		b = append(b, ')')
	case *vectors:
		b = append(b, "_vectors"...)
		if n.embedder != "" {
			b = printQuoted(append(b, '.'), n.embedder)
		}
		if n.kind != anyVector {
			b = append(append(b, '.'), vectorKinds[n.kind]...)
		}
		if n.kind == fragment {
			b = printQuoted(append(b, '.'), n.fragment)
		}
		b = append(b, " EXISTS"...)
	case *foreign:
		b = append(b, "_foreign("...)
		b = append(printValue(b, strings.TrimPrefix(n.field, prefix)), ", "...)
		b = append(print(b, n.kid, ""), ')')
	case *elements:
		b = append(printValue(b, strings.TrimPrefix(n.path, prefix)), ".{"...)
		b = append(print(b, n.kid, n.path+"."), '}')
	}
	return b
}

// printInside prints a node, with parentheses unless it is a condition.
func printInside(b []byte, n node, prefix string) []byte {
	if _, ok := n.(*junction); ok {
		return append(print(append(b, '('), n, prefix), ')')
	}
	return print(b, n, prefix)
}

// print writes a condition in the language, without the prefix of attributes inside of braces.
func (c *condition) print(b []byte, prefix string) []byte {
	b = append(printValue(b, strings.TrimPrefix(c.attr, prefix)), ' ')
	switch c.op {
	case between:
		b = append(printValue(b, c.values[0]), " TO "...)
		return printValue(b, c.values[1])
	case in:
		b = append(b, "IN ["...)
		for i, v := range c.values {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = printValue(b, v)
		}
		return append(b, ']')
	case exists, isNull, isEmpty:
		return append(b, c.op.String()...)
	}
	b = append(append(b, c.op.String()...), ' ')
	return printValue(b, c.values[0])
}

func printValue(b []byte, s string) []byte {
	if s == "" || isReserved(s) || strings.ContainsFunc(s, func(r rune) bool { return !isWordRune(r) }) {
		return printQuoted(b, s)
	}
	return append(b, s...)
}

func printQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

func printNumbers(b []byte, numbers ...float64) []byte {
	for i, x := range numbers {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendFloat(b, x, 'f', -1, 64)
	}
	return b
}
