package rank

import (
	"iter"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/jsontext"
	"svc/segment/rowlist"
)

// scoreLevels looks for the highest levels of the score first.
const scoreLevels accessPath = "levels of the score"

// scoreBounds computes the levels of rows whose bounds reach a level.
const scoreBounds accessPath = "bounds of the score"

// functionScore orders documents by the level of the sum of the score functions.
type functionScore struct{ scoring *Scoring }

func (*functionScore) name() string { return "score" }

func (*functionScore) traits() *traits { return &functionScoreTraits }

var functionScoreTraits = traits{row: scoreRow, says: ByField}

func (r *functionScore) access(s *search, b *bucket, i int) (p paths) {
	if b.interpretations == nil && s.setsFollow(i) {
		p[0] = access{effort(b.n) * scoreRow, openRows}
	}
	if b.n > listRows {
		p[1] = access{effort(b.n) * scanRow, r.openLevels}
	}
	return p
}

// costs computes the sums of functions by blocks of rows of one segment.
func (r *functionScore) costs(s *search, l *list, _ int, costs []uint32) outcome {
	p := scorerOf(s)
	for begin := 0; begin < len(l.entries); {
		seg, end := l.entries[begin].segment, begin
		p.rows = p.rows[:0]
		for ; end < len(l.entries) && l.entries[end].segment == seg && len(p.rows) < scoreRows; end++ {
			p.rows = append(p.rows, l.entries[end].row)
		}
		if !p.cachedCosts(s, int(seg), p.rows, costs[begin:end]) {
			for i, sum := range p.sum(int(seg), p.rows) {
				costs[begin+i] = p.cost(sum)
			}
		}
		if begin = end; s.late() {
			break
		}
	}
	return outcome{values: p.values}
}

// details writes the score, and what each function gave to it.
func (r *functionScore) details(d *detailWriter, verdicts []verdict) int {
	d.open(r.name())
	f := r.scoring.Functions
	value := verdicts[0].value.Number
	d.number("value", value)
	d.integer("level", uint64(value*float64(f.Levels-1)+0.5))
	d.integer("levels", uint64(f.Levels))
	d.name("functions")
	d.dst = append(d.dst, '{')
	for i, x := range d.shares() {
		if i > 0 {
			d.dst = append(d.dst, ',')
		}
		d.dst = append(jsontext.AppendQuoted(d.dst, f.Functions[i].Name), ':')
		d.dst = jsontext.AppendFloat(d.dst, float64(x*f.Functions[i].Weight))
	}
	d.dst = append(d.dst, '}')
	return 1
}

func (*functionScore) value(verdicts []verdict) (ScoreValue, int) {
	return ScoreValue{Kind: ByField, Sort: verdicts[0].value, Desc: true}, 1
}

// sumMargin is how far sums may differ by rounding alone, relative to the sum of all weights.
const sumMargin = 1e-9

// levelWalk yields the rows of a bucket by level, the highest first. It computes the sums of rows that may reach a level, by upper
// bounds for the values of a segment. If no range of values has fewer entries than a quarter of the rows, it uses cached levels, and
// the bounds of each other row. The number of levels that it looks for at once doubles, because each step may go through the whole
// bucket.
type levelWalk struct {
	s     *search
	p     *scorer
	b     *bucket
	exact []sortedRows   // by segment: rows whose levels are cached
	rows  rows           // the others
	done  rows           // of these: rows with a known level, without those in upper
	upper []*upperLevels // by segment; nil: not requested, or not available
	loose []bool         // by segment: there are no bounds, or there was no memory for them
	found []rows         // by cost
	top   int            // level to yield next
	known int            // levels from here on are known
	width int
}

func (r *functionScore) openLevels(s *search, b *bucket, _ int) split {
	var w *levelWalk
	return split{scoreLevels, func() (*bucket, verdict) {
		if w == nil {
			w = newLevelWalk(s, b)
		}
		return w.next()
	}}
}

func newLevelWalk(s *search, b *bucket) *levelWalk {
	w := &levelWalk{s: s, p: scorerOf(s), b: b, exact: make([]sortedRows, len(b.rows)), rows: slices.Clone(b.rows), done: make(rows, len(b.rows)), upper: make([]*upperLevels, len(b.rows)), loose: make([]bool, len(b.rows)), width: 1}
	w.found = make([]rows, len(w.p.values))
	for seg := range b.rows {
		if b.rows[seg] != nil {
			w.top = max(w.top, w.p.level(w.p.most(seg)+sumMargin*w.p.span()))
		}
	}
	w.known = w.top + 1
	return w
}

