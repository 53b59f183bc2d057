package segment

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/mapped"
)

// A walk through a graph reads about a thousand scattered pages, known only as it proceeds. On a file that is not in
// memory it would wait for the disk as often; on one in memory it would verify as many blocks. So ReadAhead reads and
// verifies signs, links, codes and sets of vectors before the first search, as far as memory allows (see walked). Open does
// not. For the rest, and for full rows, a search requests everything that a step needs at once.

// aheadStep is how much is read ahead at a time, so that the disk can serve others between the steps. The next step is requested
// before one is verified.
const aheadStep = 1 << 20

// aheadPatience is how long in total read-ahead pauses for searches of the file that wait for the disk, too.
const aheadPatience = 20 * time.Millisecond

// aheadLeft is the number of bytes that may still be read ahead for open files. More would displace other pages, and most
// of it is not needed soon.
var aheadLeft atomic.Int64

const leastAhead = 256 << 20

func init() { aheadLeft.Store(leastAhead) }

// ReadAheadOf limits the read-ahead of all open files together, by the machine's memory in bytes: to a quarter of it, and at least
// 256 MiB. Call it before any file is opened.
func ReadAheadOf(memory int64) { aheadLeft.Store(max(leastAhead, memory/4)) }

// takeAhead takes up to n bytes from aheadLeft, and returns how many.
func takeAhead(n int64) int64 {
	for {
		left := aheadLeft.Load()
		n = max(0, min(n, left))
		if aheadLeft.CompareAndSwap(left, left-n) {
			return n
		}
	}
}

// aheadOne lets one file after another be read ahead: disks read none faster when they read several.
var aheadOne = make(chan struct{}, 1)

// aheadUnderWay are the read-aheads that have started, or wait for their turn, and have not ended.
var aheadUnderWay underWay

// underWay counts work in progress.
type underWay struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when the count reaches 0; nil while it is 0
}

func (u *underWay) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n == 0 {
		u.none = make(chan struct{})
	}
	u.n++
}

func (u *underWay) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n--; u.n == 0 {
		close(u.none)
		u.none = nil
	}
}

// AwaitReadAhead waits until nothing is read ahead, of any file, at most until the context ends. It reports whether that is so.
func AwaitReadAhead(ctx context.Context) bool {
	aheadUnderWay.mu.Lock()
	none := aheadUnderWay.none
	aheadUnderWay.mu.Unlock()
	if none == nil {
		return true
	}
	select {
	case <-none:
		return true
	case <-ctx.Done():
		return false
	}
}

// ahead is the reading ahead of a file.
type ahead struct {
	mu      sync.Mutex // held while it is started or told to stop
	ended   bool
	end     chan struct{} // closed when the reading is to end; nil before it begins
	reading sync.WaitGroup
	taken   int64 // of aheadLeft

	waiting atomic.Int64 // searches that wait for the disk
	held    atomic.Bool  // all was in memory when it was looked after
	reads   atomic.Bool  // it has started, or waits for its turn, and has not ended
	asked   atomic.Bool  // all of it was asked for
	checked atomic.Bool  // and was found right
}

// stop ends the read-ahead, or keeps it from starting, waits for its end, and forgets its results.
func (a *ahead) stop() {
	a.mu.Lock()
	if a.end != nil && !a.ended {
		close(a.end)
	}
	a.ended = true
	a.mu.Unlock()
	a.reading.Wait()
	a.checked.Store(false)
}

// giveWay waits, at most so long, until no search waits for the disk. It returns the rest of the time.
func (a *ahead) giveWay(most time.Duration) time.Duration {
	const look = 200 * time.Microsecond
	for ; most > 0 && a.waiting.Load() > 0 && !a.stopped(); most -= look {
		time.Sleep(look)
	}
	return most
}

func (a *ahead) stopped() bool {
	select {
	case <-a.end:
		return true
	default:
		return false
	}
}

