package index

import (
	"slices"
	"sync"

	"svc/internal/index/mergeplan"
	"svc/segment"
)

// written are the segments that a batch has written. Of many documents there are hundreds, through which searches would have to go
// one after the other once the batch is committed. So workers merge some of them while the batch goes on, in the place of gathering
// documents: with the memory and the processor of theirs, and before anybody searches.
type written struct {
	mu    sync.Mutex
	files []*file // that no merge has
}

func (s *written) add(files ...*file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, files...)
}

// takeDue takes the segments of the smallest merge that is due; none when there is none.
func (s *written) takeDue(o mergeplan.Options) []*file {
	s.mu.Lock()
	defer s.mu.Unlock()
	segments := make([]mergeplan.Segment, len(s.files))
	for i, f := range s.files {
		segments[i] = mergeplan.Segment{Rows: f.Rows(), Live: f.Rows(), Bytes: f.Info().Bytes}
	}
	merges := mergeplan.Plan(segments, o)
	if len(merges) == 0 {
		return nil
	}
	var inputs, left []*file
	for i, f := range s.files {
		if slices.Contains(merges[0].Inputs, i) {
			inputs = append(inputs, f)
		} else {
			left = append(left, f)
		}
	}
	s.files = left
	return inputs
}

// discard removes all of them.
func (s *written) discard() {
	for _, f := range s.files {
		f.discard()
	}
	s.files = nil
}

// merge does the merges that are due.
func (w *writer) merge() error {
	if len(w.b.plans) > 0 {
		return nil // a merge links vectors into a graph anew, which is dearer than what searches gain
	}
	for {
		inputs := w.written.takeDue(w.b.ix.catalog.importPlan)
		if len(inputs) == 0 {
			return nil
		}
		if err := w.mergeOnce(inputs); err != nil {
			return err
		}
	}
}

// mergeOnce puts a segment in the place of some.
func (w *writer) mergeOnce(inputs []*file) error {
	stay := inputs
	defer func() { w.written.add(stay...) }()
	lives := make([]segment.Live, len(inputs))
	for i, f := range inputs {
		lives[i] = f.live(nil)
	}
	merged, err := w.b.ix.mergeTo(w.ctx, lives, segment.MergeOptions{
		Prefixes: w.builder.Prefixes,
		Throttle: func(int) error { w.pace.Yield(); return w.ctx.Err() },
	})
	if err != nil {
		return err
	}
	stay = []*file{merged}
	for _, f := range inputs {
		f.discard()
	}
	return nil
}
