package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"

	"svc/internal/apierr"
)

// pages has the checksums of the pages of an open file, from the check at its opening or from later writes. bbolt trusts its pages.
// If one changes, it may follow cycles until the stack overflows, free 2³¹ pages, read beyond the file, or take remains of an older
// transaction for the newest. So each page on the path to a key is compared before bbolt reads it.
type pages struct {
	file *os.File
	name string
	size int64

	mu   sync.RWMutex
	sums []uint32 // by page in use; for a free page, that of its last content, which older transactions may still read
	used []uint64 // a bit for each page of the newest transaction's tree, and of its list of free pages

	memories sync.Pool // of *pageMemory
}

// newPages takes over what a check of the whole file has seen.
func newPages(f *os.File, c *checker) *pages {
	return &pages{file: f, name: f.Name(), size: c.size, sums: c.sums, used: c.used}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pageSum is of the running program alone, no file has it. Processors make it faster than other sums of a page.
func pageSum(page []byte) uint32 { return crc32.Checksum(page, castagnoli) }

// pageMemory has pages that were read, and room for more.
type pageMemory struct {
	pages map[uint64][]byte
	free  [][]byte // of one page each
}

func (p *pages) memory() *pageMemory {
	if m, ok := p.memories.Get().(*pageMemory); ok {
		return m
	}
	return &pageMemory{pages: map[uint64][]byte{}}
}

// done returns the memory, which must no longer be used.
func (p *pages) done(m *pageMemory) {
	for _, page := range m.pages {
		p.drop(m, page)
	}
	clear(m.pages)
	p.memories.Put(m)
}

// drop gives back the room of a page.
func (p *pages) drop(m *pageMemory, page []byte) {
	if int64(len(page)) == p.size && len(m.free) < keptPages/4 {
		m.free = append(m.free, page)
	}
}

// room returns room for one page.
func (p *pages) room(m *pageMemory) []byte {
	if n := len(m.free); n > 0 {
		page := m.free[n-1]
		m.free = m.free[:n-1]
		return page
	}
	return make([]byte, p.size)
}

func (p *pages) damaged(id uint64, format string, args ...any) error {
	return &apierr.Corruption{File: p.name, Section: fmt.Sprintf("page %d", id), Offset: int64(id) * p.size, Reason: fmt.Sprintf(format, args...)}
}

// read reads a page and its continuation pages into page, which has room for one.
func (p *pages) read(page []byte, id, end uint64) ([]byte, error) {
	if id < 2 || id >= end {
		return nil, p.damaged(id, "a reference leads to it, but the file has only pages 2 to %d", end-1)
	}
	if err := p.readAt(page, id); err != nil {
		return nil, err
	}
	more := uint64(binary.LittleEndian.Uint32(page[12:]))
	if more == 0 {
		return page, nil
	}
	if more >= end-id {
		return nil, p.damaged(id, "%d pages after it", more)
	}
	long := make([]byte, int64(more+1)*p.size)
	copy(long, page)
	return long, p.readAt(long[p.size:], id+1)
}

func (p *pages) readAt(b []byte, id uint64) error {
	if _, err := p.file.ReadAt(b, int64(id)*p.size); err != nil {
		return p.damaged(id, "it cannot be read: %v", err)
	}
	return nil
}

// comparedAtOnce is how many bytes of continuation pages are read at once to be compared.
const comparedAtOnce = 64 << 10

// sound reads a page, into room for one, if it and its continuation pages are unchanged. For a leaf or a list of free pages it
// returns only the first page: a value may be large, and the caller may have no room for it.
func (p *pages) sound(page []byte, id uint64) ([]byte, error) {
	if err := p.readSame(page, id); err != nil {
		return nil, err
	}
	more := int64(binary.LittleEndian.Uint32(page[12:])) // as it was written
	if more == 0 {
		return page, nil
	}
	if binary.LittleEndian.Uint16(page[8:]) == branchFlag {
		long := make([]byte, (more+1)*p.size)
		copy(long, page)
		return long, p.readSame(long[p.size:], id+1)
	}
	step := max(comparedAtOnce/p.size, 1)
	b := make([]byte, min(step, more)*p.size)
	for first := int64(1); first <= more; first += step {
		if err := p.readSame(b[:min(step, more+1-first)*p.size], id+uint64(first)); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// lastKey returns the last key of a leaf that is sound, nil when it has none; page is the first of its pages.
func (p *pages) lastKey(id uint64, page []byte) ([]byte, error) {
	n := int(binary.LittleEndian.Uint16(page[10:]))
	if n == 0 {
		return nil, nil
	}
	at := int64(pageHeader + (n-1)*elementBytes)
	var e [elementBytes]byte
	if err := p.part(id, page, at, e[:]); err != nil {
		return nil, err
	}
	length := (int64(binary.LittleEndian.Uint32(page[12:])) + 1) * p.size
	from := at + int64(binary.LittleEndian.Uint32(e[4:]))
	size := int64(binary.LittleEndian.Uint32(e[8:]))
	if from+size > length {
		return nil, p.damaged(id, "its last key is outside its page")
	}
	key := make([]byte, size)
	return key, p.part(id, page, from, key)
}

// part fills b with bytes of a page and its continuation pages, starting at from. page is the first page, in memory.
func (p *pages) part(id uint64, page []byte, from int64, b []byte) error {
	if from+int64(len(b)) <= int64(len(page)) {
		copy(b, page[from:])
		return nil
	}
	if _, err := p.file.ReadAt(b, int64(id)*p.size+from); err != nil {
		return p.damaged(id, "it cannot be read: %v", err)
	}
	return nil
}

// readSame reads pages that follow each other, and compares them.
func (p *pages) readSame(b []byte, id uint64) error {
	p.mu.RLock()
	end := uint64(len(p.sums))
	p.mu.RUnlock()
	if id < 2 || id >= end {
		return p.damaged(id, "a reference leads to it, but the file has only pages 2 to %d", end-1)
	}
	if err := p.readAt(b, id); err != nil {
		return err
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for ; len(b) > 0; b, id = b[p.size:], id+1 {
		if id >= end || pageSum(b[:p.size]) != p.sums[id] {
			return p.damaged(id, "it differs from what was written")
		}
	}
	return nil
}

func (p *pages) inUse(id uint64) bool {
	return id/64 < uint64(len(p.used)) && p.used[id/64]&(1<<(id%64)) != 0
}

// root is the state of the newest transaction.
type root struct {
	page     int64
	bytes    [rootBytes + 8]byte // as they stand in the file
	tx       uint64
	bucket   uint64 // page
	freeList uint64 // page
	end      uint64 // behind all pages
}

// rootOf reads the root of a transaction from its page: the number's last bit, but in copies that bbolt has made.
func (p *pages) rootOf(tx uint64, page int64) (*root, error) {
	c := checker{r: p.file, name: p.name}
	b, size := c.rootAt(page * p.size)
	if b == nil || size != p.size || binary.LittleEndian.Uint64(b[48:]) != tx {
		return nil, RootLost(p.name)
	}
	r := &root{
		page: page, tx: tx, bucket: binary.LittleEndian.Uint64(b[16:]), freeList: binary.LittleEndian.Uint64(b[32:]), end: binary.LittleEndian.Uint64(b[40:]),
	}
	copy(r.bytes[:], b)
	if r.end > maxPages {
		return nil, RootLost(p.name)
	}
	return r, nil
}

// stands reports whether a root is what was written.
func (p *pages) stands(r *root) error {
	var now [rootBytes + 8]byte
	if _, err := p.file.ReadAt(now[:], r.page*p.size+pageHeader); err != nil {
		return &apierr.Corruption{File: p.name, Section: "roots", Offset: r.page * p.size, Reason: fmt.Sprintf("it cannot be read: %v", err)}
	}
	if now != r.bytes {
		return RootLost(p.name)
	}
	return nil
}

// take records the pages of a finished transaction: those below its root that were free before.
func (p *pages) take(r *root) error {
	w := walk{pages: p, end: r.end, fresh: map[uint64]uint32{}, memory: p.memory()}
	defer p.done(w.memory)
	if err := w.tree(r.bucket, 0); err != nil {
		return err
	}
	var free []byte
	if r.freeList != noFreeList {
		page, err := w.take(r.freeList)
		if err != nil {
			return err
		}
		if free, err = p.freeIn(r.freeList, page); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := int(r.end) - len(p.sums); n > 0 {
		p.sums = append(p.sums, make([]uint32, n)...)
		p.used = append(p.used, make([]uint64, (len(p.sums)+63)/64-len(p.used))...)
	}
	for id, sum := range w.fresh {
		p.sums[id] = sum
		p.used[id/64] |= 1 << (id % 64)
	}
	for ; len(free) > 0; free = free[8:] {
		if id := binary.LittleEndian.Uint64(free); id < r.end {
			p.used[id/64] &^= 1 << (id % 64)
		}
	}
	return nil
}

// freeIn returns the numbers, of 8 bytes each, in the list of free pages.
func (p *pages) freeIn(id uint64, page []byte) ([]byte, error) {
	list := page[pageHeader:]
	n := uint64(binary.LittleEndian.Uint16(page[10:]))
	if n == manyFree {
		n, list = binary.LittleEndian.Uint64(list), list[8:]
	}
	if flags := binary.LittleEndian.Uint16(page[8:]); flags != freeFlag || n > uint64(len(list)/8) {
		return nil, p.damaged(id, "it has the flags %#x and %d entries, and should be the list of free pages", flags, n)
	}
	return list[:8*n], nil
}

// walk goes through what a transaction has written.
type walk struct {
	*pages
	end   uint64
	fresh map[uint64]uint32 // sums

	memory *pageMemory
}

// take reads a page that was free before.
func (w *walk) take(id uint64) ([]byte, error) {
	page, err := w.read(w.room(w.memory), id, w.end)
	if err != nil {
		return nil, err
	}
	if got := binary.LittleEndian.Uint64(page); got != id {
		return nil, w.damaged(id, "it calls itself %d", got)
	}
	for i := range uint64(int64(len(page)) / w.size) {
		if _, twice := w.fresh[id+i]; twice || w.inUse(id+i) {
			return nil, w.damaged(id+i, "it is used twice")
		}
		w.fresh[id+i] = pageSum(page[int64(i)*w.size:][:w.size])
	}
	return page, nil
}

// tree compares the pages below one that the last transaction wrote. Pages that were in use before are known.
func (w *walk) tree(id uint64, depth int) error {
	if w.inUse(id) {
		return nil // the pages below it existed before, too
	}
	page, err := w.take(id)
	if err != nil {
		return err
	}
	defer w.drop(w.memory, page)
	if depth > maxDepth {
		return w.damaged(id, "it is %d pages deep", depth)
	}
	n := int(binary.LittleEndian.Uint16(page[10:]))
	if pageHeader+n*elementBytes > len(page) {
		return w.damaged(id, "%d keys", n)
	}
	switch flags := binary.LittleEndian.Uint16(page[8:]); flags {
	case branchFlag:
		for i := range n {
			if err := w.tree(binary.LittleEndian.Uint64(page[pageHeader+i*elementBytes+8:]), depth+1); err != nil {
				return err
			}
		}
	case leafFlag:
		for i := range n {
			_, value, flags, ok := leafElement(page, i)
			switch {
			case !ok || flags&bucketElement != 0 && len(value) < bucketBytes:
				return w.damaged(id, "key %d or its value is outside its page", i)
			case flags&bucketElement == 0:
				continue
			}
			if below := binary.LittleEndian.Uint64(value); below != 0 {
				if err := w.tree(below, depth+1); err != nil {
					return err
				}
			}
		}
	default:
		return w.damaged(id, "it has the flags %#x, and should be a branch or a leaf", flags)
	}
	return nil
}

// leafElement returns a key of a leaf and its value.
func leafElement(page []byte, i int) (key, value []byte, flags uint32, ok bool) {
	at := pageHeader + i*elementBytes
	e := page[at:]
	from := uint64(at) + uint64(binary.LittleEndian.Uint32(e[4:]))
	middle := from + uint64(binary.LittleEndian.Uint32(e[8:]))
	end := middle + uint64(binary.LittleEndian.Uint32(e[12:]))
	if end > uint64(len(page)) {
		return nil, nil, 0, false
	}
	return page[from:middle], page[middle:end], binary.LittleEndian.Uint32(e), true
}

// branchElement returns a key of a branch, and the page of it and those up to the next one.
func branchElement(page []byte, i int) (key []byte, child uint64) {
	at := pageHeader + i*elementBytes
	e := page[at:]
	from := uint64(at) + uint64(binary.LittleEndian.Uint32(e))
	end := from + uint64(binary.LittleEndian.Uint32(e[4:]))
	if end > uint64(len(page)) {
		return nil, 0
	}
	return page[from:end], binary.LittleEndian.Uint64(e[8:])
}

// keyRange is of the keys whose leaf was compared last below a root, with those on the way to it.
type keyRange struct {
	root      uint64
	low, next []byte // nil: none before, or after
	beside    bool   // the pages beside those on the way were compared, too
}

// knownRanges is of how many roots a transaction knows one.
const knownRanges = 4

// sound compares the pages from a root to the leaf where a key is or would be and, with beside, their siblings, unless the last call
// did so.
func (t *Tx) sound(root uint64, key []byte, beside bool) error {
	r := &t.known[root%knownRanges]
	if r.root == root && (r.beside || !beside) && bytes.Compare(r.low, key) <= 0 && (r.next == nil || bytes.Compare(key, r.next) < 0) {
		return nil
	}
	_, _, _, err := t.way(root, key, beside)
	return err
}

// way compares the pages from one, the root of a bucket, to the leaf where a key is or would be. With beside it also compares their
// siblings, with which bbolt may merge them. It returns the leaf, its first page, and the first key of the next leaf, or nil.
func (t *Tx) way(root uint64, key []byte, beside bool) (leaf uint64, page, next []byte, err error) {
	var low []byte
	id := root
	for depth := 0; ; depth++ {
		if page, err = t.page(id); err != nil {
			return 0, nil, nil, err
		}
		n := int(binary.LittleEndian.Uint16(page[10:]))
		if binary.LittleEndian.Uint16(page[8:]) == leafFlag {
			t.known[root%knownRanges] = keyRange{root, low, next, beside}
			return id, page, next, nil
		}
		if n == 0 || depth > maxDepth {
			return 0, nil, nil, t.db.pages.damaged(id, "a branch with %d keys, %d pages deep", n, depth)
		}
		i, above := 0, n // the last key that is not above key, or the first one, and the first that is
		for i+1 < above {
			middle := (i + above) / 2
			if k, _ := branchElement(page, middle); bytes.Compare(k, key) > 0 {
				above = middle
			} else {
				i = middle
			}
		}
		if i > 0 {
			low, _ = branchElement(page, i)
		}
		if i+1 < n {
			next, _ = branchElement(page, i+1)
		}
		if beside {
			for _, j := range [2]int{i - 1, i + 1} {
				if j >= 0 && j < n {
					_, child := branchElement(page, j)
					if _, err := t.page(child); err != nil {
						return 0, nil, nil, err
					}
				}
			}
		}
		_, id = branchElement(page, i)
	}
}

// keptPages is how many compared pages a transaction caches.
const keptPages = 256

// page returns a page after comparing it. Within a transaction it does this only now and then.
func (t *Tx) page(id uint64) ([]byte, error) {
	if t.compared == nil {
		t.compared = t.db.pages.memory()
	}
	if page, ok := t.compared.pages[id]; ok {
		return page, nil
	}
	if err := t.taken(); err != nil {
		return nil, err
	}
	page, err := t.db.pages.sound(t.db.pages.room(t.compared), id)
	if err != nil {
		return nil, err
	}
	if len(t.compared.pages) >= keptPages {
		clear(t.compared.pages) // cursors may stand in them still
	}
	t.compared.pages[id] = page
	return page, nil
}

var errNotTaken = errors.New("what the last change left cannot be read")

// taken waits until the pages are known of the transaction that t shows.
func (t *Tx) taken() error {
	if t.id <= t.db.known.Load() {
		return nil
	}
	t.db.waiting.Lock()
	defer t.db.waiting.Unlock()
	for t.db.committing && t.id > t.db.known.Load() {
		t.db.committed.Wait()
	}
	if t.id > t.db.known.Load() {
		return fmt.Errorf("cannot read %s: %w", t.db.pages.name, errNotTaken)
	}
	return nil
}
