package aggregate

import (
	"svc/internal/jsontext"
	"svc/internal/numeric"
)

// extreme is the least value, or the largest.
type extreme struct {
	most []numeric.Value
	has  []bool
	sign int // 1: the largest; −1: the least
}

func newMin(*Figures) Accumulator { return &extreme{sign: -1} }
func newMax(*Figures) Accumulator { return &extreme{sign: 1} }

func (e *extreme) Grow(groups int) int { return grow(&e.most, groups, 16) + grow(&e.has, groups, 1) }

// Fold ignores counts: repeated values do not change an extreme.
func (e *extreme) Fold(groups []uint32, values []numeric.Value, _ []uint32) {
	if groups == nil {
		e.add(0, e.of(values))
		return
	}
	for i, g := range groups {
		e.add(g, values[i])
	}
}

// of returns the least or largest of some values.
func (e *extreme) of(values []numeric.Value) numeric.Value {
	most := values[0]
	if e.sign > 0 {
		for _, x := range values[1:] {
			if x.Float >= most.Float && (x.Float > most.Float || x.Rest > most.Rest) {
				most = x
			}
		}
		return most
	}
	for _, x := range values[1:] {
		if x.Float <= most.Float && (x.Float < most.Float || x.Rest < most.Rest) {
			most = x
		}
	}
	return most
}

func (e *extreme) add(g uint32, x numeric.Value) {
	if m := &e.most[g]; !e.has[g] {
		e.has[g], *m = true, x
	} else if e.sign > 0 {
		if x.Float > m.Float || x.Float == m.Float && x.Rest > m.Rest {
			*m = x
		}
	} else if x.Float < m.Float || x.Float == m.Float && x.Rest < m.Rest {
		*m = x
	}
}

func (e *extreme) FoldTotal(group uint32, n *Total) {
	if e.sign > 0 {
		e.add(group, n.high)
	} else {
		e.add(group, n.low)
	}
}

func (e *extreme) Merge(group uint32, other Accumulator, from int) {
	if o := other.(*extreme); o.has[from] {
		e.add(group, o.most[from])
	}
}

func (e *extreme) AppendJSON(dst []byte, group int) []byte {
	return jsontext.AppendValue(dst, e.most[group])
}

func (e *extreme) AppendPeer(dst []byte, group int) []byte { return appendNumber(dst, e.most[group]) }

func (e *extreme) ReadPeer(r Reader, group int) { e.most[group], e.has[group] = r.Exact(), true }