// ReadAhead reads and verifies what OpenQuick left, then what walks through the graphs of the file need, while searches run. Finally
// it reads the rest of a cold file. Callers that search the file call it. Repeated calls do nothing. Close stops it, and so does
// damage that Inspect finds.
func (r *Reader) ReadAhead() {
	graphs := slices.ContainsFunc(r.sections, func(s section) bool { return s.tag == tagGraph })
	a := &r.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || a.end != nil {
		return
	}
	cold := r.becomeCold()
	if !graphs && !r.late.Load() && !cold {
		return
	}
	a.end = make(chan struct{})
	a.reads.Store(graphs)
	aheadUnderWay.begin()
	a.reading.Go(func() {
		defer aheadUnderWay.end()
		defer a.reads.Store(false)
		if cold {
			defer r.file.SetCold(false)
		}
		select {
		case aheadOne <- struct{}{}:
			defer func() { <-aheadOne }()
		case <-a.end:
			return
		}
		// The file reports an unreadable page, and searches that meet damage report it.
		_ = mapped.Guard(func() error {
			if r.late.Load() && r.checkLate() {
				r.late.Store(false)
			}
			if graphs {
				r.readGraphs()
				a.reads.Store(false)
			}
			if cold {
				r.warm()
			}
			return nil
		})
	})
}

// readGraphs reads and verifies what walks through the graphs need, up to the bytes taken from aheadLeft.
func (r *Reader) readGraphs() {
	a := &r.ahead
	parts, total := r.walked()
	a.taken = takeAhead(total)
	parts = firstOf(parts, a.taken)
	whole, right := a.taken == total, true
	var before section // the step that was asked for last, and is to be checked
	check := func() { right = right && r.blocks.checkAhead(before.offset, before.length) }
	patience := aheadPatience
	if r.steps(parts, func(at, n int64) bool {
		patience = a.giveWay(patience)
		r.file.Advise(at, n, mapped.WillNeed)
		if before.length > 0 {
			check()
		}
		before.offset, before.length = at, n
		return true
	}) {
		a.asked.Store(whole)
		check()
		a.checked.Store(right && whole)
	}
}

// firstOf returns the first n bytes of some stretches.
func firstOf(parts []section, n int64) []section {
	for i := range parts {
		if parts[i].length >= n {
			parts[i].length = n
			return parts[:i+1]
		}
		n -= parts[i].length
	}
	return parts
}

// steps calls do with all of some stretches of the file, a step at a time, until it returns false or the reading is to end. It
// reports whether that was all.
func (r *Reader) steps(parts []section, do func(at, n int64) bool) bool {
	for _, s := range parts {
		for at := int64(0); at < s.length; at += aheadStep {
			if r.ahead.stopped() || !do(s.offset+at, min(aheadStep, s.length-at)) {
				return false
			}
		}
	}
	return true
}

// checkAhead reports whether a range is sound, and records the verified blocks. It does not report damage, because callers that need
// the block do so. It skips files of format 1, which would be read by whole sections.
func (b *blocks) checkAhead(at, n int64) bool {
	right := b.sums != nil
	for i := int(at >> blockBits); right && i <= int((at+n-1)>>blockBits); i++ {
		if !b.isRight(i) {
			if right = b.compare(i, anyByte) == nil; right {
				b.markRight(i)
			}
		}
	}
	return right
}

// walked returns the parts of the file that walks read, except full rows, and their total length.
func (r *Reader) walked() (parts []section, total int64) {
	add := func(s section) { parts, total = append(parts, s), total+s.length }
	for _, graph := range r.sections {
		if graph.tag != tagGraph {
			continue
		}
		add(graph)
		for _, s := range r.sections {
			if s.aux != graph.aux {
				continue
			}
			switch s.tag {
			case tagSigns, tagWideSigns, tagOldSigns, tagCodes, tagVectorSets:
				add(s)
			case tagVectors:
				add(r.besideRows(s))
			}
		}
	}
	// The first search asks for the short ones first, and for signs before links and codes.
	slices.SortStableFunc(parts, func(a, b section) int { return cmp.Compare(a.length, b.length) })
	return parts, total
}

