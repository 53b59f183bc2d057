package index

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"svc/internal/apierr"
	"svc/internal/index/mergeplan"
	"svc/internal/pace"
	"svc/segment"
)

// written are the segments that a batch has written. A batch of many documents writes hundreds, which searches would read
// one after the other. So workers merge some of them during the batch, instead of gathering documents, with the same
// memory and before the commit.
type written struct {
	mu    sync.Mutex
	files []*file // that no merge has

	merging sync.RWMutex // held by merges, for reading
	begun   atomic.Bool  // there was a merge
	scarce  atomic.Bool  // there was no room for merges, which only save search time: make no more
}

// add hands over segments that a worker has written; several workers call it.
func (s *written) add(files ...*file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, files...)
}

// takeDue takes the segments of the smallest merge that is due, or none.
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

// makeRoom stops the merges and starts no more. When it returns, their memory is free. It reports whether there was one.
func (s *written) makeRoom() bool {
	s.scarce.Store(true)
	s.merging.Lock()
	defer s.merging.Unlock()
	return s.begun.Load()
}

// sort orders them by their numbers: workers end in any order.
func (s *written) sort() {
	slices.SortFunc(s.files, func(a, b *file) int { return cmp.Compare(a.number, b.number) })
}

// discard removes all of them.
func (s *written) discard() {
	for _, f := range s.files {
		f.discard()
	}
	s.files = nil
}

// merge does the merges that are due, at a pace.
func (w *writer) merge(p *pace.Worker) error {
	if len(w.b.plans) > 0 {
		return nil // a merge links the vectors into a new graph, which costs more than searches gain
	}
	for {
		if again, err := w.mergeDue(p); !again {
			return err
		}
	}
}

var errMakesWay = errors.New("a merge yields to documents")

// mergeDue makes one merge, if one is due. If there is no room for it, its inputs stay.
func (w *writer) mergeDue(p *pace.Worker) (done bool, err error) {
	s := &w.written
	s.merging.RLock()
	defer s.merging.RUnlock()
	if s.scarce.Load() {
		return false, nil
	}
	inputs := s.takeDue(w.b.ix.catalog.importPlan)
	if len(inputs) == 0 {
		return false, nil
	}
	s.begun.Store(true)
	err = w.mergeOnce(inputs, p)
	switch {
	case scarce(err):
		s.scarce.Store(true)
		return false, nil
	case errors.Is(err, errMakesWay):
		return false, nil
	case apierr.IsCorruption(err):
		return false, misread(err)
	}
	return err == nil, err
}

// scarce reports whether something failed because of a lack of disk space, files or memory.
func scarce(err error) bool {
	if err == nil {
		return false
	}
	code := apierr.From(err).Code
	return code == "no_space_left_on_device" || code == "too_many_open_files"
}

// mergeOnce puts a segment in the place of some.
func (w *writer) mergeOnce(inputs []*file, p *pace.Worker) error {
	stay := inputs
	defer func() { w.written.add(stay...) }()
	lives := make([]segment.Live, len(inputs))
	for i, f := range inputs {
		lives[i] = f.live(nil)
	}
	merged, err := w.b.ix.mergeTo(w.ctx, lives, segment.MergeOptions{
		Prefixes: w.builder.Prefixes,
		Infix:    w.builder.Infix,
		Throttle: func(int) error {
			p.Yield()
			if w.written.scarce.Load() {
				return errMakesWay
			}
			return w.ctx.Err()
		},
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
