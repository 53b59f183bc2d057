package rank

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/geo"
	"svc/internal/numeric"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/segment"
	"svc/segment/rowlist"
)

// scorer computes the sums of one search.
type scorer struct {
	functions []scored
	values    []SortValue // by cost
	low, high float64     // between which sums are
	levels    float64
	text      []byte // the functions, as JSON

	rows, ords, places []uint32
	numbers            []numeric.Value
	best, sums         []float64
	uppers             []uint32
	held               int64 // bytes of upperLevels and sortedRows charged to the request
	runs               costRuns
}

// scored is a function with its values in each segment.
type scored struct {
	*settings.ScoreFunction
	origin  float64
	missing float64 // the share of a document without a value
	log     float64 // of Decay, or of Scale
	filter  Filter
	columns []*segment.Column
	geo     []*segment.Geo
	dates   []*textDates // of columns with texts that are dates
	rows    []*roaring.Bitmap
	bounds  []float64 // by segment: upper bound of the shares; −1: not known yet
}

func scorerOf(s *search) *scorer {
	if s.scores == nil {
		s.scores = newScorer(s.ix, s.r.Scoring)
	}
	return s.scores
}

// newScorer prepares the functions for an index: columns, points and dates by segment, filters on demand.
func newScorer(ix *Index, by *Scoring) *scorer {
	p := &scorer{levels: float64(by.Functions.Levels), text: by.Functions.JSON(), functions: make([]scored, len(by.Functions.Functions))}
	p.values = make([]SortValue, by.Functions.Levels)
	p.runs.lasts = by.perRow()
	for cost := range p.values {
		p.values[cost] = NumberValue(numeric.Of(float64(by.Functions.Levels-1-cost) / float64(by.Functions.Levels-1)))
	}
	n := len(ix.Segments)
	for i := range p.functions {
		f := &p.functions[i]
		f.ScoreFunction, f.origin = &by.Functions.Functions[i], by.Functions.Functions[i].Origin.Number
		p.low, p.high = p.low+min(f.Weight, 0), p.high+max(f.Weight, 0)
		f.bounds = slices.Repeat([]float64{-1}, n)
		switch f.Kind {
		case settings.FilterScore:
			f.filter, f.rows = by.Filters[i], make([]*roaring.Bitmap, n)
			continue
		case settings.DecayScore:
			f.log = math.Log(f.Decay)
		case settings.LogScore:
			f.log = math.Log1p(f.Scale)
		}
		if f.Origin.Point {
			f.geo = make([]*segment.Geo, n)
			for seg := range f.geo {
				f.geo[seg] = ix.Segments[seg].Geo()
			}
			continue
		}
		if f.Origin.Now {
			f.origin = float64(by.now(f.ScoreFunction))
		}
		if f.Missing != nil {
			f.missing = f.share(*f.Missing)
		}
		f.columns = columnsOf(ix, f.Attribute)
		if f.Origin.Date {
			f.dates = make([]*textDates, n)
			for seg, c := range f.columns {
				if c != nil && c.Strings() > 0 {
					f.dates[seg] = datesOf(ix, seg, f.Attribute, c)
				}
			}
		}
	}
	return p
}

func (p *scorer) span() float64 { return p.high - p.low }

// level returns the level of a sum, from 0.
func (p *scorer) level(sum float64) int {
	if p.span() == 0 {
		return 0
	}
	return int(min(max(float64((sum-p.low)*p.levels)/p.span(), 0), p.levels-1))
}

func (p *scorer) cost(sum float64) uint32 { return uint32(int(p.levels) - 1 - p.level(sum)) }

// least returns the least sum of a level, up to rounding.
func (p *scorer) least(level int) float64 { return p.low + float64(level)*p.span()/p.levels }

