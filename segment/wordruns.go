package segment

import (
	"encoding/binary"
	"errors"
	"fmt"

	"svc/internal/mapped"
)

// wordRuns are words that a builder has moved from memory to a temporary file, each time as a run that is sorted by word and field. The
// rows of a run are above those of the runs before it, so merging the lists of a word means laying them end to end. A run is
//
//	{ uvarint bytes that the word shares with the one before, uvarint length of its other bytes, these, uvarint field, list }
//
// and a list is
//
//	uvarint first row, uvarint last row − first row, uvarint rows − 1, uvarint length of the other rows, uvarint length of the positions,
//	other rows, as uvarint distances − 1, positions
type wordRuns struct {
	spool   *mapped.Spool // nil until there is a run
	runs    []wordRun
	entries int  // lists in all runs
	failed  bool // the file did not take a run
}

// wordRun is where a run is in the file.
type wordRun struct{ from, to int64 }

const (
	// maxWordRuns bounds the runs of a segment. While it is written, the memory for its prefixes grows with its words: it took 80 MB for
	// three runs of 500,000 package descriptions, instead of the 64 MB of the words.
	maxWordRuns = 4

	// runEntryBytes is how many bytes of memory a list of a run takes while the segment is written: a wordOrder and a part of runLists.
	runEntryBytes = 16 + 8
)

// Spill moves the words of all rows to a temporary file and keeps their rows, if that makes enough room: if the rest takes at most three
// quarters of most bytes. Otherwise, and if the file cannot be written, it returns false, and the builder must be written. It fails if
// Throttle does.
func (b *Builder) Spill(most int64) (bool, error) {
	b.words.settle()
	rest := b.MemoryBytes() - b.words.memoryBytes() + int64(b.words.words.count)*runEntryBytes
	if b.options.Spool == nil || b.runs.failed || len(b.runs.runs) == maxWordRuns || rest > most/4*3 {
		return false, nil
	}
	err := b.spillWords()
	if errors.Is(err, errRunFile) {
		b.runs.failed = true
		return false, nil
	}
	return err == nil, err
}

var errRunFile = errors.New("cannot write a run of words")

// spillWords moves the words to another run. After an error they are still in memory.
func (b *Builder) spillWords() error {
	b.words.settle()
	if b.words.words.count == 0 {
		return nil
	}
	if n := b.words.largest(); n > int64(mostOffset) {
		return fmt.Errorf("%d bytes of words in memory are more than a segment holds", n)
	}
	if b.runs.spool == nil {
		spool, err := b.options.Spool()
		if err != nil {
			return errors.Join(errRunFile, err)
		}
		b.runs.spool = spool
	}
	w := runWriter{spool: b.runs.spool, throttle: b.options.Throttle}
	from := w.spool.Len()
	if err := w.write(&b.words); err != nil {
		return err
	}
	b.runs.runs = append(b.runs.runs, wordRun{from, w.spool.Len()})
	b.runs.entries += b.words.words.count
	b.words = inverter{}
	return nil
}

// close removes the file.
func (r *wordRuns) close() error { return r.spool.Close() }

func (r *wordRuns) memoryBytes() int64 { return int64(r.entries) * runEntryBytes }

// runWriter writes a run.
type runWriter struct {
	spool    *mapped.Spool
	throttle func(bytes int) error
	unasked  int
	buf      []byte
	last     []byte // word
	err      error
}

// worked lets throttle slow down the work, as that of fileWriter does.
func (w *runWriter) worked(n int) {
	if w.throttle == nil || w.err != nil {
		return
	}
	if w.unasked += n; w.unasked >= askEvery {
		w.unasked, w.err = 0, w.throttle(0)
	}
}

// write writes all words.
func (w *runWriter) write(v *inverter) error {
	order := v.sorted(w.worked)
	w.buf = make([]byte, 0, writeStep)
	var buffers listBuffers
	var few [entryWord]byte
	loaded := 0
	for i := range order {
		if i == loaded {
			loaded = min(i+loadedWords, len(order))
			v.load(order[i:loaded])
		}
		buffers.rows, buffers.positions = buffers.rows[:0], buffers.positions[:0]
		fr := v.field(order[i], &buffers)
		w.add(v.word(&order[i], &few), fr, buffers.list)
		if w.worked(wordWork + len(fr.rows)); w.err != nil {
			return w.err
		}
	}
	w.flush()
	return w.err
}