// next returns the rows of the highest level that has any. It looks for levels in growing batches.
func (w *levelWalk) next() (*bucket, verdict) {
	for ; w.top >= 0; w.top-- {
		if w.top < w.known {
			before := w.known
			w.known = max(0, w.known-w.width)
			w.width *= 2
			w.find(before)
			if w.s.late() {
				return w.b, verdict{} // the caller adds the rest without ranking it
			}
		}
		cost := len(w.found) - 1 - w.top
		if of := w.found[cost]; of != nil {
			w.top--
			return w.b.part(of), verdict{cost: uint64(cost), value: w.p.values[cost]}
		}
	}
	return nil, verdict{}
}

// find computes the levels of all rows that may reach a known one. Those of rows that may reach before are known already.
func (w *levelWalk) find(before int) {
	for seg, in := range w.rows {
		w.exact[seg].addTo(w.found, seg, len(w.rows), len(w.found)-before, len(w.found)-w.known)
		if in == nil {
			continue
		}
		if u := w.upper[seg]; u != nil {
			w.p.sort(w.s, seg, u.between(w.known, before), w.found)
			continue
		}
		reach := in
		if w.known > 0 {
			least, ok := w.p.least(w.known)-sumMargin*w.p.span(), false
			if reach, ok = w.p.reaching(w.s, seg, in, least, w.loose[seg]); !ok {
				left := andNot(in, w.done[seg])
				if left == nil || left.IsEmpty() {
					continue
				}
				if left = w.sortCached(seg, left); left == nil {
					continue
				}
				if u := w.p.upperLevels(w.s, seg, left); u != nil {
					w.upper[seg] = u
					w.s.r.Plan.note("score", scoreBounds)
					w.p.sort(w.s, seg, u.between(w.known, math.MaxInt), w.found)
					continue
				}
				w.loose[seg], in = true, left
				reach, _ = w.p.reaching(w.s, seg, in, least, true)
			}
		}
		if reach = andNot(reach, w.done[seg]); reach != nil && !reach.IsEmpty() {
			w.p.sort(w.s, seg, inBatches(reach), w.found)
			w.done[seg] = or(w.done[seg], reach)
		}
	}
}

// sortCached sorts rows of a segment that are not done yet by their cached levels, and adds those of known levels to w.found. It
// returns the rows whose levels are not cached; nil: there are none.
func (w *levelWalk) sortCached(seg int, left *roaring.Bitmap) *roaring.Bitmap {
	if !w.p.runs.lasts {
		return left
	}
	sorted, rest := w.p.sortCached(w.s, seg, w.s.rowsIn(left))
	if sorted.rows == nil {
		return left
	}
	w.s.r.Plan.note("score", scoreCached)
	w.exact[seg], w.rows[seg] = sorted, nil
	if len(rest) > 0 {
		w.rows[seg] = rowlist.FromRows(rest)
	}
	sorted.addTo(w.found, seg, len(w.rows), 0, len(w.found)-w.known)
	return w.rows[seg]
}

// scoreRows is the number of rows whose sums are computed at once: it bounds their memory, and the clock is checked after them.
const scoreRows = 1 << 10

// inBatches yields the rows of a set, scoreRows at once.
func inBatches(in *roaring.Bitmap) iter.Seq[[]uint32] {
	return func(yield func([]uint32) bool) {
		var rows [scoreRows]uint32
		for it := in.ManyIterator(); ; {
			n := it.NextMany(rows[:])
			if n == 0 || !yield(rows[:n]) {
				return
			}
		}
	}
}

// sort adds rows of a segment to the lists of their levels. There are scoreRows rows at once.
func (p *scorer) sort(s *search, seg int, batches iter.Seq[[]uint32], found []rows) {
	lists := make([][]uint32, len(found)) // by cost: each set is built at once
	for rows := range batches {
		if s.late() {
			break
		}
		for i, sum := range p.sum(seg, rows) {
			cost := p.cost(sum)
			lists[cost] = append(lists[cost], rows[i])
		}
	}
	for cost, list := range lists {
		if len(list) == 0 {
			continue
		}
		if found[cost] == nil {
			found[cost] = make(rows, len(s.ix.Segments))
		}
		found[cost][seg] = or(found[cost][seg], rowlist.FromRows(list))
	}
}
