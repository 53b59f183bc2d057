package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"svc/internal/apierr"
)

// A bbolt file, version 2, is in the byte order of the machine, which is little-endian wherever svc runs. It has pages of one size;
// data that need more continue in the following pages. Each page begins with
//
//	u64 id, u16 flags, u16 count, u32 pages after it
//
// Pages 0 and 1 are roots. The valid one with the higher transaction counts:
//
//	u32 magic, version, page size, flags; u64 page of the root bucket, its sequence, page of the free list, pages, transaction
//	u64 FNV-1a of that
//
// A branch has count × (u32 offset of the key from here, key length; u64 page), a leaf count × (u32 flags, offset, key length, value
// length), each value after its key. The first key follows the last element, and the others follow without gaps. bbolt does not
// require this but always writes so, and it reveals a damaged count. With flag 1 the value is a bucket: u64 page, u64 sequence, and
// with page 0 a leaf. The free list has count × u64 page; with count 0xFFFF its first entry is the count.
const (
	pageHeader    = 16
	elementBytes  = 16
	bucketBytes   = 16
	rootBytes     = 56 // and the checksum after it
	branchFlag    = 0x01
	leafFlag      = 0x02
	freeFlag      = 0x10
	bucketElement = 0x01
	manyFree      = 0xFFFF
	noFreeList    = ^uint64(0)
	boltMagic     = 0xED0CDAED
	boltVersion   = 2
	minPage       = 512
	maxPage       = 64 << 10
	maxPages      = 1 << 40
	maxDepth      = 64
	maxKeyBytes   = 32768 // bbolt's
)

// checker walks through all pages that a root reaches.
type checker struct {
	r        io.ReaderAt
	name     string
	size     int64 // of a page
	pages    uint64
	seen     []uint64 // a bit for each page that is in use, or free
	used     []uint64 // a bit for each page that is in use
	sums     []uint32 // of pages that are in use
	freeList uint64
	tx       uint64 // of the root that counts
	rootPage int64  // and where it stands
	depth    int
}

// Check reports damage in the structure of a file that is not open, as Open does.
func Check(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	_, err = check(f, &Options{})
	return errors.Join(err, f.Close())
}

// check reports damage in the structure of a file. Damage that bbolt tolerates is logged and passed to Lacking.
func check(f *os.File, o *Options) (*checker, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return checkPages(f, f.Name(), info.Size(), o)
}

// checkPages walks through all pages from the newest root. Each must be in use once, or free, and nothing may
// lead outside.
func checkPages(r io.ReaderAt, name string, length int64, o *Options) (*checker, error) {
	c := &checker{r: r, name: name, freeList: noFreeList}
	root, err := c.root(length, o)
	if err != nil {
		return nil, err
	}
	if c.pages < 4 || c.pages > maxPages || int64(c.pages)*c.size > length {
		return nil, c.damaged(0, "it has %d bytes, but %d pages of %d bytes: it is truncated", length, c.pages, c.size)
	}
	c.begin()
	c.seen[0] = 3 // the roots
	if err := c.tree(root, nil, nil); err != nil {
		return nil, err
	}
	if c.freeList == noFreeList {
		return c, nil // bbolt gathers them itself
	}
	if err := c.free(); err != nil {
		return nil, err
	}
	for id := range c.pages {
		if c.seen[id/64]&(1<<(id%64)) == 0 {
			return nil, c.damaged(id, "it is neither in use nor free")
		}
	}
	return c, nil
}

// begin allocates memory for the states of pages.
func (c *checker) begin() {
	c.seen, c.used, c.sums = make([]uint64, (c.pages+63)/64), make([]uint64, (c.pages+63)/64), make([]uint32, c.pages)
}

func (c *checker) damaged(page uint64, format string, args ...any) error {
	return &apierr.Corruption{File: c.name, Section: fmt.Sprintf("page %d", page), Offset: int64(page) * c.size, Reason: fmt.Sprintf(format, args...)}
}

