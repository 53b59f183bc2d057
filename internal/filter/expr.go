package filter

import (
	"cmp"
	"slices"

	"svc/internal/apierr"
)

// Expr is a parsed filter. Printing it and parsing the print gives an equal tree.
type Expr struct {
	root node
	code apierr.Code // of what FromJSON leaves to Check; "" where that is refused already
}

// node is a *junction, *not, *condition, *radius, *box, *polygon, *vectors, *foreign or *elements.
type node interface{}

// junction joins at least two nodes. None of them is a junction of the same kind.
type junction struct {
	or   bool
	kids []node
}

// not never holds a not.
type not struct{ kid node }

// condition tests one attribute.
type condition struct {
	attr   string
	at     position
	op     op
	values []string // one; two for between; any number for in; none for exists, null and empty
}

// radius keeps what lies within some metres of a point.
type radius struct {
	at         position
	center     point
	meters     float64
	resolution float64 // corners of the polygon that stands for the circle where shapes are tested; 0: not given
}

// box matches points in a box of latitudes and longitudes. It crosses the antimeridian if its left edge is east of its right edge.
type box struct {
	at                   position
	topRight, bottomLeft point
}

// polygon keeps the shapes that touch one.
type polygon struct {
	at     position
	points []point
}

// point is in degrees.
type point struct {
	at       position
	lat, lng float64
}

// vectors keeps documents that have vectors of a kind.
type vectors struct {
	at       position
	embedder string // "": any
	kind     vectorKind
	fragment string
}

type vectorKind uint8

const (
	anyVector vectorKind = iota
	userProvided
	documentTemplate
	regenerate
	fragment
)

var vectorKinds = [...]string{userProvided: "userProvided", documentTemplate: "documentTemplate", regenerate: "regenerate", fragment: "fragments"}

// foreign matches documents whose field names, by id, a foreign document that passes a filter.
type foreign struct {
	at    position
	field string
	kid   node
}

// elements matches documents in which one of the objects at a path passes a filter by itself. Attributes in the filter are full
// paths.
type elements struct {
	at   position
	path string
	kid  node
}

type op uint8

const (
	equal op = iota
	notEqual
	greater
	greaterOrEqual
	less
	lessOrEqual
	between
	in
	exists
	isNull
	isEmpty
	contains
	startsWith
)

var opNames = [...]string{
	equal: "=", notEqual: "!=", greater: ">", greaterOrEqual: ">=", less: "<", lessOrEqual: "<=", between: "TO",
	in: "IN", exists: "EXISTS", isNull: "IS NULL", isEmpty: "IS EMPTY", contains: "CONTAINS", startsWith: "STARTS WITH",
}

func (o op) String() string { return opNames[o] }

// shardAttr is the pseudo-attribute for the shard of a document.
const shardAttr = "_shard"

// InShard keeps the documents of a shard.
func InShard(name string) *Expr {
	return &Expr{root: &condition{attr: shardAttr, op: equal, values: []string{name}}}
}

// InShards keeps the documents of some shards.
func InShards(names []string) *Expr {
	return &Expr{root: &condition{attr: shardAttr, op: in, values: names}}
}

// And joins filters; nil ones are left out. It returns nil when all are nil.
func And(exprs ...*Expr) *Expr {
	kids := make([]node, 0, len(exprs))
	var code apierr.Code
	for _, e := range exprs {
		if e != nil {
			kids = append(kids, e.root)
			code = cmp.Or(code, e.code)
		}
	}
	if len(kids) == 0 {
		return nil
	}
	return &Expr{join(false, kids), code}
}

// join makes one node of some, lifting junctions of the same kind.
func join(or bool, kids []node) node {
	if len(kids) == 1 {
		return kids[0]
	}
	flat := make([]node, 0, len(kids))
	for _, k := range kids {
		if j, ok := k.(*junction); ok && j.or == or {
			flat = append(flat, j.kids...)
		} else {
			flat = append(flat, k)
		}
	}
	return &junction{or, flat}
}

func negate(n node) node {
	if n, ok := n.(*not); ok {
		return n.kid
	}
	return &not{n}
}

// walk calls f for every node, parents first.
func walk(n node, f func(node) error) error {
	if err := f(n); err != nil {
		return err
	}
	switch n := n.(type) {
	case *junction:
		for _, k := range n.kids {
			if err := walk(k, f); err != nil {
				return err
			}
		}
	case *not:
		return walk(n.kid, f)
	case *foreign:
		return walk(n.kid, f)
	case *elements:
		return walk(n.kid, f)
	}
	return nil
}

// asksShards reports whether a condition is on the shard of documents.
func (e *Expr) asksShards() bool {
	asks := false
	_ = walk(e.root, func(n node) error {
		c, ok := n.(*condition)
		asks = asks || ok && c.attr == shardAttr
		return nil
	})
	return asks
}

// Features are the experimental features that open parts of the language.
type Features struct{ Contains, Foreign, Vectors, Shards bool }

// Check refuses what a feature that is off would open (feature_not_enabled), and operators that `_shard` does not have. It needs no index.
func (e *Expr) Check(f Features) error {
	if e == nil {
		return nil
	}
	return walk(e.root, func(n node) error {
		switch n := n.(type) {
		case *condition:
			if n.op == contains && !f.Contains {
				return off(n.at, "CONTAINS", "containsFilter")
			}
			if n.attr == shardAttr && !f.Shards {
				return off(n.at, shardAttr, "network")
			}
			if err := n.checkShard(); err != nil {
				return apierr.New(e.code, "Filter, %v", err)
			}
		case *vectors:
			if !f.Vectors {
				return off(n.at, "_vectors", "multimodal")
			}
		case *foreign:
			if !f.Foreign {
				return off(n.at, "_foreign", "foreignKeys")
			}
		}
		return nil
	})
}

// checkShard refuses operators that `_shard` does not have.
func (c *condition) checkShard() error {
	if c.attr == shardAttr && c.op != equal && c.op != notEqual && c.op != in {
		return fail(c.at, "`_shard` supports only the operators =, !=, IN and NOT IN.")
	}
	return nil
}

func off(at position, what, feature string) error {
	return apierr.New("feature_not_enabled", "%s: filtering with `%s` needs the experimental feature `%s`: "+
		"Enable it with PATCH /experimental-features.", at, what, feature)
}

// isReserved reports whether a word has a meaning of its own, so that it is an attribute or a value only in quotes.
func isReserved(word string) bool { return slices.Contains(reserved, word) }

var reserved = []string{"AND", "OR", "NOT", "IN", "TO", "EXISTS", "IS", "NULL", "EMPTY", "CONTAINS", "STARTS", "WITH",
	"_geoRadius", "_geoBoundingBox", "_geoPolygon", "_foreign"}

// geoNames are names that stand for points and distances elsewhere in the API. They cannot be filtered on.
var geoNames = []string{"_geo", "_geoDistance", "_geoPoint"}
