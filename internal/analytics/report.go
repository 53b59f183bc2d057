package analytics

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"svc/internal/apierr"
	"svc/internal/turns"
)

// Range says which counts are meant.
type Range struct {
	From, To time.Time               // whole hours: those that begin before To and end after From; zero: no bound
	Index    string                  // "": all
	Reaches  func(index string) bool // whether an index may be seen; nil: all. "" means all indexes together
}

func (q *Range) hours() (from, end hour) {
	from, end = math.MinInt64, math.MaxInt64
	if !q.From.IsZero() {
		from = hourOf(q.From)
	}
	if !q.To.IsZero() {
		end = hourOf(q.To.Add(time.Hour - 1))
	}
	return from, end
}

// has reports whether the counts of an index are meant.
func (q *Range) has(index string) bool {
	return (q.Index == "" || q.Index == index) && (q.Reaches == nil || q.Reaches(index))
}

// meansKey reports whether a query or a filter is meant.
func (q *Range) meansKey(key string) bool {
	_, index, _ := splitKey(key)
	return q.has(index)
}

// Order says which queries a report has, and in which order.
type Order uint8

// Orders of reports.
const (
	MostSearched  Order = iota
	MostOftenNone       // only those that found nothing at least once
	Slowest             // by the mean time of their searches
)

// Row is a query or a filter in an index.
type Row struct {
	Index, Text string
	Counts
}

// Cut reports whether the text is only the beginning of the original.
func (r *Row) Cut() bool { return strings.HasSuffix(r.Text, cutMark) }

// Mean returns the mean time of the searches.
func (c *Counts) Mean() time.Duration {
	if c.Searches == 0 {
		return 0
	}
	return time.Duration(c.Micros/c.Searches) * time.Microsecond
}

// Slowest is the longest time of a search.
func (c *Counts) Slowest() time.Duration { return time.Duration(c.Longest) * time.Microsecond }

// value is what an order sorts by; ok is false for rows that a report in this order leaves out.
func (o Order) value(c *Counts) (v uint64, ok bool) {
	switch o {
	case MostOftenNone:
		return c.None, c.None > 0
	case Slowest:
		return uint64(c.Mean()), c.Searches > 0
	}
	return c.Searches, c.Searches > 0
}

// Report is an answer to a question.
type Report struct {
	Rows  []Row
	Other uint64 // searches whose queries, or filters, are in no row because they were rare in their hour
}

// maxMerged is the maximum number of queries in the counts of a report. If there are more, those with the lowest counts so far are
// dropped.
const maxMerged = 1 << 16

// Queries returns the first queries of a range in an order.
func (r *Recorder) Queries(ctx context.Context, q Range, o Order, limit int) (*Report, error) {
	return r.report(ctx, q, queryKind, o, limit)
}

// Filters returns the most frequent filters of a range.
func (r *Recorder) Filters(ctx context.Context, q Range, limit int) (*Report, error) {
	return r.report(ctx, q, filterKind, MostSearched, limit)
}

func (r *Recorder) report(ctx context.Context, q Range, k kind, o Order, limit int) (*Report, error) {
	all, hours, err := r.gather(q)
	if err != nil {
		return nil, err
	}
	m := merge{kind: k, of: q, order: o, rows: map[string]*Counts{}}
	m.take(all)
	for _, h := range hours {
		if err := turns.Of(ctx).Yield(); err != nil {
			return nil, err
		}
		entries, err := r.readHour(h)
		if errors.Is(err, fs.ErrNotExist) { // removed since
			continue
		}
		if err != nil {
			r.mu.Lock()
			r.warn(h.name(), err)
			r.mu.Unlock()
			continue
		}
		m.take(entries)
	}
	return m.report(limit), nil
}