// share returns the share of a number: of seconds if the origin is a date.
func (f *scored) share(x float64) float64 {
	switch f.Kind {
	case settings.DecayScore:
		return f.decay(math.Abs(x - f.origin))
	case settings.LogScore:
		return min(math.Log1p(max(x, 0))/f.log, 1)
	case settings.SqrtScore:
		return min(math.Sqrt(max(x, 0)/f.Scale), 1)
	case settings.LinearScore:
		return min(max(x, 0)/f.Scale, 1)
	default: // ReciprocalScore
		return f.Scale / (f.Scale + max(x, 0))
	}
}

// decay returns the share at a distance. Products are rounded before they are added, so that all processors compute the same.
func (f *scored) decay(distance float64) float64 {
	d := max(distance-f.Offset, 0) / f.Scale
	switch f.Curve {
	case settings.ExpDecay:
		return math.Exp(f.log * d)
	case settings.GaussDecay:
		return math.Exp(f.log * float64(d*d))
	default:
		return max(1-float64((1-f.Decay)*d), 0)
	}
}

// number returns the share of a number of a column; −1: it is none.
func (f *scored) number(x float64) float64 {
	if !f.Origin.Date {
		return f.share(x)
	}
	second := x / f.Origin.PerSecond
	if second < float64(numeric.FirstSecond) || second >= float64(numeric.EndSecond) {
		return -1
	}
	return f.share(second)
}

// sum returns the sums of rows of a segment, valid until the next call.
func (p *scorer) sum(seg int, rows []uint32) []float64 {
	p.sums = slices.Grow(p.sums[:0], len(rows))[:len(rows)]
	clear(p.sums)
	for i := range p.functions {
		f := &p.functions[i]
		for k, x := range p.shares(f, seg, rows) {
			p.sums[k] += float64(f.Weight * x)
		}
	}
	return p.sums
}

// of returns the share of each function for a row.
func (p *scorer) of(seg int, row uint32) []float64 {
	shares := make([]float64, len(p.functions))
	for i := range shares {
		shares[i] = p.shares(&p.functions[i], seg, []uint32{row})[0]
	}
	return shares
}

// shares returns the shares of rows of a segment, valid until the next call: among several values the one with the largest share
// counts.
func (p *scorer) shares(f *scored, seg int, rows []uint32) []float64 {
	p.best = slices.Grow(p.best[:0], len(rows))[:len(rows)]
	best := p.best
	switch {
	case f.Kind == settings.FilterScore:
		in := f.selected(seg)
		for i, row := range rows {
			if best[i] = 0; in.Contains(row) {
				best[i] = 1
			}
		}
		return best
	case f.Origin.Point:
		for i, row := range rows {
			best[i] = 0
			if g := f.geo[seg]; g != nil {
				if lat, lng, ok := g.Point(segment.Row(row)); ok {
					best[i] = f.decay(geo.Distance(f.Origin.Lat, f.Origin.Lng, lat, lng))
				}
			}
		}
		return best
	}
	for i := range best {
		best[i] = -1
	}
	if c := f.columns[seg]; c != nil {
		if c.Numbers() > 0 {
			p.ords, p.places = c.EachNumber(p.ords[:0], p.places[:0], rows)
			p.numbers = c.NumbersAt(p.numbers[:0], p.ords)
			for i, place := range p.places {
				best[place] = max(best[place], f.number(p.numbers[i].Float))
			}
		}
		if f.Origin.Date && f.dates[seg] != nil {
			p.ords, p.places = c.EachString(p.ords[:0], p.places[:0], rows)
			for i, place := range p.places {
				if x := f.dates[seg].seconds[p.ords[i]]; x == x {
					best[place] = max(best[place], f.share(x))
				}
			}
		}
	}
	for i := range best {
		if best[i] < 0 {
			best[i] = f.missing
		}
	}
	return best
}

var noRows = roaring.New()

// selected returns the rows of a segment that the filter selects.
func (f *scored) selected(seg int) *roaring.Bitmap {
	if f.rows[seg] == nil {
		f.rows[seg] = noRows
		if f.filter != nil {
			f.rows[seg] = f.filter.Rows(seg)
		}
	}
	return f.rows[seg]
}

