package segment

import (
	"cmp"
	"fmt"
	"slices"
)

// sorted returns the points by ascending element, the first of each.
func (p *elementPoints) sorted() geoPoints {
	order := make([]int, len(p.elements))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.elements[a], p.elements[b]) })
	var g geoPoints
	for _, i := range order {
		g.add(p.elements[i], p.lat[i], p.lng[i])
	}
	return g
}

// mergeElements writes the elements of the rows that stay. The elements of a row stay together, in their order.
func (m *merger) mergeElements() error {
	total, in := 0, make([]*Elements, len(m.in))
	for i, l := range m.in {
		if in[i] = l.Elements(); in[i] != nil {
			in[i].need()
			total += in[i].n
		}
	}
	if total == 0 {
		return nil
	}
	if total > maxRows {
		return fmt.Errorf("%d elements are more than a segment holds", total)
	}
	sub, rows, nested := m.elementOrder(in)
	n := len(rows)
	if n == 0 {
		return m.check()
	}
	var parents []uint32
	if nested {
		parents = make([]uint32, n)
		for i, o := range sub.origins {
			parent := in[o.in].parentCode(int(o.row))
			if to := sub.rows[o.in]; parent>>1 > 0 && int(parent>>1) <= len(to) && to[parent>>1-1] != noRow {
				parents[i] = (to[parent>>1-1]+1)<<1 | parent&directParent
			}
		}
	}
	writeElements(m.f, rows, parents)
	sub.mergeRowsByField(tagElementScopes, m.elementSets(func(e *Elements) *presenceReader { return &e.scopes }), nil)
	sub.mergeRowsByField(tagElementPresence, m.elementSets(func(e *Elements) *presenceReader { return &e.presence }), nil)
	w := newColumnWriter(m.f, tagElementColumns, n, nil)
	fields := m.unionFields(func(l Live) []FieldID {
		if l.Elements() == nil {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(l.elementColumns.fields), func(f FieldID) bool { return m.o.KeepElement != nil && !m.o.KeepElement(f) })
	})
	for _, f := range fields {
		if err := m.check(); err != nil {
			return err
		}
		w.write(f, sub.mergeColumn(func(r *Reader) (*Column, uint32) {
			if r.Elements() == nil {
				return nil, 0
			}
			if c := r.Elements().Column(f); c != nil {
				return c, r.elementColumns.of[f].flags
			}
			return nil, 0
		}))
	}
	w.finish(tagElementColumnDir)
	sub.mergePointsOf(tagElementPoints, func(r *Reader) *Geo {
		if r.Elements() == nil {
			return nil
		}
		return r.Elements().Geo()
	})
	return m.check()
}

// noSets are the sets of an input without elements.
var noSets presenceReader

func (m *merger) elementSets(of func(*Elements) *presenceReader) func(*Reader) *presenceReader {
	return func(r *Reader) *presenceReader {
		if r.Elements() == nil {
			return &noSets
		}
		return of(r.Elements())
	}
}

// elementOrder returns a merger whose rows are the elements of the rows that stay, in the order of the output, and the row of each
// element. nested reports whether one of them may have a parent. in has the elements of the inputs.
func (m *merger) elementOrder(in []*Elements) (sub *merger, rows []uint32, nested bool) {
	total := 0
	for _, e := range in {
		if e != nil {
			total += e.n
		}
	}
	sub = &merger{ctx: m.ctx, in: m.in, f: m.f, origins: make([]origin, 0, total)}
	rows = make([]uint32, 0, total)
	next := make([]int, len(m.in)) // element by input
	for _, e := range in {
		var to []uint32
		if e != nil {
			to = make([]uint32, e.n)
			for i := range to {
				to[i] = noRow
			}
			nested = nested || e.nested
		}
		sub.rows = append(sub.rows, to)
	}
	for row, o := range m.origins {
		m.f.worked(1)
		e := in[o.in]
		if e == nil {
			continue
		}
		i := next[o.in]
		for ; i < e.n; i++ {
			if r := e.row(i); r > o.row {
				break
			} else if r == o.row {
				sub.rows[o.in][i] = uint32(len(rows))
				sub.origins, rows = append(sub.origins, origin{o.in, uint32(i)}), append(rows, uint32(row))
			}
		}
		next[o.in] = i
	}
	return sub, rows, nested
}

// verifyElements checks that elements are in order, that parents come before their children in the same row, and that data about
// elements refers to existing ones.
func (r *Reader) verifyElements() error {
	e := r.Elements()
	if e == nil {
		return nil
	}
	e.need()
	for i := range e.n {
		row, parent := e.row(i), e.parentCode(i)
		if int(row) >= r.rows || i > 0 && e.row(i-1) > row {
			return r.damaged(tagElements, "element %d is in row %d of %d", i, row, r.rows)
		}
		if parent>>1 > 0 && (int(parent>>1) > i || e.row(int(parent>>1)-1) != row) || parent == directParent {
			return r.damaged(tagElements, "element %d has the parent %d", i, parent)
		}
	}
	for _, p := range []*presenceReader{&e.scopes, &e.presence} {
		if err := r.verifyRowsByField(p, e.n); err != nil {
			return err
		}
	}
	if err := r.verifyColumnsIn(e.columns, tagElementColumnDir, tagElementColumns, e.Column); err != nil {
		return err
	}
	return r.verifyPointsOf(tagElementPoints, e.Geo(), e.n)
}

func (i *inspector) elements() {
	e := i.r.Elements()
	e.need()
	i.field(4, "%d elements", i.u32())
	i.field(4, "parents: %v, rows of %d bytes", e.nested, e.width)
	if e.width == 0 {
		i.t.List(e.n, inspectItems, func(n int) { i.field(4, "row %d", e.row(n)) })
	} else {
		i.t.List(len(e.first)/4, inspectItems, func(int) { i.field(4, "row %d", i.u32()) })
		i.at = elementHeaderBytes + len(e.first)
		i.t.List(e.n, inspectItems, func(n int) { i.field(e.width, "row %d", e.row(n)) })
	}
	if e.nested {
		i.at = elementHeaderBytes + len(e.data) - len(e.parents)
		i.t.List(e.n, inspectItems, func(int) {
			switch parent := i.u32(); {
			case parent>>1 == 0:
				i.field(4, "no parent")
			case parent&directParent != 0:
				i.field(4, "in element %d", parent>>1-1)
			default:
				i.field(4, "in an array in element %d", parent>>1-1)
			}
		})
	}
}

func (i *inspector) elementScopes()   { i.rowsByField(&i.r.Elements().scopes, fieldName) }
func (i *inspector) elementPresence() { i.rowsByField(&i.r.Elements().presence, fieldName) }
func (i *inspector) elementColumns()  { i.columnsOf(i.r.elementColumns, i.r.Elements().Column) }