// gather returns the counts of a range that are in memory, and the hours whose files have the others.
func (r *Recorder) gather(q Range) (all []*entry, hours []hour, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from, end := q.hours()
	from = max(from, r.oldest(hourOf(r.now())))
	if from <= r.hour && r.hour < end {
		all = r.live.copies()
	}
	if r.ended != nil && from <= r.ended.hour && r.ended.hour < end {
		all = append(all, r.ended.entries...)
	}
	files, err := r.hours()
	for _, h := range files {
		if from <= h && h < end && h != r.hour && (r.ended == nil || h != r.ended.hour) {
			hours = append(hours, h)
		}
	}
	return all, hours, err
}

// merge adds up the counts of hours.
type merge struct {
	kind  kind
	of    Range
	order Order
	rows  map[string]*Counts // by key
	other uint64
}

func (m *merge) take(entries []*entry) {
	for _, e := range entries {
		k, index, _ := splitKey(e.key)
		if k%restOf != m.kind || !m.of.has(index) {
			continue
		}
		if k >= restOf {
			m.other += e.Searches
			continue
		}
		c := m.rows[e.key]
		if c == nil {
			c = new(Counts)
			m.rows[e.key] = c
		}
		c.add(&e.Counts)
	}
	if len(m.rows) > maxMerged {
		m.prune()
	}
}

// prune gives up the half of the rows that comes last so far.
func (m *merge) prune() {
	for _, row := range m.sorted()[maxMerged/2:] {
		key := string(append(appendKey(nil, m.kind, row.Index), row.Text...))
		m.other += m.rows[key].Searches
		delete(m.rows, key)
	}
}

// sorted returns all rows in their order.
func (m *merge) sorted() []Row {
	rows := make([]Row, 0, len(m.rows))
	for key, c := range m.rows {
		_, index, text := splitKey(key)
		rows = append(rows, Row{index, text, *c})
	}
	slices.SortFunc(rows, func(a, b Row) int {
		x, _ := m.order.value(&a.Counts)
		y, _ := m.order.value(&b.Counts)
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Index, b.Index))
	})
	return rows
}

func (m *merge) report(limit int) *Report {
	rows := slices.DeleteFunc(m.sorted(), func(row Row) bool {
		_, ok := m.order.value(&row.Counts)
		return !ok
	})
	return &Report{Rows: rows[:min(limit, len(rows))], Other: m.other}
}

// Delete removes the counts of a range, durably. Events of searches in it do not count any more.
func (r *Recorder) Delete(ctx context.Context, q Range) error {
	files, err := r.deleteLive(&q) // first, so that no hour ends meanwhile and escapes
	if err != nil {
		return err
	}
	for _, h := range files {
		if err := turns.Of(ctx).Yield(); err != nil {
			return err
		}
		if err := r.deleteIn(h, &q); err != nil {
			return err
		}
	}
	return nil
}

// deleteLive deletes the counts of a range from memory and from the journal. It returns the hours of the range that have files.
func (r *Recorder) deleteLive(q *Range) (files []hour, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.advance(hourOf(r.now())); err != nil { // so that the hour before has its file
		return nil, err
	}
	from, end := q.hours()
	if previous := r.previous.Load(); previous != nil {
		left := maps.Clone(*previous)
		maps.DeleteFunc(left, func(_ uint64, key string) bool { return q.meansKey(key) })
		r.previous.Store(&left)
	}
	if from <= r.hour && r.hour < end {
		if len(r.live.remove(func(e *entry) bool { return q.meansKey(e.key) })) > 0 {
			r.journal.rewrite = true
		}
		if err := r.writeJournal(); err != nil {
			return nil, err
		}
	}
	files, err = r.hours()
	return slices.DeleteFunc(files, func(h hour) bool { return h < from || h >= end }), err
}

// deleteIn deletes the counts of a range from the file of an hour. A damaged file is deleted completely, because its content per
// index is unknown.
func (r *Recorder) deleteIn(h hour, q *Range) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries, err := r.readHour(h)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case apierr.IsCorruption(err):
		delete(r.damaged, h.name())
		return r.writeHour(h, nil)
	case err != nil:
		return err
	}
	left := slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return q.meansKey(e.key) })
	if len(left) == len(entries) {
		return nil
	}
	return r.writeHour(h, left)
}
