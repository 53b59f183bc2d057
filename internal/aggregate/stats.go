package aggregate

import "svc/internal/numeric"

// stats are all accumulators of the numbers of an attribute.
type stats struct {
	figures *Figures
	numbers numbersOf
	totals  totals // of rows that were walked, not yet in figures
}

func newStats(*Spec) node { return &stats{figures: NewFigures()} }

func (s *stats) open(_ *work, c columnOf) error {
	s.totals.settle(s.figures)
	s.numbers.columnOf, s.totals.column = c, c.column
	return nil
}

func (s *stats) fold(w *work, groups []uint32, values []numeric.Value, times []uint32, most int) error {
	if err := w.hold(s.figures.Grow(most)); err != nil {
		return err
	}
	s.figures.Fold(groups, values, times)
	return nil
}

// foldAscending is fold of values that ascend.
func (s *stats) foldAscending(w *work, _ []uint32, values []numeric.Value, times []uint32, _ int) error {
	if err := w.hold(s.figures.Grow(1)); err != nil {
		return err
	}
	s.figures.FoldAscending(values, times)
	return nil
}

// walk adds up whole numbers where they are read. Others are read first, and added up or folded.
func (s *stats) walk(w *work, p pairs) error {
	c, most := s.totals.column, p.most()
	if c == nil || most > maxTotals || !c.SumsNumbers() {
		return s.numbers.walk(w, p, s.total)
	}
	if err := s.totals.room(w, s.figures, len(p.rows), most); err != nil {
		return err
	}
	s.numbers.preload(w)
	c.SumNumbers(s.totals.of, p.rows, p.groups)
	return nil
}

// total adds numbers to the totals of their groups, and folds others.
func (s *stats) total(w *work, groups []uint32, values []numeric.Value, times []uint32, most int) error {
	if most > maxTotals {
		return s.fold(w, groups, values, times, most)
	}
	t := &s.totals
	if err := t.room(w, s.figures, len(values), most); err != nil {
		return err
	}
	if groups, values = t.add(groups, s.numbers.ords, values); len(values) > 0 {
		s.figures.Fold(groups, values, nil)
	}
	return nil
}

func (s *stats) tally(w *work) (bool, error) {
	c := s.totals.column
	if c == nil || !c.SumsNumbers() {
		return s.numbers.tally(w, walkedFold, s.foldAscending)
	}
	if !s.numbers.tallies(c.Numbers(), walkedSum) {
		return false, nil
	}
	if err := s.totals.room(w, s.figures, s.numbers.among, 1); err != nil {
		return true, err
	}
	counts := s.numbers.counts(false)
	return true, counts.Each(func(ords, times []uint32) error {
		c.SumCounted(&s.totals.of[0], ords, times)
		return w.step()
	})
}

// merge adds the figures of groups that have values.
func (s *stats) merge(w *work, from node, to []uint32) error {
	s.totals.settle(s.figures)
	o := from.(*stats).settled()
	for i, g := range to {
		if o.Filled(i) {
			if err := w.hold(s.figures.Grow(int(g) + 1)); err != nil {
				return err
			}
			s.figures.Merge(g, o, i)
		}
	}
	return nil
}

// settled returns the figures of all numbers.
func (s *stats) settled() *Figures {
	s.totals.settle(s.figures)
	return s.figures
}

func (s *stats) appendJSON(r *render, group int) { r.dst = s.settled().AppendJSON(r.dst, group) }

func (s *stats) appendPeer(w *work, dst []byte, groups int) []byte {
	s.totals.settle(s.figures)
	for g := range groups {
		w.rest(g)
		if !s.figures.Filled(g) {
			dst = append(dst, 0)
			continue
		}
		dst = s.figures.AppendPeer(append(dst, 1), g)
	}
	return dst
}

func (s *stats) readPeer(w *work, r Reader, groups int) error {
	if err := w.hold(s.figures.Grow(groups)); err != nil {
		return err
	}
	for g := range groups {
		if err := r.Step(); err != nil {
			return err
		}
		if r.Byte() != 0 {
			s.figures.ReadPeer(r, g)
		}
	}
	return nil
}