// textDates are the texts of a column as dates.
type textDates struct {
	seconds []float64 // by ordinal: since 1970; NaN: not a date
	ordered bool      // all are dates, and they ascend
}

var columnDates = resultcache.NewKind[*textDates]("texts of a column as dates")

// datesOf parses the texts of a column as dates, once per segment.
func datesOf(ix *Index, seg int, field string, c *segment.Column) *textDates {
	scope := ix.OfSegment(seg).Scope
	key := []byte(field)
	if d, ok := columnDates.Get(scope, key); ok && len(d.seconds) == c.Strings() {
		return d
	}
	d := &textDates{seconds: make([]float64, c.Strings()), ordered: true}
	for ord := range d.seconds {
		second, ok := numeric.ParseDate(c.String(ord), time.UTC)
		if d.seconds[ord] = float64(second); !ok {
			d.seconds[ord], d.ordered = math.NaN(), false
		}
		if ord > 0 && d.seconds[ord] < d.seconds[ord-1] {
			d.ordered = false
		}
	}
	columnDates.Put(scope, key, d, 64+8*len(d.seconds))
	return d
}

// ascending has the values of one class in a column: numbers, or texts that are dates.
type ascending struct {
	n     int
	value func(ord int) float64
	share func(ord int) float64 // −1: the value, and all beyond it, count for nothing
}

func (f *scored) ascendingNumbers(c *segment.Column) ascending {
	return ascending{c.Numbers(), func(ord int) float64 { return c.Number(ord).Float / f.Origin.PerSecond },
		func(ord int) float64 { return f.number(c.Number(ord).Float) }}
}

func (f *scored) ascendingDates(d *textDates) ascending {
	return ascending{len(d.seconds), func(ord int) float64 { return d.seconds[ord] }, func(ord int) float64 { return f.share(d.seconds[ord]) }}
}

// peak returns the ordinal up to which shares ascend, and from which on they descend.
func (f *scored) peak(a ascending) int {
	switch f.Kind {
	case settings.DecayScore:
		return sort.Search(a.n, func(ord int) bool { return a.value(ord) >= f.origin })
	case settings.ReciprocalScore:
		return 0
	}
	return a.n
}

// reach returns the range of ordinals with at least the given share, up to rounding.
func (f *scored) reach(a ascending, share float64) (lo, hi int) {
	peak := f.peak(a)
	share -= sumMargin
	lo = sort.Search(peak, func(ord int) bool { return a.share(ord) >= share })
	hi = peak + sort.Search(a.n-peak, func(i int) bool { return a.share(peak+i) < share })
	return lo, hi
}

// most returns a share which no row of a segment exceeds.
func (f *scored) most(seg int) float64 {
	if f.bounds[seg] < 0 {
		f.bounds[seg] = f.largest(seg)
	}
	return f.bounds[seg]
}

// largest returns an upper bound of what a function gives to any row of a segment, by the values of its column next to the peak.
func (f *scored) largest(seg int) float64 {
	switch {
	case f.Kind == settings.FilterScore:
		if f.selected(seg).IsEmpty() {
			return 0
		}
		return 1
	case f.Origin.Point:
		if f.geo[seg] == nil {
			return 0
		}
		return 1
	}
	most, c := f.missing, f.columns[seg]
	if c == nil {
		return most
	}
	of := []ascending{f.ascendingNumbers(c)}
	if f.Origin.Date && f.dates[seg] != nil {
		if !f.dates[seg].ordered {
			return 1
		}
		of = append(of, f.ascendingDates(f.dates[seg]))
	}
	for _, a := range of {
		peak := f.peak(a)
		for ord := max(peak-1, 0); ord <= peak && ord < a.n; ord++ {
			most = max(most, a.share(ord))
		}
	}
	return most
}

// most returns an upper bound of the sums of all rows of a segment, up to rounding.
func (p *scorer) most(seg int) float64 {
	sum := 0.0
	for i := range p.functions {
		if f := &p.functions[i]; f.Weight > 0 {
			sum += f.Weight * f.most(seg)
		}
	}
	return sum
}

