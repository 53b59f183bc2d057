package aggregate

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// Source is the input of an aggregation: some rows of the segments of an index.
type Source struct {
	Segments []segment.Live
	Fields   *settings.Fields
	// Count is the number of candidates in a segment, and Rows are these rows, which may be shared.
	Count func(seg int) int
	Rows  func(seg int) *roaring.Bitmap
	// Ordinals counts the values of the candidates of a segment.
	Ordinals func(seg int, field segment.FieldID, c *segment.Column, strings bool) Ordinals
	Deadline time.Time // zero: none
	// Kept returns the cached state of the candidates of a segment, or nil. It charges what it reads with hold; this is returned once
	// the state is merged. keep says whether a new state may be cached. If Kept is nil, states are not cached.
	Kept func(seg int, hold func(bytes int64) error) (state *Result, keep bool, err error)
	// Keep returns a function that caches a state of about the given size, encoded by AppendPeer; nil: the state is not cached.
	Keep func(seg, bytes int) func(state []byte)
}

// Result is the state of the aggregations of a Set. It may refer to the segments that it was computed from, which must be held until
// AppendJSON or AppendPeer has returned.
type Result struct {
	set    Set
	nodes  []node
	groups int  // of documents, in all nodes
	filled bool // a segment was folded in
	// Degraded says that the deadline passed before all candidates were processed: counts and figures cover only a part of them.
	Degraded bool
}

// New returns an empty result.
func (s Set) New() *Result { return &Result{set: s, nodes: s.newNodes()} }

// Check refuses an attribute that is not filterable.
func (s Set) Check(fields *settings.Fields, code apierr.Code) error {
	return s.Attributes(func(name string) error {
		if info := fields.InfoOf(name); !info.Filters() {
			return apierr.New(code, "Attribute %q cannot be aggregated. Add it to the index's filterable attributes first.", name)
		}
		return nil
	})
}

// work is what the computation of a request shares: its turn, deadline and memory.
type work struct {
	turn     turns.Turn // nil: no yielding
	account  *budget.Account
	charge   func(bytes int) error // instead of account; may be nil
	deadline time.Time
	code     apierr.Code
	spare    int // bytes that are charged and not used yet
	charged  int // bytes
	groups   int // of the result, so far
	steps    int
	cached   []preloaded // in the current segment
}

// newWork returns the work of the goroutine that has a turn.
func newWork(t turns.Turn, code apierr.Code) *work {
	return &work{turn: t, account: t.Account(), code: code}
}

// chargedAtOnce is how many bytes are charged at least; smaller charges are combined.
const chargedAtOnce = 16 << 10

// hold charges bytes that are about to be allocated.
func (w *work) hold(bytes int) error {
	if w.charge != nil {
		return w.charge(bytes)
	}
	if w.spare -= bytes; w.spare >= 0 || w.account == nil {
		return nil
	}
	more := max(-w.spare, chargedAtOnce)
	if err := w.account.Hold(int64(more)); err != nil {
		w.spare += bytes
		return err
	}
	w.spare += more
	w.charged += more
	return nil
}

// tryHold is hold for what the result can do without: it does not wait for memory.
func (w *work) tryHold(bytes int) bool {
	if w.charge != nil {
		return w.charge(bytes) == nil
	}
	if !w.account.TryHold(int64(bytes)) {
		return false
	}
	w.charged += bytes
	return true
}

// part returns the work for a temporary state. giveBack releases its charges after the merge.
func (w *work) part() *work {
	return &work{turn: w.turn, account: w.account, deadline: w.deadline, code: w.code}
}

// read charges bytes of a state that is read.
func (w *work) read(bytes int64) error {
	err := w.account.Hold(bytes)
	if err == nil {
		w.charged += int(bytes)
	}
	return err
}

// giveBack ends what a part has charged.
func (w *work) giveBack() {
	if w.account != nil {
		_ = w.account.Hold(int64(-w.charged)) // giving back does not fail
	}
}

// errDeadline ends a computation whose deadline has passed.
var errDeadline = errors.New("the deadline of the aggregation has passed")

// step is called for each batch.
func (w *work) step() error {
	if w.turn == nil {
		return nil
	}
	if err := w.turn.Yield(); err != nil {
		return err
	}
	const stepsOfClock = 4
	if w.steps++; w.steps%stepsOfClock == 0 && !w.deadline.IsZero() && time.Now().After(w.deadline) {
		return errDeadline
	}
	return nil
}

