package aggregate

import (
	"math"

	"svc/internal/jsontext"
	"svc/internal/numeric"
)

var defaultPercents = []float64{1, 5, 25, 50, 75, 95, 99}

// percentiles are percentiles of the numbers of an attribute.
type percentiles struct {
	percents []float64
	groups   []*quantiles // nil: empty
	numbers  numbersOf
}

func newPercentiles(a *Spec) node { return &percentiles{percents: a.percents} }

func (p *percentiles) open(_ *work, c columnOf) error { p.numbers.columnOf = c; return nil }

// roomShare: the list of the first segment, which has most rows, gets room for 1/roomShare more values, so that values of newer
// segments do not reallocate it.
const roomShare = 16

// quantilesBytes is what an empty group takes.
const quantilesBytes = 72

// group returns a group, and up to how many different values it lists.
func (p *percentiles) group(w *work, g, most int) (*quantiles, int, error) {
	if err := w.hold(grow(&p.groups, max(len(p.groups), most, g+1), 8)); err != nil {
		return nil, 0, err
	}
	if p.groups[g] == nil {
		if err := w.hold(quantilesBytes); err != nil {
			return nil, 0, err
		}
		p.groups[g] = new(quantiles)
	}
	if len(p.groups) > 1 {
		return p.groups[g], exactFew, nil
	}
	return p.groups[g], exactValues, nil
}

// fold adds values to the lists or digests of their groups. Consecutive values are often in the same group, so the group is looked up
// only when it changes.
func (p *percentiles) fold(w *work, groups []uint32, values []numeric.Value, _ []uint32, most int) error {
	var q *quantiles
	var limit int
	for i := range values {
		g, last := uint32(0), uint32(0)
		if groups != nil {
			g, last = groups[i], groups[max(i-1, 0)]
		}
		if i == 0 || g != last {
			var err error
			if q, limit, err = p.group(w, int(g), most); err != nil {
				return err
			}
		}
		v := weighted{values[i].Float, 1}
		if q.digest == nil && len(q.list) < cap(q.list) {
			q.list = append(q.list, v)
		} else if err := q.add(w, limit, v); err != nil {
			return err
		}
	}
	return nil
}

func (p *percentiles) walk(w *work, of pairs) error { return p.numbers.walk(w, of, p.fold) }

// tally adds the numbers in ascending order, which are a run of the list.
func (p *percentiles) tally(w *work) (bool, error) {
	q, limit, err := p.group(w, 0, 1)
	if err != nil {
		return true, err
	}
	if c := p.numbers.column; c != nil && q.digest == nil {
		n := c.Numbers()
		if c.SingleNumbers() {
			n = min(n, p.numbers.among)
		}
		n = min(n, limit)
		if q.list == nil {
			n = min(n+n/roomShare, limit)
		}
		if err := q.reserve(w, n); err != nil {
			return true, err
		}
	}
	done, err := p.numbers.tally(w, walkedSort, func(w *work, _ []uint32, values []numeric.Value, times []uint32, _ int) error {
		return q.addRun(w, limit, values, times)
	})
	q.compact() // before other runs follow
	return done, err
}

// merge adds the digests of another part. to has the group here of each group there.
func (p *percentiles) merge(w *work, from node, to []uint32) error {
	o := from.(*percentiles)
	for i, g := range to {
		if i >= len(o.groups) || o.groups[i] == nil {
			continue
		}
		q, limit, err := p.group(w, int(g), 0)
		if err != nil {
			return err
		}
		if err := q.merge(w, limit, o.groups[i]); err != nil {
			return err
		}
	}
	return nil
}

// appendJSON writes the values by percent; null for a group without numbers.
func (p *percentiles) appendJSON(r *render, group int) {
	r.dst = append(r.dst, `{"values":{`...)
	var values []float64
	if group < len(p.groups) && p.groups[group] != nil && !p.groups[group].empty() {
		values = p.groups[group].at(p.percents)
	}
	for i, percent := range p.percents {
		if i > 0 {
			r.dst = append(r.dst, ',')
		}
		r.dst = append(numeric.Of(percent).AppendText(append(r.dst, '"')), `":`...)
		if values == nil || math.IsNaN(values[i]) || math.IsInf(values[i], 0) { // a digest of extreme values
			r.dst = append(r.dst, "null"...)
		} else {
			r.dst = jsontext.AppendFloat(r.dst, values[i]+0)
		}
	}
	r.dst = append(r.dst, "}}"...)
}

func (p *percentiles) appendPeer(w *work, dst []byte, groups int) []byte {
	for g := range groups {
		w.rest(g)
		if g >= len(p.groups) || p.groups[g] == nil {
			dst = append(dst, 0)
		} else {
			dst = p.groups[g].appendPeer(append(dst, 1))
		}
	}
	return dst
}

func (p *percentiles) readPeer(w *work, r Reader, groups int) error {
	for g := range groups {
		if err := r.Step(); err != nil {
			return err
		}
		if r.Byte() == 0 {
			continue
		}
		q, _, err := p.group(w, g, groups)
		if err != nil {
			return err
		}
		if err := q.readPeer(w, r); err != nil {
			return err
		}
	}
	return nil
}
