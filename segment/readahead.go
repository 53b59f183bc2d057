package segment

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"svc/internal/mapped"
)

// A walk through a graph reads about a thousand pages here and there, and which ones shows only as it goes on. Where the file
// is not in memory, it would wait for the disk that often. So links and codes are asked for when a file is opened, as far as
// they are not too many; of those that are not in memory yet, and of full rows, what a step needs is asked for at once.

const (
	// aheadBytes is how much of the links and codes of a file is asked for ahead: more would push out of memory what else is
	// used, and most of it is not needed soon.
	aheadBytes = 256 << 20

	// aheadStep is how much is asked for at a time: the disk has others to serve between.
	aheadStep = 2 << 20
)

// aheadOne lets one file after another be read ahead: disks read none faster when they read several.
var aheadOne = make(chan struct{}, 1)

// ahead is the reading ahead of a file.
type ahead struct {
	reading sync.WaitGroup
	closing chan struct{}
	asked   atomic.Bool // for all links and codes
}

// stop ends the reading, and waits until it has.
func (a *ahead) stop() {
	if a.closing != nil {
		close(a.closing)
		a.reading.Wait()
	}
}

// ReadAhead has the system read what walks through the graphs of the file need, if that is not in memory, while searches can
// begin. It is for who searches the file, and to be called once, before the Reader is shared; Close ends it.
func (r *Reader) ReadAhead() {
	if !slices.ContainsFunc(r.sections, func(s section) bool { return s.tag == tagGraph }) {
		return
	}
	a := &r.ahead
	a.closing = make(chan struct{})
	a.reading.Go(func() {
		select {
		case aheadOne <- struct{}{}:
			defer func() { <-aheadOne }()
		case <-a.closing:
			return
		}
		var parts []section
		if err := mapped.Guard(func() error { parts = r.walked(); return nil }); err != nil || parts == nil {
			return // who searches meets the page that cannot be read
		}
		for _, s := range parts {
			for at := int64(0); at < s.length; at += aheadStep {
				select {
				case <-a.closing:
					return
				default:
				}
				r.file.Advise(s.offset+at, min(aheadStep, s.length-at), mapped.WillNeed)
			}
		}
		a.asked.Store(true)
	})
}

// walked returns the stretches of the file that walks read, but for full rows; nothing when they are too long.
func (r *Reader) walked() []section {
	var parts []section
	total := int64(0)
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
			case tagCodes, tagVectorSets:
				add(s)
			case tagVectors:
				add(r.besideRows(s))
			}
		}
	}
	if total > aheadBytes {
		return nil
	}
	// The first search asks for the short ones first, and for codes after links.
	slices.SortStableFunc(parts, func(a, b section) int { return cmp.Compare(a.length, b.length) })
	return parts
}

// besideRows returns what stands behind the full rows of a section of vectors; all of it of a binary embedder, where rows are codes.
// It believes what the section says, which may be damaged: nothing but the reading ahead depends on it.
func (r *Reader) besideRows(s section) section {
	head := r.data[s.offset : s.offset+vectorHeadBytes] // openVectors saw that it is there
	shape := EmbedderShape{Dimensions: int(binary.LittleEndian.Uint32(head))}
	flags, vectors := binary.LittleEndian.Uint32(head[4:]), int64(binary.LittleEndian.Uint32(head[12:]))
	if width := int64(max(shape.rowBytes(), 1)); flags&vectorsBinary == 0 && vectors <= (s.length-vectorHeadBytes-1)/width {
		rows := vectorHeadBytes + vectors*width
		s.offset, s.length = s.offset+rows, s.length-rows
	}
	return s
}

// fetch asks for the blocks of some rows of a table, each of so many bytes, that were not found right so far.
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

// fetchAll is fetch of a stretch of the file.
func (b *blocks) fetchAll(p []byte) {
	if b.file != nil && len(p) > 0 {
		b.ask(b.missing(b.offset(p), len(p)))
	}
}

// missing returns the first block of a stretch that was not found right, and the one after the last such; equal when there is none.
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
