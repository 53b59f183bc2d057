package segment

import (
	"context"

	"svc/internal/invariant"
	"svc/segment/fst"
)

// wordWork is the cost of a word without its rows, in rows.
const wordWork = 16

// loadedWords is how many words are loaded at once: what they load fits the first cache of the processor.
const loadedWords = 32

// buildWords writes postings and dictionary, and leaves the input of the prefixes in b.
func buildWords(_ context.Context, b *Builder, f *fileWriter) error {
	if len(b.runs.runs) > 0 {
		return buildWordsOfRuns(b, f)
	}
	order := b.words.sorted(f.worked)
	d := newDictionaryWriter(f, len(order), newFrequentWords(len(b.docIDs), true))
	d.filter = fst.NewFilterWriter(len(order))
	var counter prefixCounter
	lists := new(sequentialLists)
	var buffers listBuffers
	var fields []fieldRows
	var few [entryWord]byte
	loaded := 0
	for i := 0; i < len(order); {
		if i >= loaded {
			loaded = min(i+loadedWords, len(order))
			b.words.load(order[i:loaded])
		}
		first := order[i] // as it is before its number becomes an address
		word := b.words.word(&first, &few)
		buffers.rows, buffers.positions, fields = buffers.rows[:0], buffers.positions[:0], fields[:0]
		for ; i < len(order) && b.words.compareWords(&order[i], &first) == 0; i++ {
			fr := b.words.field(order[i], &buffers)
			fields = append(fields, fr)
			if b.options.Prefixes {
				order[i].number = lists.add(fr, buffers.list)
			}
			f.worked(wordWork + len(fr.rows))
		}
		counter.word(word)
		if err := d.add(word, fields); err != nil {
			return err
		}
	}
	if err := d.finish(); err != nil {
		return err
	}
	b.order, b.prefixes, b.lists, b.frequent = order, counter.finish(), lists, d.frequent
	return nil
}

// dictionaryWriter writes postings to their section as words arrive in byte order, and the dictionary after them. Until then the FST
// is in memory. It is small compared with the postings.
type dictionaryWriter struct {
	f    *fileWriter
	post postingWriter
	fst  *fst.Builder

	frequent *frequentWords
	filter   *fst.FilterWriter // nil: finish makes the filter, once it is known how many words there are
	words    int
	before   []byte // the word before, under invariant.Enabled
}

// newDictionaryWriter opens the postings section for up to words words, and passes them to frequent.
func newDictionaryWriter(f *fileWriter, words int, frequent *frequentWords) *dictionaryWriter {
	f.begin(tagPostings, 0)
	return &dictionaryWriter{f: f, post: postingWriter{w: f}, fst: fst.NewBuilder(words), frequent: frequent}
}

func (d *dictionaryWriter) add(word []byte, fields []fieldRows) error {
	if invariant.Enabled {
		checkWord(d.before, word, fields)
		d.before = append(d.before[:0], word...)
	}
	if d.filter != nil {
		d.filter.Add(word)
	}
	d.words++
	offset := d.post.write(fields)
	d.frequent.add(word, fields, offset, d.post.buf, int(offset%postingAlign))
	if err := d.fst.Add(word, offset); err != nil {
		return d.fail(err)
	}
	return nil
}

// fail ends the writing for an error of the dictionary.
func (d *dictionaryWriter) fail(err error) error {
	d.f.fail(err)
	return d.f.err
}

func (d *dictionaryWriter) finish() error {
	d.f.end()
	dictionary, err := d.fst.Finish()
	if err != nil {
		return d.fail(err)
	}
	d.f.add(tagTerms, 0, dictionary)
	if d.words < filteredWords || d.f.err != nil {
		return nil
	}
	if d.filter == nil {
		if err := d.filterOf(dictionary); err != nil {
			return err
		}
	}
	d.f.add(tagTermFilter, 0, d.filter.Filter())
	return nil
}

// filterOf makes the filter of the words that were written.
func (d *dictionaryWriter) filterOf(dictionary []byte) error {
	written, err := fst.Open(dictionary)
	if err != nil {
		return d.fail(err)
	}
	d.filter = fst.NewFilterWriter(d.words)
	var walk fst.Walk
	walk.Start(&written, nil, nil, nil)
	for walk.Next() {
		if d.f.worked(1); d.f.err != nil {
			return d.f.err
		}
		d.filter.Add(walk.Word())
	}
	if err := walk.Err(); err != nil {
		return d.fail(err)
	}
	return nil
}

// filteredWords is the number of words from which a dictionary has a filter. A smaller one stays in the processor's caches. (A
// variable, so that tests can lower it.)
var filteredWords = 1000