// besideRows returns the part of a vector section after the full rows, or all of it for a binary embedder, whose rows are codes. It
// does not verify the section, because only read-ahead depends on it.
func (r *Reader) besideRows(s section) section {
	head := r.data[s.offset : s.offset+vectorHeadBytes] // openVectors has checked its length
	shape := EmbedderShape{Dimensions: int(binary.LittleEndian.Uint32(head)), Half: binary.LittleEndian.Uint32(head[4:])&vectorsHalf != 0}
	flags, vectors := binary.LittleEndian.Uint32(head[4:]), int64(binary.LittleEndian.Uint32(head[12:]))
	if width := int64(max(shape.rowBytes(), 1)); flags&vectorsBinary == 0 && vectors <= (s.length-vectorHeadBytes-1)/width {
		rows := vectorHeadBytes + vectors*width
		s.offset, s.length = s.offset+rows, s.length-rows
	}
	return s
}

// samples is the number of pages that are checked before a file counts as in memory.
const samples = 32

// isCold reports whether a vector search would have to wait for the disk, because read-ahead has not finished.
func (r *Reader) isCold() bool {
	if a := &r.ahead; !a.reads.Load() || a.held.Load() || r.blocks.sound.Load() {
		return false
	}
	for _, s := range r.sections {
		if s.tag != tagCodes && s.tag != tagGraph {
			continue
		}
		for i := range int64(samples) {
			if !r.holds(s.offset + s.length*(2*i+1)/(2*samples)) {
				return true
			}
		}
	}
	r.ahead.held.Store(true)
	return false
}

// askForHeads requests the data of the sections of an embedder that the first search reads, and then the signs, which are long.
func (r *Reader) askForHeads(e EmbedderID) {
	ask := func(s section) { r.blocks.fetchAll(r.data[s.offset : s.offset+s.length]) }
	var rows, signs []section
	for _, s := range r.sections {
		if s.aux != uint32(e) {
			continue
		}
		switch s.tag {
		case tagVectors, tagCodes:
			r.blocks.fetchAll(r.data[s.offset : s.offset+min(s.length, vectorHeadBytes)])
			if s.tag == tagVectors {
				rows = append(rows, s)
			}
		case tagVectorSets:
			ask(s)
		case tagSigns, tagWideSigns, tagOldSigns:
			signs = append(signs, s)
		}
	}
	for _, s := range rows {
		ask(r.besideRows(s))
	}
	for _, s := range signs {
		ask(s)
	}
}

// fetch requests the blocks of rows of a table, of width bytes each, that are not verified yet.
func (b *blocks) fetch(table []byte, width int, ids []uint32) {
	if b.file == nil {
		return
	}
	at := b.offset(table)
	from, to := 0, 0 // blocks that are asked for next
	for _, id := range ids {
		i, end := b.missing(at+int(id)*width, width)
		switch {
		case i == end:
		case from <= i && i <= to:
			to = max(to, end)
		default:
			b.ask(from, to)
			from, to = i, end
		}
	}
	b.ask(from, to)
}

// waits reports whether reading rows of a table, of width bytes each, may wait for the disk: one of them is not verified yet, and not
// in memory.
func (r *Reader) waits(table []byte, width int, ids []uint32) bool {
	at := r.blocks.offset(table)
	for _, id := range ids {
		if i, end := r.blocks.missing(at+int(id)*width, width); i < end && !r.holds(int64(i)<<blockBits) {
			return true
		}
	}
	return false
}

// fetchAll is fetch of a stretch of the file.
func (b *blocks) fetchAll(p []byte) {
	if b.file != nil && len(p) > 0 {
		b.ask(b.missing(b.offset(p), len(p)))
	}
}

// missing returns the first block of a range that is not verified, and the one after the last such block. They are equal if there is
// none.
func (b *blocks) missing(at, n int) (i, end int) {
	i, end = at>>blockBits, (at+n-1)>>blockBits+1
	for i < end && b.isRight(i) {
		i++
	}
	for i < end && b.isRight(end-1) {
		end--
	}
	return i, end
}

func (b *blocks) ask(from, to int) {
	if from < to {
		b.file.Advise(int64(from)<<blockBits, int64(to-from)<<blockBits, mapped.WillNeed)
	}
}