// root reads the root that counts.
func (c *checker) root(length int64, o *Options) (bucket uint64, err error) {
	var newest uint64
	found := 0
	// The second root is after the first page, which states the page size unless it is damaged.
	for at := int64(0); at < length && at <= maxPage; at = max(2*at, minPage) {
		if c.size > 0 && at > c.size {
			break
		}
		b, size := c.rootAt(at)
		if b == nil || at > 0 && at != size {
			continue
		}
		found++
		c.size = size
		if tx := binary.LittleEndian.Uint64(b[48:]); found == 1 || tx > newest {
			newest, c.tx, c.rootPage = tx, tx, min(at, 1)
			bucket = binary.LittleEndian.Uint64(b[16:])
			c.freeList, c.pages = binary.LittleEndian.Uint64(b[32:]), binary.LittleEndian.Uint64(b[40:])
		}
	}
	if found == 0 {
		return 0, &apierr.Corruption{File: c.name, Section: "roots", Offset: 0, Reason: "both are damaged, or it is not a file of svc"}
	}
	if found == 1 && o.Lacking != nil {
		o.Lacking()
	}
	if found == 1 && o.Logger != nil {
		o.Logger.Warn("one of the two roots of a file is damaged; svc uses the other, which may lack the last change", "file", c.name)
	}
	return bucket, nil
}

// rootAt returns the root in the page at an offset, or nil if there is no valid one, and the size of its pages.
func (c *checker) rootAt(at int64) ([]byte, int64) {
	page := make([]byte, pageHeader+rootBytes+8)
	if _, err := c.r.ReadAt(page, at); err != nil {
		return nil, 0
	}
	b := page[pageHeader:]
	h := fnv.New64a()
	_, _ = h.Write(b[:rootBytes])
	size := int64(binary.LittleEndian.Uint32(b[8:]))
	if binary.LittleEndian.Uint32(b) != boltMagic || binary.LittleEndian.Uint32(b[4:]) != boltVersion ||
		binary.LittleEndian.Uint64(b[rootBytes:]) != h.Sum64() || size < minPage || size > maxPage || size&(size-1) != 0 {
		return nil, 0
	}
	return b, size
}

// read reads a page with its continuation pages, which must not be in use already.
func (c *checker) read(id uint64) (page []byte, flags int, err error) {
	if id < 2 || id >= c.pages {
		return nil, 0, c.damaged(id, "a reference leads to it, but the file has only pages 2 to %d", c.pages-1)
	}
	header := make([]byte, pageHeader)
	if _, err := c.r.ReadAt(header, int64(id)*c.size); err != nil {
		return nil, 0, fmt.Errorf("cannot read page %d: %w", id, err)
	}
	more := uint64(binary.LittleEndian.Uint32(header[12:]))
	if got := binary.LittleEndian.Uint64(header); got != id || id+more >= c.pages {
		return nil, 0, c.damaged(id, "it calls itself %d, with %d pages after it", got, more)
	}
	for i := range more + 1 {
		if err := c.claim(id + i); err != nil {
			return nil, 0, err
		}
	}
	page = make([]byte, int64(more+1)*c.size)
	if _, err := c.r.ReadAt(page, int64(id)*c.size); err != nil {
		return nil, 0, fmt.Errorf("cannot read page %d: %w", id, err)
	}
	for i := range more + 1 {
		c.sums[id+i] = pageSum(page[int64(i)*c.size:][:c.size])
		c.used[(id+i)/64] |= 1 << ((id + i) % 64)
	}
	return page, int(binary.LittleEndian.Uint16(page[8:])), nil
}

func (c *checker) claim(id uint64) error {
	if c.seen[id/64]&(1<<(id%64)) != 0 {
		return c.damaged(id, "it is used twice")
	}
	c.seen[id/64] |= 1 << (id % 64)
	return nil
}

