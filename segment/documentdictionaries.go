package segment

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/s2"
)

// DocumentDictionaries is a set of dictionaries that several segments share. A merge of these segments copies compressed documents. If
// the segments had more dictionaries than one segment may have, it would have to compress documents again. The set may be used by
// several goroutines.
type DocumentDictionaries struct {
	mu   sync.Mutex
	from *Reader // not yet asked for its own; nil: it was
	all  []*encodingDictionary
	full bool // none is added any more
}

// NewDocumentDictionaries returns a set with the dictionaries of a segment, or an empty one for nil. The set reads them from the
// segment when they are first needed, so the segment must stay open as long as the set is used.
func NewDocumentDictionaries(from *Reader) *DocumentDictionaries {
	return &DocumentDictionaries{from: from}
}

const (
	// dictionaryTrials is how many documents are compressed to compare two dictionaries.
	dictionaryTrials = 64
	// dictionarySlack: documents may be longer by 1/dictionarySlack with a dictionary of the set than with their own, which is made
	// from similar documents. With too many of them, a merge would compress documents against yet another one.
	dictionarySlack = 8
)

// choose returns the dictionary to compress some documents against. While the set has room, this is own, and choose adds it to the set.
// Later it is the best one of the set, unless own is clearly better.
func (s *DocumentDictionaries) choose(own *encodingDictionary, docs [][]byte) *encodingDictionary {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	if !s.full && len(s.all) < maxDictionaries {
		s.all = append(s.all, own)
		return own
	}
	var trials [][]byte
	content, step := own.Bytes(), max(1, len(docs)/dictionaryTrials)
	for i := step / 2; i < len(docs); i += step {
		if len(docs[i]) < largeDocument && !bytes.Contains(content, docs[i][:min(len(docs[i]), sampleDocument)]) { // nothing beats a copy
			trials = append(trials, docs[i])
		}
	}
	best, least := own, compressedBytes(own, trials)
	least += least / dictionarySlack
	for _, d := range s.all {
		if n := compressedBytes(d, trials); n <= least {
			best, least = d, n
		}
	}
	return best
}

// load asks the segment that the set begins with.
func (s *DocumentDictionaries) load() {
	if s.from == nil {
		return
	}
	dicts, _ := s.from.docs.dictionaries() // readers of the documents report damage
	for _, d := range dicts {
		s.all = append(s.all, newEncodingDictionary(d.Dict))
	}
	s.from = nil
}

// Share adds a dictionary made of documents, if the set has room for it and there are enough documents. After that the set does not
// change, so that what builders choose does not depend on which of them is first.
func (s *DocumentDictionaries) Share(docs [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	s.full = true
	size := 0
	for _, doc := range docs {
		size += min(len(doc), sampleDocument)
	}
	if len(s.all) >= maxDictionaries || size < minSampleBytes || len(docs) < minSampleDocuments {
		return
	}
	if d := makeDictionary(docs, min(size/dictionaryShare, s2.MaxDictSize)); d != nil {
		s.all = append(s.all, d)
	}
}

// compressedBytes returns how long some documents are when they are compressed against a dictionary.
func compressedBytes(d *encodingDictionary, docs [][]byte) (n int) {
	w := documentWriter{dict: d}
	for _, doc := range docs {
		_, body := w.compress(doc)
		n += len(body)
	}
	return n
}
