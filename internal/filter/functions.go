package filter

import (
	"math"
	"slices"
	"strings"
)

// The functions of the language: those of places, _foreign and _vectors.

// latLng reads a latitude, a comma and a longitude. Whether there is such a place on the globe is a question for Bind.
func (p *parser) latLng() (pt point, err error) {
	pt.at = p.tok.at
	if pt.lat, err = p.number(); err != nil {
		return pt, err
	}
	if err = p.symbol(","); err != nil {
		return pt, err
	}
	pt.lng, err = p.number()
	return pt, err
}

// pair reads [latitude, longitude].
func (p *parser) pair() (pt point, err error) {
	if err = p.symbol("["); err != nil {
		return pt, err
	}
	if pt, err = p.latLng(); err != nil {
		return pt, err
	}
	return pt, p.symbol("]")
}

// geoRadius reads _geoRadius(lat, lng, metres). A fourth argument is accepted and checked.
func (p *parser) geoRadius() (node, error) {
	r := &radius{at: p.tok.at}
	if err := p.open(); err != nil {
		return nil, err
	}
	var err error
	if r.center, err = p.latLng(); err != nil {
		return nil, err
	}
	if err = p.symbol(","); err != nil {
		return nil, err
	}
	at := p.tok.at
	if r.meters, err = p.number(); err != nil {
		return nil, err
	}
	if r.meters < 0 {
		return nil, fail(at, "The distance of _geoRadius, in metres, cannot be negative.")
	}
	if p.isSymbol(",") {
		p.advance()
		at = p.tok.at
		if r.resolution, err = p.number(); err != nil {
			return nil, err
		}
		if r.resolution < 3 || r.resolution > 1000 || r.resolution != math.Trunc(r.resolution) {
			return nil, fail(at, "The fourth argument of _geoRadius is the number of corners of the polygon that replaces the circle: a whole number from 3 to 1000.")
		}
	}
	return r, p.symbol(")")
}

func (p *parser) geoBoundingBox() (node, error) {
	b := &box{at: p.tok.at}
	if err := p.open(); err != nil {
		return nil, err
	}
	topRight, err := p.pair()
	if err != nil {
		return nil, err
	}
	if err := p.symbol(","); err != nil {
		return nil, err
	}
	bottomLeft, err := p.pair()
	if err != nil {
		return nil, err
	}
	b.topRight, b.bottomLeft = topRight, bottomLeft
	return b, p.symbol(")")
}

// geoPolygon reads _geoPolygon with at least three points.
func (p *parser) geoPolygon() (node, error) {
	g := &polygon{at: p.tok.at}
	if p.prefix != "" {
		return nil, fail(g.at, "`_geoPolygon` compares shapes, which belong to documents: use _geoRadius or _geoBoundingBox in braces.")
	}
	if err := p.open(); err != nil {
		return nil, err
	}
	for {
		pt, err := p.pair()
		if err != nil {
			return nil, err
		}
		g.points = append(g.points, pt)
		if !p.isSymbol(",") {
			break
		}
		p.advance()
		if p.isSymbol(")") {
			break
		}
	}
	if len(g.points) < 3 {
		return nil, fail(g.at, "_geoPolygon needs at least 3 points, but has %d.", len(g.points))
	}
	return g, p.symbol(")")
}

// foreignKey parses _foreign. Its inner filter applies to the other index, so the prefix of surrounding braces does not apply.
func (p *parser) foreignKey() (node, error) {
	f := &foreign{at: p.tok.at}
	if p.foreign {
		return nil, fail(f.at, "_foreign cannot be nested.")
	}
	if err := p.open(); err != nil {
		return nil, err
	}
	if err := p.deeper(); err != nil {
		return nil, err
	}
	var err error
	if f.field, err = p.name(); err != nil {
		return nil, err
	}
	f.field = p.prefix + f.field
	p.advance()
	if err = p.symbol(","); err != nil {
		return nil, err
	}
	prefix := p.prefix
	p.foreign, p.prefix = true, ""
	defer func() { p.foreign, p.prefix = false, prefix }()
	if f.kid, err = p.or(); err != nil {
		return nil, err
	}
	return f, p.symbol(")")
}

// vectorsExist reads _vectors and what follows it. The name of an embedder or fragment that is not a word is quoted, directly after
// the dot.
func (p *parser) vectorsExist() (node, error) {
	v := &vectors{at: p.tok.at}
	path := strings.Split(p.tok.text, ".")[1:]
	for p.tok.kind == word && len(path) > 0 && path[len(path)-1] == "" && (p.touching('"') || p.touching('\'')) {
		p.advance()
		if p.tok.kind != quoted {
			return nil, p.unexpected("a name")
		}
		path[len(path)-1] = p.tok.text
		if p.touching('.') {
			p.advance()
			path = append(path, strings.Split(p.tok.text, ".")[1:]...)
		}
	}
	p.advance()
	malformed := fail(v.at, "After `_vectors` may follow an embedder, and then `fragments` and a fragment, `userProvided`, `documentTemplate` or `regenerate`, with dots between.")
	if slices.Contains(path, "") || len(path) > 3 {
		return nil, malformed
	}
	if len(path) > 0 {
		v.embedder = path[0]
	}
	if len(path) > 1 {
		k := slices.Index(vectorKinds[:], path[1])
		if k < int(userProvided) || (vectorKind(k) == fragment) != (len(path) == 3) {
			return nil, malformed
		}
		v.kind = vectorKind(k)
		if v.kind == fragment {
			v.fragment = path[2]
		}
	}
	negated := p.isWord("NOT")
	if negated {
		p.advance()
	}
	if !p.isWord("EXISTS") {
		return nil, p.unexpected("EXISTS or NOT EXISTS, the only operators of `_vectors`,")
	}
	p.advance()
	if negated {
		return negate(v), nil
	}
	return v, nil
}