// tree checks the pages below a page. Its keys begin at low and end before high (nil: no limit).
func (c *checker) tree(id uint64, low, high []byte) error {
	if c.depth++; c.depth > maxDepth {
		return c.damaged(id, "it is %d pages deep", c.depth)
	}
	defer func() { c.depth-- }()
	page, flags, err := c.read(id)
	if err != nil {
		return err
	}
	switch flags {
	case leafFlag:
		return c.leaf(id, page, low, high)
	case branchFlag:
	default:
		return c.damaged(id, "it has the flags %#x, and should be a branch or a leaf", flags)
	}
	n := int(binary.LittleEndian.Uint16(page[10:]))
	if n == 0 || pageHeader+n*elementBytes > len(page) {
		return c.damaged(id, "a branch with %d keys", n)
	}
	keys, children := make([][]byte, n), make([]uint64, n)
	next := pageHeader + n*elementBytes
	for i := range n {
		at := pageHeader + i*elementBytes
		e := page[at:]
		if keys[i], _ = cut(page, at, &next, binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:]), 0); keys[i] == nil {
			return c.damaged(id, "key %d is outside its page", i)
		}
		children[i] = binary.LittleEndian.Uint64(e[8:])
	}
	if err := c.ordered(id, keys, low, high); err != nil {
		return err
	}
	for i, child := range children {
		end := high
		if i+1 < n {
			end = keys[i+1]
		}
		if err := c.tree(child, keys[i], end); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks a leaf, and the buckets in it. page is a page or the leaf inside a bucket's value.
func (c *checker) leaf(id uint64, page, low, high []byte) error {
	n := int(binary.LittleEndian.Uint16(page[10:]))
	if pageHeader+n*elementBytes > len(page) {
		return c.damaged(id, "a leaf with %d keys", n)
	}
	if n == 0 && len(page) >= pageHeader+elementBytes && binary.LittleEndian.Uint32(page[pageHeader+4:]) != 0 {
		return c.damaged(id, "a leaf without keys has one")
	}
	keys := make([][]byte, n)
	next := pageHeader + n*elementBytes
	for i := range n {
		at := pageHeader + i*elementBytes
		e := page[at:]
		key, value := cut(page, at, &next, binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:]))
		if key == nil {
			return c.damaged(id, "key %d or its value is outside its page", i)
		}
		keys[i] = key
		switch flags := binary.LittleEndian.Uint32(e); flags {
		case 0:
		case bucketElement:
			if err := c.bucket(id, value); err != nil {
				return err
			}
		default:
			return c.damaged(id, "key %d has the flags %#x", i, flags)
		}
	}
	return c.ordered(id, keys, low, high)
}

// bucket checks a bucket by its value in the leaf of a page.
func (c *checker) bucket(id uint64, value []byte) error {
	if len(value) < bucketBytes {
		return c.damaged(id, "a bucket of %d bytes", len(value))
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return c.tree(root, nil, nil)
	}
	inline := value[bucketBytes:]
	if len(inline) < pageHeader || binary.LittleEndian.Uint64(inline) != 0 || binary.LittleEndian.Uint16(inline[8:]) != leafFlag || binary.LittleEndian.Uint32(inline[12:]) != 0 {
		return c.damaged(id, "a bucket inside it is not a leaf")
	}
	return c.leaf(id, inline, nil, nil)
}

// cut returns the key, and the value after it, that begin at an offset from an element, which is to be next; and
// moves next behind them. k is nil when they are elsewhere.
func cut(page []byte, element int, next *int, offset, key, value uint32) (k, v []byte) {
	from := uint64(element) + uint64(offset)
	middle := from + uint64(key)
	end := middle + uint64(value)
	if from != uint64(*next) || key > maxKeyBytes || end > uint64(len(page)) {
		return nil, nil
	}
	*next = int(end)
	return page[from:middle:middle], page[middle:end]
}

func (c *checker) ordered(id uint64, keys [][]byte, low, high []byte) error {
	for i, key := range keys {
		if i == 0 && bytes.Compare(key, low) < 0 || i > 0 && bytes.Compare(key, keys[i-1]) <= 0 || high != nil && bytes.Compare(key, high) >= 0 {
			return c.damaged(id, "key %d, %x, is out of order", i, key)
		}
	}
	return nil
}

// free checks the list of free pages.
func (c *checker) free() error {
	id := c.freeList
	page, flags, err := c.read(id)
	if err != nil {
		return err
	}
	list := page[pageHeader:]
	n := uint64(binary.LittleEndian.Uint16(page[10:]))
	if n == manyFree {
		n, list = binary.LittleEndian.Uint64(list), list[8:]
	}
	if flags != freeFlag || n > uint64(len(list)/8) {
		return c.damaged(id, "it has the flags %#x and %d entries, and should be the list of free pages", flags, n)
	}
	for i := range n {
		page := binary.LittleEndian.Uint64(list[8*i:])
		if page < 2 || page >= c.pages {
			return c.damaged(id, "it lists page %d of %d", page, c.pages)
		}
		if err := c.claim(page); err != nil {
			return err
		}
	}
	return nil
}
