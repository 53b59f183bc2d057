package segment

import "svc/internal/mapped"

// While the mapped files do not fit into memory, and while a file is cold (see mapped.PageByPage), a missing page in most sections is
// read alone, without megabytes around it. So code that reads several pages requests all of them first.

// mostGathered is the longest part of a section that is asked for at once. Of longer ones callers often need little.
const mostGathered = 256 << 10

// leastScattered is the size in bytes from which a file gets advice: the surroundings of a page of a smaller one are few.
const leastScattered = 1 << 20

// scatter tells the system which sections are read at scattered places. Adjacent sections of the table become one part.
func (r *Reader) scatter() {
	if r.file == nil || len(r.data) < leastScattered {
		return
	}
	r.file.Scatter(scatteredParts(r.sections))
}

func scatteredParts(sections []section) []mapped.Part {
	var parts []mapped.Part
	joined := false
	for _, s := range sections {
		k := kindOf(s.tag)
		if k == nil || !k.scattered || s.length == 0 {
			joined = joined && s.length == 0
			continue
		}
		if joined {
			last := &parts[len(parts)-1]
			last.Length = s.offset + s.length - last.At
		} else {
			parts = append(parts, mapped.Part{At: s.offset, Length: s.length})
		}
		joined = true
	}
	return parts
}

// gather requests the pages of a part of the file, unless it is long.
func (b *blocks) gather(p []byte) {
	if len(p) <= mostGathered && mapped.PageByPage() {
		b.request(p)
	}
}

// mostRows is the longest list of rows, in bytes, that is requested at once: that of 16 million rows, any of which may be in it.
const mostRows = 2 << 20

// gatherRows asks for the pages of a list of rows, which is mostly read whole.
func (b *blocks) gatherRows(p []byte) {
	if len(p) <= mostRows && mapped.PageByPage() {
		b.request(p)
	}
}

// request asks for the pages of a part of the file, whether or not they were found right: they may have left memory since.
func (b *blocks) request(p []byte) {
	if b.file != nil && len(p) > 0 {
		b.file.Advise(int64(b.offset(p)), int64(len(p)), mapped.WillNeed)
	}
}

// PageByPage reports whether, in at least one file, each missing page is read separately. If so, callers that are going to read
// several places announce them first.
func PageByPage() bool { return mapped.PageByPage() }

// askedBlocks is how many blocks of a long part are requested at once while they are verified in order.
const askedBlocks = mostGathered >> blockBits

// pass requests a part of the file that the caller reads, and returns the function that releases its pages. They stay in the system's
// cache.
func (r *Reader) pass(at, n int64) (leave func()) {
	r.file.Advise(at, n, mapped.WillNeed)
	return func() { r.file.Advise(at, n, mapped.DontNeed) }
}

// visit requests a part of the file that the caller reads once, and returns the function that releases its pages. While files are
// crowded, it also evicts the pages that it brought into the system's cache, because they would displace pages that searches use.
func (r *Reader) visit(at, n int64) (leave func()) {
	if !mapped.Crowded() {
		return func() { r.file.Advise(at, n, mapped.DontNeed) }
	}
	missing := r.file.Missing(at, n)
	r.file.Advise(at, n, mapped.WillNeed)
	return func() {
		for _, p := range missing {
			r.file.Advise(p.At, p.Length, mapped.PageOut)
		}
		r.file.Advise(at, n, mapped.DontNeed)
	}
}

// A run is a section that is read from front to back, not quite in order. While files are crowded, it is asked for in steps.
type run struct {
	blocks  *blocks
	section []byte
	asked   int // up to here
}

// runStep is how much of a run is asked for at once.
const runStep = 1 << 20

// reach requests what follows a place if that is close to the end of what was requested.
func (r *run) reach(at int) {
	if at+runStep/4 < r.asked || !mapped.PageByPage() {
		return
	}
	from := min(max(at, r.asked), len(r.section))
	r.asked = from + runStep
	r.blocks.request(r.section[from:min(r.asked, len(r.section))])
}
