package segment

import (
	"cmp"
	"runtime"
	"slices"

	"svc/internal/mapped"
)

// After a machine starts, its files are not in memory. A search would wait for many pages, and with each of them for its surroundings, of
// 8 MiB on some machines. So searches read a file that is found cold page by page, while ReadAhead reads all of it in order. While memory
// does not suffice for all files, none is cold.

// coldSamples is the number of places where a file is sampled. It is cold if half of them are not in memory.
const coldSamples = 64

// warmStep is how much of a cold file is requested at a time. At most one more step is in progress, so that a page that a search
// needs is read soon.
const warmStep = 256 << 10

// becomeCold reports whether the file is cold, and has its pages read one by one then.
func (r *Reader) becomeCold() bool {
	if r.file == nil || len(r.data) < leastScattered {
		return false
	}
	missing := 0
	for i := range int64(coldSamples) {
		if !r.holds(r.file.Len() * i / coldSamples) {
			missing++
		}
	}
	return missing >= coldSamples/2 && r.file.SetCold(true)
}

// warm reads all sections, the short ones first: most searches read them. It ends early if the reading ahead is to end, and if files do
// not fit into memory any more.
func (r *Reader) warm() {
	parts := slices.Clone(r.sections)
	slices.SortStableFunc(parts, func(a, b section) int { return cmp.Compare(a.length, b.length) })
	var before []byte // the step that was asked for last
	for _, s := range parts {
		for at, end := s.offset, s.offset+s.length; at < end; at += warmStep {
			if r.ahead.stopped() || mapped.Crowded() {
				return
			}
			step := r.data[at:min(at+warmStep, end)]
			r.blocks.request(step)
			if len(before) > 0 {
				runtime.KeepAlive(before[len(before)-1]) // waits until it is there
			}
			before = step
		}
	}
}
