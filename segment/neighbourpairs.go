package segment

import (
	"encoding/binary"
	"slices"

	"svc/internal/mapped"
)

// spooled holds bytes that are appended. If they are many, they are in a temporary file.
type spooled struct {
	place func() (*mapped.Spool, error)
	spool *mapped.Spool // nil: all are in tail
	tail  []byte
	size  int // of all
}

// spoolTail is the maximum number of bytes that stay in memory. (A variable, so that tests can lower it.)
var spoolTail = 1 << 20

func (s *spooled) write(p []byte) error {
	s.size += len(p)
	if s.tail = append(s.tail, p...); len(s.tail) < spoolTail {
		return nil
	}
	return s.spill()
}

// spill moves the tail to the temporary file, which it makes on first use.
func (s *spooled) spill() (err error) {
	if s.spool == nil {
		if s.spool, err = s.place(); err != nil {
			return err
		}
	}
	_, err = s.spool.Write(s.tail)
	s.tail = s.tail[:0]
	return err
}

// bytes returns all that was written, until the next call of write.
func (s *spooled) bytes() ([]byte, error) {
	if s.spool == nil {
		return s.tail, nil
	}
	if err := s.spill(); err != nil {
		return nil, err
	}
	return s.spool.Bytes()
}

// giveBack lets the pages of what bytes returned go from memory.
func (s *spooled) giveBack() {
	if s.spool != nil {
		s.spool.GiveBack()
	}
}

// empty starts again.
func (s *spooled) empty() error {
	err := s.spool.Close()
	s.spool, s.tail, s.size = nil, s.tail[:0], 0
	return err
}

// pairRows gathers the rows of pairs of words, in any order, and hands them out by pair. A row of a pair is a number: the first word from
// bit 42 on, the second from bit 32 on, the row. When there are many, they are brought into the order of pairs and written as a run:
//
//	{ uvarint pair − the one before, uvarint count, count × varint row − the one before } by pair
//
// The row before the first of a pair is the first one that the run got.
type pairRows struct {
	step           func(n int) error // called as numbers are written, with how many
	numbers, spare []uint64
	written        spooled
	runs           []pairRun
	code           []byte
}

// pairRun is a run in the written bytes, which begins where the one before ends.
type pairRun struct {
	end  int // in the written data
	base uint32
}

// pairNumbers is how many numbers a run has. (A variable, so that tests can lower it.)
var pairNumbers = 256 << 10

// pairDigit is how many bits of a pair each pass of the sort uses: those of one word.
const pairDigit = 10

// add notes that in a row the word number second directly follows first. Numbers of words are below 1 <<
// pairDigit.
func (p *pairRows) add(first, second int, row uint32) error {
	if p.numbers == nil {
		p.numbers = make([]uint64, 0, pairNumbers)
	}
	p.numbers = append(p.numbers, uint64(first<<pairDigit|second)<<32|uint64(row))
	if len(p.numbers) < pairNumbers {
		return nil
	}
	return p.writeRun()
}

// sort brings the numbers into the order of pairs. Rows of a pair stay in their order.
func (p *pairRows) sort() {
	p.spare = slices.Grow(p.spare[:0], len(p.numbers))[:len(p.numbers)]
	for shift := 32; shift < 32+2*pairDigit; shift += pairDigit {
		var ends [1 << pairDigit]int
		for _, n := range p.numbers {
			ends[n>>shift&(1<<pairDigit-1)]++
		}
		at := 0
		for i, n := range ends {
			ends[i] = at
			at += n
		}
		for _, n := range p.numbers {
			end := &ends[n>>shift&(1<<pairDigit-1)]
			p.spare[*end] = n
			*end++
		}
		p.numbers, p.spare = p.spare, p.numbers
	}
}

// writeRun sorts the collected rows and appends them as one run. Rows with several occurrences of the pair are written once.
func (p *pairRows) writeRun() error {
	if len(p.numbers) == 0 {
		return nil
	}
	base := uint32(p.numbers[0])
	p.sort()
	before, unasked := uint64(0), 0
	code := p.code[:0]
	for rest := p.numbers; len(rest) > 0; {
		pair := rest[0] >> 32
		n, count := 1, 1 // a row may come several times
		for ; n < len(rest) && rest[n]>>32 == pair; n++ {
			if rest[n] != rest[n-1] {
				count++
			}
		}
		code = binary.AppendUvarint(code, pair-before)
		code = binary.AppendUvarint(code, uint64(count))
		last := base
		for i, number := range rest[:n] {
			if i > 0 && number == rest[i-1] {
				continue
			}
			code = binary.AppendVarint(code, int64(uint32(number))-int64(last))
			last = uint32(number)
		}
		before, rest = pair, rest[n:]
		if unasked += n; unasked >= askEvery {
			if err := p.step(unasked); err != nil {
				return err
			}
			unasked = 0
		}
	}
	p.code, p.numbers = code, p.numbers[:0]
	if err := p.written.write(code); err != nil {
		return err
	}
	p.runs = append(p.runs, pairRun{end: p.written.size, base: base})
	return nil
}

// runReader goes through a run by pair.
type runReader struct {
	rest  []byte
	base  uint32
	place uint64 // the current pair in the bits from 32 on, and the number of the run
	count uint64 // of its rows
}

// next goes to the next pair.
func (r *runReader) next() bool {
	if len(r.rest) == 0 {
		return false
	}
	r.place += r.uvarint() << 32
	r.count = r.uvarint()
	return true
}

func (r *runReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.rest = r.rest[n:]
	return v
}

// appendRows appends the rows of the current pair.
func (r *runReader) appendRows(dst []uint32) []uint32 {
	row := int64(r.base)
	for ; r.count > 0; r.count-- {
		d, n := binary.Varint(r.rest)
		r.rest = r.rest[n:]
		row += d
		dst = append(dst, uint32(row))
	}
	return dst
}

// each calls f for each pair with rows, in order, with these, and forgets them.
func (p *pairRows) each(f func(first, second int, rows []uint32) error) error {
	if err := p.writeRun(); err != nil {
		return err
	}
	all, err := p.written.bytes()
	if err != nil {
		return err
	}
	heap := make([]runReader, 0, len(p.runs)) // by place
	from := 0
	for i, run := range p.runs {
		r := runReader{rest: all[from:run.end], base: run.base, place: uint64(i)}
		r.next()
		heap = append(heap, r)
		from = run.end
	}
	slices.SortFunc(heap, func(a, b runReader) int { return int(a.place>>32) - int(b.place>>32) })
	var rows []uint32
	var union rowUnion
	for read := 0; len(heap) > 0; {
		pair := heap[0].place >> 32
		rows = rows[:0]
		for len(heap) > 0 && heap[0].place>>32 == pair {
			before := len(heap[0].rest)
			rows = heap[0].appendRows(rows)
			read += before - len(heap[0].rest)
			if !heap[0].next() {
				heap[0] = heap[len(heap)-1]
				heap = heap[:len(heap)-1]
			}
			siftDown(heap)
		}
		all := union.ascending(rows)
		if err := f(int(pair>>pairDigit), int(pair&(1<<pairDigit-1)), all); err != nil {
			return err
		}
		if read >= residentBytes {
			read = 0
			p.written.giveBack()
		}
	}
	p.runs = p.runs[:0]
	return p.written.empty()
}

// siftDown restores the order of a heap whose first element has changed.
func siftDown(heap []runReader) {
	for i := 0; ; {
		least := 2*i + 1
		if least+1 < len(heap) && heap[least+1].place < heap[least].place {
			least++
		}
		if least >= len(heap) || heap[i].place <= heap[least].place {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}