// preloads reports whether to preload a part of a column: no walk has done so in this segment.
func (w *work) preloads(p preloaded) bool {
	if slices.Contains(w.cached, p) {
		return false
	}
	w.cached = append(w.cached, p)
	return true
}

// rest yields at some steps of appending a long state. If the turn has an error, a later call returns it again.
func (w *work) rest(step int) {
	const restSteps = 256
	if w.turn != nil && step%restSteps == 0 {
		_ = w.turn.Yield()
	}
}

// grouped is called for each new group.
func (w *work) grouped() error {
	if w.groups++; w.groups > maxGroups {
		return apierr.New(w.code, "The aggregations have more than %d groups of documents. Narrow the search, raise `interval`, or nest fewer of them.", maxGroups)
	}
	return nil
}

// Compute folds the candidates of a source into the result. Errors are *apierr.Error with the code, or those of the turn.
func (r *Result) Compute(t turns.Turn, s *Source, code apierr.Code) error {
	w := newWork(t, code)
	w.deadline, w.groups = s.Deadline, r.groups
	err := r.compute(w, s)
	r.groups = w.groups
	if errors.Is(err, errDeadline) {
		r.Degraded, err = true, nil
	}
	return err
}

// compute goes through the segments with candidates, the one with most of them first. Nodes are fastest while they are empty, and the
// state of the first segment can be cached without a merge.
func (r *Result) compute(w *work, s *Source) error {
	fold := r.segment
	if s.Kept != nil && r.set.Keeps() {
		fold = r.keptSegment
	}
	first, most := 0, 0
	for seg := range s.Segments {
		if n := s.Count(seg); n > most {
			first, most = seg, n
		}
	}
	if most == 0 {
		return nil
	}
	if err := fold(w, s, first, most); err != nil {
		return err
	}
	r.filled = true
	for seg := range s.Segments {
		if n := s.Count(seg); n > 0 && seg != first {
			if err := fold(w, s, seg, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// Keeps reports whether the states of all aggregations merge to the same answer in any order, so that the states of segments can be
// cached.
func (s Set) Keeps() bool {
	return !slices.ContainsFunc(s, func(a *Spec) bool { return !a.kind.exact || !a.Nested.Keeps() })
}

// keptSegment adds the candidates of a segment: from the cached state if there is one, otherwise by computing it and perhaps caching
// it.
func (r *Result) keptSegment(w *work, s *Source, seg, among int) error {
	own := w.part()
	defer own.giveBack()
	state, keep, err := s.Kept(seg, own.read)
	switch {
	case err != nil:
		return err
	case state != nil:
		return mergeAll(w, r.nodes, state.nodes, []uint32{0})
	case !keep:
		return r.segment(w, s, seg, among)
	case !r.filled: // no other segment is in the state
		if err := r.segment(w, s, seg, among); err != nil {
			return err
		}
		return r.keep(own, s, seg)
	}
	part := r.set.New()
	if err = part.segment(own, s, seg, among); err == nil {
		if err := part.keep(own, s, seg); err != nil {
			return err
		}
	} else if !errors.Is(err, errDeadline) {
		return err
	}
	if err := mergeAll(w, r.nodes, part.nodes, []uint32{0}); err != nil {
		return err
	}
	return err // a part of the candidates counts, too
}

// keep caches the state of a segment, if this is allowed and there is memory for it now. The memory is charged while the state is
// made.
func (r *Result) keep(w *work, s *Source, seg int) error {
	bytes := r.peerBytes()
	put := s.Keep(seg, bytes)
	if put == nil || !w.tryHold(bytes) {
		return nil
	}
	put(r.appendPeer(w, make([]byte, 0, bytes)))
	if w.turn == nil {
		return nil
	}
	return w.turn.Yield()
}

// walked has memory for rows that are walked.
var walked = sync.Pool{New: func() any { return new([batch]uint32) }}

// segment folds the candidates of a segment.
func (r *Result) segment(w *work, s *Source, seg, among int) error {
	if err := openAll(w, r.set, r.nodes, s, seg, among); err != nil {
		return err
	}
	w.cached = w.cached[:0]
	var walkers []node
	for _, n := range r.nodes {
		done, err := n.tally(w)
		if err != nil {
			return err
		}
		if !done {
			walkers = append(walkers, n)
		}
	}
	var late error
	if len(walkers) > 0 {
		if late = walkRows(w, s.Rows(seg), walkers); late != nil && !errors.Is(late, errDeadline) {
			return late
		}
	}
	if err := settleAll(w, r.nodes); err != nil {
		return err
	}
	return late // a part of the candidates counts, too
}

// walkRows walks some rows of a segment in batches.
func walkRows(w *work, rows *roaring.Bitmap, walkers []node) error {
	some := walked.Get().(*[batch]uint32)
	defer walked.Put(some)
	for it := rows.ManyIterator(); ; {
		got := it.NextMany(some[:])
		if got == 0 {
			return nil
		}
		if err := w.step(); err != nil {
			return err
		}
		for _, n := range walkers {
			if err := n.walk(w, pairs{rows: some[:got]}); err != nil {
				return err
			}
		}
	}
}

// openAll begins a segment in all nodes.
func openAll(w *work, set Set, nodes []node, s *Source, seg, among int) error {
	live := s.Segments[seg]
	for i, a := range set {
		c := columnOf{among: among, rows: live.Rows()}
		if id, ok := s.Fields.ID(a.Attribute); ok {
			if c.column = live.Column(id); c.column != nil {
				column := c.column
				c.counts = func(strings bool) Ordinals { return s.Ordinals(seg, id, column, strings) }
			}
		}
		if err := nodes[i].open(w, c); err != nil {
			return err
		}
		if b, ok := nodes[i].(*buckets); ok {
			if err := openAll(w, a.Nested, b.nested, s, seg, among); err != nil {
				return err
			}
		}
	}
	return nil
}

// Merge folds another result of the same Set into this one, which was not read by ReadPeer. The other is of no use afterwards.
func (r *Result) Merge(t turns.Turn, o *Result, code apierr.Code) error {
	w := newWork(t, code)
	w.groups = r.groups
	r.Degraded = r.Degraded || o.Degraded
	err := mergeAll(w, r.nodes, o.nodes, []uint32{0})
	r.groups = w.groups
	return err
}

// mergeAll merges the states of one level: group i of from into group to[i].
func mergeAll(w *work, nodes, from []node, to []uint32) error {
	for i, n := range nodes {
		if err := n.merge(w, from[i], to); err != nil {
			return err
		}
	}
	return w.step()
}

// render writes an answer.
type render struct {
	dst     []byte
	work    *work
	charged int // bytes of dst
	buckets int // shown so far
	err     error
}

// AppendJSON appends the object with the answer of each aggregation, which is charged. An answer with more than MaxBuckets buckets is an
// *apierr.Error with the code.
func (r *Result) AppendJSON(t turns.Turn, dst []byte, code apierr.Code) ([]byte, error) {
	w := render{dst: dst, work: newWork(t, code), charged: len(dst)}
	w.set(r.set, r.nodes, 0)
	return w.dst, w.err
}

// bucket is called for each bucket that is shown. False: the answer ends in an error.
func (r *render) bucket() bool {
	if r.buckets++; r.err == nil && r.buckets > MaxBuckets {
		r.err = apierr.New(r.work.code, "The aggregations have more than %d buckets, the maximum. Raise `interval`, lower `limit`, or nest fewer of them.", MaxBuckets)
	}
	if r.err == nil {
		r.err = r.work.step()
	}
	if r.err == nil {
		r.err = r.work.hold(len(r.dst) - r.charged)
		r.charged = len(r.dst)
	}
	return r.err == nil
}

// set appends the answers of all aggregations of a level, for one group.
func (r *render) set(s Set, nodes []node, group int) {
	r.dst = append(r.dst, '{')
	for i, a := range s {
		if i > 0 {
			r.dst = append(r.dst, ',')
		}
		r.dst = appendName(r.dst, a.Name)
		nodes[i].appendJSON(r, group)
	}
	r.dst = append(r.dst, '}')
}

// AppendPeer appends the state for another machine, which merges it.
func (r *Result) AppendPeer(dst []byte) []byte { return r.appendPeer(new(work), dst) }

func (r *Result) appendPeer(w *work, dst []byte) []byte {
	if r.Degraded {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	for _, n := range r.nodes {
		dst = n.appendPeer(w, dst, 1)
	}
	return dst
}

// ReadPeer reads what AppendPeer appended for the same Set. The result may alias the message.
func (s Set) ReadPeer(r Reader) (*Result, error) {
	result := s.New()
	w := &work{charge: r.Hold}
	result.Degraded = r.Byte() != 0
	for _, n := range result.nodes {
		if err := n.readPeer(w, r, 1); err != nil {
			return nil, err
		}
	}
	return result, nil
}