// add writes a list.
func (w *runWriter) add(word []byte, fr fieldRows, list []byte) {
	same := 0
	for same < min(len(word), len(w.last)) && word[same] == w.last[same] {
		same++
	}
	w.last = append(w.last[:same], word[same:]...)
	first, last := fr.rows[0], fr.rows[len(fr.rows)-1]
	b := binary.AppendUvarint(w.buf, uint64(same))
	b = binary.AppendUvarint(b, uint64(len(word)-same))
	b = append(b, word[same:]...)
	b = binary.AppendUvarint(b, uint64(fr.id))
	b = binary.AppendUvarint(b, uint64(first))
	b = binary.AppendUvarint(b, uint64(last-first))
	b = binary.AppendUvarint(b, uint64(len(fr.rows)-1))
	b = binary.AppendUvarint(b, uint64(len(list)))
	b = binary.AppendUvarint(b, uint64(len(fr.positions)))
	w.buf = append(append(b, list...), fr.positions...)
	if len(w.buf) >= writeStep {
		w.flush()
	}
}

// flush writes what is buffered.
func (w *runWriter) flush() {
	if w.throttle != nil && w.err == nil {
		w.err = w.throttle(len(w.buf))
	}
	if w.err != nil {
		return
	}
	if _, err := w.spool.Write(w.buf); err != nil {
		w.err = errors.Join(errRunFile, err)
	}
	w.buf = w.buf[:0]
}

// runList is a list of a run.
type runList struct {
	first, last     uint32
	rows            int
	list, positions []byte
}

// readList reads the list at an offset. It returns where the list ends.
func readList(all []byte, at int) (l runList, end int) {
	var numbers [5]uint64
	for i := range numbers {
		v, n := binary.Uvarint(all[at:])
		numbers[i] = v
		at += n
	}
	l.first = uint32(numbers[0])
	l.last = l.first + uint32(numbers[1])
	l.rows = 1 + int(numbers[2])
	positions := at + int(numbers[3])
	end = positions + int(numbers[4])
	l.list, l.positions = all[at:positions:positions], all[positions:end:end]
	return l, end
}

// appendRows appends the rows.
func (l *runList) appendRows(dst []uint32) []uint32 {
	row := l.first
	dst = append(dst, row)
	for i := 0; i < len(l.list); {
		d := uint32(0)
		for shift := 0; ; shift += 7 {
			c := l.list[i]
			i++
			if d |= uint32(c&0x7f) << shift; c < 0x80 {
				break
			}
		}
		row += d + 1
		dst = append(dst, row)
	}
	return dst
}

// runLists has the lists of all words, as sequentialLists does. It leaves them in the file.
type runLists struct {
	spool *mapped.Spool
	all   []byte
	parts []uint64 // offsets of the lists in runs; the last one of a word and field has lastPart
	read  int      // bytes since pages were given back

	lists, positions []byte // of those with several parts
}

const lastPart = 1 << 63

// list returns the first row of a list, the distances of the others and the positions, valid until forget. address is the number of its
// first part.
func (r *runLists) list(address uint32) (first uint32, list, positions []byte) {
	part := r.parts[address]
	l, end := readList(r.all, int(part&^lastPart))
	r.read += end - int(part&^lastPart)
	if part&lastPart != 0 {
		return l.first, l.list, l.positions
	}
	first = l.first
	fromList, fromPositions := len(r.lists), len(r.positions)
	for {
		r.lists = append(r.lists, l.list...)
		r.positions = append(r.positions, l.positions...)
		if part&lastPart != 0 {
			return first, r.lists[fromList:], r.positions[fromPositions:]
		}
		address++
		part = r.parts[address]
		last := l.last
		l, end = readList(r.all, int(part&^lastPart))
		r.read += end - int(part&^lastPart)
		r.lists = binary.AppendUvarint(r.lists, uint64(l.first-last-1))
	}
}

// forget releases what list returned.
func (r *runLists) forget() {
	r.lists, r.positions = r.lists[:0], r.positions[:0]
	if r.read >= residentBytes {
		r.read = 0
		r.spool.GiveBack()
	}
}