// condition is what a function asks of rows that reach a sum.
type condition struct {
	texts  bool
	lo, hi int // ordinals
	among  int // number of ordinals
}

// condition returns which rows may have a share. ok is false if these are not only rows with certain ordinals.
func (f *scored) condition(seg int, share float64) (c condition, ok bool) {
	column := f.columns[seg]
	if share <= f.missing+sumMargin || column == nil {
		return c, false
	}
	texts := f.Origin.Date && f.dates[seg] != nil
	switch {
	case texts && (column.Numbers() > 0 || !f.dates[seg].ordered):
		return c, false
	case texts:
		c.texts, c.among = true, column.Strings()
		c.lo, c.hi = f.reach(f.ascendingDates(f.dates[seg]), share)
	default:
		c.among = column.Numbers()
		c.lo, c.hi = f.reach(f.ascendingNumbers(column), share)
	}
	return c, true
}

// inverseShare: the rows of ordinals are looked up if they are fewer than 1/inverseShare of the candidates.
const inverseShare = 4

// reaching returns rows of a segment that include all rows that reach a sum. ok is false if it would have to read more than one of
// inverseShare rows, and mayScan is false.
func (p *scorer) reaching(s *search, seg int, in *roaring.Bitmap, sum float64, mayScan bool) (_ *roaring.Bitmap, ok bool) {
	most, among := p.most(seg), in
	if most < sum {
		return noRows, true
	}
	type asked struct {
		condition
		column *segment.Column
	}
	var conditions []asked
	for i := range p.functions {
		f := &p.functions[i]
		if f.Weight <= 0 {
			continue
		}
		share := (sum-most)/f.Weight + f.most(seg) // if all others have the most
		switch {
		case f.Kind == settings.FilterScore:
			if share > sumMargin {
				among = roaring.And(among, f.selected(seg))
			}
		case f.Origin.Point:
			if share > sumMargin && f.geo[seg] != nil {
				inside := roaring.New()
				f.geo[seg].AddRowsInCap(inside, f.Origin.Lat, f.Origin.Lng, f.distance(share-sumMargin)*(1+sumMargin)+geoMargin)
				among = roaring.And(among, inside)
			}
		default:
			if c, ok := f.condition(seg, share); ok {
				conditions = append(conditions, asked{c, f.columns[seg]})
			}
		}
	}
	slices.SortFunc(conditions, func(a, b asked) int { return int((a.hi-a.lo)*max(b.among, 1)) - int((b.hi-b.lo)*max(a.among, 1)) })
	for i, c := range conditions {
		entries, add := c.column.NumberEntries, c.column.AddNumberRows
		if c.texts {
			entries, add = c.column.StringEntries, c.column.AddStringRows
		}
		if entries(c.lo, c.hi) < int(among.GetCardinality())/inverseShare {
			with := roaring.New()
			add(with, c.lo, c.hi)
			among = roaring.And(among, with)
			continue
		}
		if !mayScan && among.GetCardinality() > in.GetCardinality()/inverseShare {
			return nil, false
		}
		list := s.rowsIn(among)
		for _, c := range conditions[i:] {
			if c.texts {
				list = c.column.RowsWithStrings(list[:0], list, c.lo, c.hi)
			} else {
				list = c.column.RowsWithNumbers(list[:0], list, c.lo, c.hi)
			}
		}
		return rowlist.FromRows(list), true
	}
	return among, true
}

// distance returns the distance up to which decay gives at least a share, up to rounding.
func (f *scored) distance(share float64) float64 {
	if share <= 0 {
		return halfwayRound
	}
	d := 0.0
	switch f.Curve {
	case settings.ExpDecay:
		d = math.Log(share) / f.log
	case settings.GaussDecay:
		d = math.Sqrt(math.Log(share) / f.log)
	default:
		d = (1 - share) / (1 - f.Decay)
	}
	return min(f.Offset+max(d, 0)*f.Scale, halfwayRound)
}
