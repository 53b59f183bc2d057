package aggregate

import (
	"svc/internal/numeric"
)

// Accumulator folds numbers into a state for each group.
type Accumulator interface {
	// Grow makes room for the given number of groups in total. New ones are empty. bytes is by how much the state has grown.
	Grow(groups int) (bytes int)
	// Fold folds values[i], which times[i] documents have, into groups[i]. nil groups mean group 0 for all, nil times mean one
	// document each.
	Fold(groups []uint32, values []numeric.Value, times []uint32)
	// FoldTotal folds whole numbers that were added up into a group.
	FoldTotal(group uint32, n *Total)
	// Merge folds group from of another accumulator of the same row into a group.
	Merge(group uint32, other Accumulator, from int)
	// AppendJSON appends the figure of a group that has values.
	AppendJSON(dst []byte, group int) []byte
	// AppendPeer appends the state of a group, and ReadPeer reads it.
	AppendPeer(dst []byte, group int) []byte
	ReadPeer(r Reader, group int)
}

// accumulator is a row of the table.
type accumulator struct {
	name  string // of its member in an answer
	empty string // the figure of a group without values
	ends  bool   // the least and the largest value decide it: facets show it
	make  func(of *Figures) Accumulator
}

// accumulators are the figures of stats, in the order of the answer. A new one is a file and a row. An accumulator may read the
// states of those above it.
var accumulators = []accumulator{
	{"count", "0", false, newCount},
	{"min", "null", true, newMin},
	{"max", "null", true, newMax},
	{"sum", "0", false, newSum},
	{"avg", "null", false, newMean},
	{"stdDev", "null", false, newDeviation},
}

// Figures are accumulators of the same values.
type Figures struct {
	rows   []accumulator
	states []Accumulator
	groups int
	filled []bool           // by group: it has values
	limits [2]numeric.Value // the least and the largest of FoldAscending
}

// NewFigures returns those of stats.
func NewFigures() *Figures { return figuresOf(func(accumulator) bool { return true }) }

// EndFigures returns the figures of one group that depend only on its least and its largest value.
func EndFigures() *Figures {
	f := figuresOf(func(a accumulator) bool { return a.ends })
	f.Grow(1)
	return f
}

// figuresOf makes the figures of some rows of the table. A row may use the states of those before it.
func figuresOf(wanted func(accumulator) bool) *Figures {
	f := &Figures{rows: make([]accumulator, 0, len(accumulators)), states: make([]Accumulator, 0, len(accumulators))}
	for _, a := range accumulators {
		if wanted(a) {
			f.rows, f.states = append(f.rows, a), append(f.states, a.make(f))
		}
	}
	return f
}

// state returns an accumulator by its name.
func (f *Figures) state(name string) Accumulator {
	for i, a := range f.rows[:len(f.states)] {
		if a.name == name {
			return f.states[i]
		}
	}
	return nil
}

// Grow makes room for the given number of groups, and returns by how many bytes the states have grown.
func (f *Figures) Grow(groups int) (bytes int) {
	if groups <= f.groups {
		return 0
	}
	f.groups = groups
	bytes = grow(&f.filled, groups, 1)
	for _, s := range f.states {
		bytes += s.Grow(groups)
	}
	return bytes
}

// grow extends a column to length n, and returns by how many bytes it has grown. bytes is the size of an entry.
func grow[T any](column *[]T, n, bytes int) int {
	had := cap(*column)
	if n > had {
		*column = append(make([]T, 0, max(n, 2*had)), *column...)
	}
	*column = (*column)[:n]
	return bytes * (cap(*column) - had)
}

// Fold folds values into groups, for which there must be room. nil groups mean group 0 for all, nil times mean one document each.
func (f *Figures) Fold(groups []uint32, values []numeric.Value, times []uint32) {
	if len(values) == 0 {
		return
	}
	if groups == nil {
		f.filled[0] = true
	}
	for _, g := range groups {
		f.filled[g] = true
	}
	for _, s := range f.states {
		s.Fold(groups, values, times)
	}
}

// FoldAscending folds values that ascend into group 0.
func (f *Figures) FoldAscending(values []numeric.Value, times []uint32) {
	f.filled[0] = true
	f.limits = [...]numeric.Value{values[0], values[len(values)-1]}
	for i, s := range f.states {
		if f.rows[i].ends {
			s.Fold(nil, f.limits[:], nil)
		} else {
			s.Fold(nil, values, times)
		}
	}
}

// foldTotal folds whole numbers that were added up into a group, for which there is room.
func (f *Figures) foldTotal(group uint32, n *Total) {
	f.filled[group] = true
	for _, s := range f.states {
		s.FoldTotal(group, n)
	}
}

// Merge folds a group of other figures into a group, for which there is room.
func (f *Figures) Merge(group uint32, other *Figures, from int) {
	if !other.Filled(from) {
		return
	}
	for i, s := range f.states {
		s.Merge(group, other.states[i], from)
	}
	f.filled[group] = true
}

// Filled reports whether a group has values.
func (f *Figures) Filled(group int) bool { return group < f.groups && f.filled[group] }

// AppendJSON appends an object with the figures of a group.
func (f *Figures) AppendJSON(dst []byte, group int) []byte {
	dst = append(dst, '{')
	for i, a := range f.rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), a.name...), `":`...)
		if f.Filled(group) {
			dst = f.states[i].AppendJSON(dst, group)
		} else {
			dst = append(dst, a.empty...)
		}
	}
	return append(dst, '}')
}

// AppendPeer appends the states of a group that has values.
func (f *Figures) AppendPeer(dst []byte, group int) []byte {
	for _, s := range f.states {
		dst = s.AppendPeer(dst, group)
	}
	return dst
}

// ReadPeer reads the output of AppendPeer into a group, which must have room.
func (f *Figures) ReadPeer(r Reader, group int) {
	f.filled[group] = true
	for _, s := range f.states {
		s.ReadPeer(r, group)
	}
}
