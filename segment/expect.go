package segment

import (
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/mapped"
	"svc/simd"
)

// Callers announce several lookups before they do them. If each page is read separately, the system then reads their pages together.

// ExpectDocuments requests the documents of some rows, without waiting for them. Unless PageByPage, it loads their first
// prefetchedDocument bytes into the processor's caches, and what tells whether they are cached: each document is in another page, so the
// first lines of each would be cache misses. If there are many, it loads the dictionaries, too.
func (r *Reader) ExpectDocuments(rows []Row) {
	if mapped.PageByPage() {
		r.requestDocuments(rows, r.blocks.request)
		return
	}
	documents.expect(r.docs.number, rows)
	r.docs.expectDictionaries(len(rows))
	r.requestDocuments(rows, func(p []byte) { simd.Prefetch(p[:min(len(p), prefetchedDocument)]) })
}

// prefetchedDocument is small enough for the documents of a page to fit into the second cache of a processor with what else is read there.
const prefetchedDocument = 1 << 10

// expectDictionaries loads the dictionaries into the processor's caches if so many documents may read most of their lines. It reports
// whether it did. A search before may have displaced them.
func (r *documentReader) expectDictionaries(documents int) bool {
	dicts, err := r.dictionaries()
	size := 0
	for _, d := range dicts {
		size += len(d.content)
	}
	if err != nil || size == 0 || size > documents*dictionaryRead { // readers of the documents report an error
		return false
	}
	for _, d := range dicts {
		simd.Prefetch(d.content)
	}
	return true
}

// dictionaryRead is how many bytes of dictionaries a document reads: 62 cache lines for a description of 1,260 bytes.
const dictionaryRead = 4 << 10

// ExpectIDs asks for the DocIDs of some rows, which ascend. It does nothing unless PageByPage.
func (r *Reader) ExpectIDs(rows []uint32) { r.blocks.gatherItems(r.docIDs, 4, rows) }

// ExpectWordCounts asks for the numbers of words that a field has in some rows, which ascend. It does nothing unless PageByPage.
func (r *Reader) ExpectWordCounts(f FieldID, rows []uint32) {
	if !mapped.PageByPage() {
		return
	}
	if c, ok := r.allWordCounts()[f]; ok && c.rows == nil {
		r.blocks.gatherItems(c.counts, 1, rows)
	}
}

// ExpectWord requests the beginnings of the postings of a word, of the words that it splits into, and if prefix is true, of the words
// that begin with it. Callers that look up several words call it for all of them first. It does nothing unless PageByPage.
func (r *Reader) ExpectWord(word string, prefix bool) {
	if !mapped.PageByPage() {
		return
	}
	r.expectTerm(word)
	if offset, ok := r.prefixOffset([]byte(word)); ok && prefix {
		r.expectPosting(r.prefixPostings, offset)
	}
	c, read := r.dictionary().Cursor(), 0
	for at := range word {
		for ; read < at; read++ {
			if !c.Next(word[read]) {
				return
			}
		}
		if left, ok := c.Value(); ok && at > 0 && r.expectTerm(word[at:]) {
			r.expectPosting(r.postings, left)
		}
	}
}

// expectTerm requests the beginning of the posting of a word, and reports whether there is one.
func (r *Reader) expectTerm(word string) bool {
	offset, ok, err := r.dictionary().Get([]byte(word))
	if ok = ok && err == nil; ok {
		r.expectPosting(r.postings, offset)
	}
	return ok
}

func (r *Reader) expectPosting(section []byte, offset uint64) {
	if offset < uint64(len(section)) {
		r.blocks.request(section[offset:min(offset+postingHead, uint64(len(section)))])
	}
}

// postingHead is how many bytes of a posting are requested before it is read. Most postings are shorter.
const postingHead = 256

// gatherItems requests the pages of rows of a table, of width bytes each. The rows ascend.
func (b *blocks) gatherItems(table []byte, width int, rows []uint32) {
	if len(rows) >= 2 && b.file != nil && len(table) > 0 && mapped.PageByPage() {
		eachItems(b.offset(table), len(table)/width, width, rows, b.ask)
	}
}

// eachItems calls ask with the blocks from … to − 1 that contain the given rows of a table. The table has n rows of width bytes and
// begins at offset at. Blocks that are close together are requested together.
func eachItems(at, n, width int, rows []uint32, ask func(from, to int)) {
	from, to := 0, 0 // blocks that are asked for next
	for _, row := range rows {
		if int(row) >= n {
			break
		}
		i := at + int(row)*width
		first, end := i>>blockBits, (i+width-1)>>blockBits+1
		if to > 0 && first > to+joinedBlocks {
			ask(from, to)
			to = 0
		}
		if to == 0 {
			from = first
		}
		to = end
	}
	if to > 0 {
		ask(from, to)
	}
}

// joinedBlocks is how many unneeded blocks are read to avoid a second request.
const joinedBlocks = 4

// askedPieces records which pieces of a section any search requested recently. While a search waits for one piece, others may be
// evicted from memory, so they are requested again after pieceFresh.
type askedPieces struct {
	mu    sync.Mutex // held while the rest changes
	since atomic.Int64
	bits  atomic.Pointer[[]atomic.Uint64] // a bit a piece; nil: none was asked for
}

const (
	pieceBits  = 16 // of 64 KiB
	pieceFresh = time.Second
)

// renewed forgets old requests, in a section of the given size in bytes.
func (a *askedPieces) renewed(section int) *askedPieces {
	now := time.Now().UnixNano()
	if a.fresh(now) {
		return a
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fresh(now) {
		return a
	}
	if bits := a.bits.Load(); bits != nil {
		for i := range *bits {
			(*bits)[i].Store(0)
		}
	} else {
		made := make([]atomic.Uint64, (section>>pieceBits)/64+1)
		a.bits.Store(&made)
	}
	a.since.Store(now)
	return a
}

// fresh reports whether the pieces were forgotten less than pieceFresh ago. If the clock was set back, they are not fresh.
func (a *askedPieces) fresh(now int64) bool {
	age := now - a.since.Load()
	return 0 <= age && age < int64(pieceFresh)
}

// ask reports whether to request a piece, and records the request.
func (a *askedPieces) ask(piece int) bool {
	bits := *a.bits.Load()
	if piece>>6 >= len(bits) {
		return false
	}
	bit := uint64(1) << (piece & 63)
	return bits[piece>>6].Load()&bit == 0 && bits[piece>>6].Or(bit)&bit == 0
}
