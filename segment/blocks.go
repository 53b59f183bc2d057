package segment

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
	"svc/internal/mapped"
)

// A file has a checksum of each 4 KiB, from its first byte up to these checksums: the section sums. A block is checked when one of
// its bytes is first asked for in the life of a mapping. A correct block is not checked again: one bit per block records it, and one
// more bit records that all blocks are correct.
//
// Files of format 1 have no such section. There, a block is correct if the checksums of all sections that have a byte in it are
// correct, so the first access to a section reads all of it.
const (
	blockBits  = 12 // a page: the disk reads that much anyway to check a block
	blockBytes = 1 << blockBits
	sumBytes   = 4 // of a block's checksum: the lower half of its xxhash64
)

// blocks knows which blocks of a mapped file were found right.
type blocks struct {
	name     string
	data     []byte
	file     *mapped.File // of data; nil where nothing is asked for ahead
	sections []section
	sums     []byte // nil in files of format 1
	covered  int    // bytes of the file that blocks cover
	derived  bool   // the file is one of columns

	right []atomic.Uint64 // a bit a block
	left  atomic.Int64    // how many have not been found right
	sound atomic.Bool     // left is 0

	// Of files of format 1, and of those that are salvaged; else whole is nil.
	reading sync.Mutex    // held while a section is read
	whole   []atomic.Bool // by section: its checksum was found right

	mended func(*apierr.Corruption) // for files that are salvaged: called for each block in which one flipped bit was repaired

	tell atomic.Pointer[func(*apierr.Corruption)] // nil: none
}

// open counts the blocks. Sections and sums are known.
func (b *blocks) open(name string, data []byte, f footer, sections []section) error {
	b.name, b.data, b.sections, b.covered = name, data, sections, int(f.tableOffset)
	if f.version >= sumsFormat {
		i := len(sections) - 1
		if i < 0 || sections[i].tag != tagSums {
			return &apierr.Corruption{File: name, Section: "table", Offset: f.tableOffset, Reason: "its last section is not that of checksums"}
		}
		b.covered = int(sections[i].offset)
		b.sums = data[sections[i].offset : sections[i].offset+sections[i].length]
	} else {
		b.whole = make([]atomic.Bool, len(sections))
	}
	n := (b.covered + blockBytes - 1) / blockBytes
	if b.sums != nil && len(b.sums) != n*sumBytes {
		return &apierr.Corruption{File: name, Section: tagSums.String(), Offset: int64(b.covered), Reason: fmt.Sprintf("%d bytes for %d blocks", len(b.sums), n)}
	}
	b.right = make([]atomic.Uint64, (n+63)/64)
	b.left.Store(int64(n))
	return nil
}

// touch verifies the blocks of p, a part of the file. If one is damaged, it panics with an *apierr.Corruption, which mapped.Guard
// turns into an error.
func (b *blocks) touch(p []byte) {
	if len(p) > blockBytes {
		b.gather(p)
	}
	if b.sound.Load() {
		return
	}
	if damage := b.check(p); damage != nil {
		panic(damage)
	}
}

// verify is touch that returns an error.
func (b *blocks) verify(p []byte) error {
	if len(p) > blockBytes {
		b.gather(p)
	}
	if b.sound.Load() {
		return nil
	}
	if damage := b.check(p); damage != nil {
		return damage
	}
	return nil
}

// offset returns where in the file p begins.
func (b *blocks) offset(p []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(p))) - uintptr(unsafe.Pointer(unsafe.SliceData(b.data))))
}

// check verifies the blocks that p touches and that were not found right before. It returns the first damage,
// which it has reported already. p must be a part of data: its address says where in the file it is.
func (b *blocks) check(p []byte) *apierr.Corruption {
	if len(p) == 0 {
		return nil
	}
	at := b.offset(p)
	i, end := at>>blockBits, (at+len(p)-1)>>blockBits
	asked := end + 1 // what follows was not asked for
	if len(p) > mostGathered && b.file != nil && mapped.PageByPage() {
		asked = i
	}
	for ; i <= end; i++ {
		if !b.isRight(i) {
			if i >= asked {
				asked = min(i+askedBlocks, end+1)
				b.ask(i, asked)
			}
			if damage := b.read(i, max(at, i<<blockBits)); damage != nil {
				return damage
			}
		}
	}
	return nil
}

func (b *blocks) isRight(i int) bool { return b.right[i>>6].Load()>>(i&63)&1 != 0 }

// touchRows is touch for rows of a table, given by ids, of width bytes each. Unless all were requested before, it requests those not
// verified yet all at once.
func (b *blocks) touchRows(table []byte, width int, ids []uint32, asked bool) {
	if b.sound.Load() || len(ids) == 0 {
		return
	}
	if width <= blockBytes {
		// A row lies in two blocks at most. Nearly always all of them were found right: then nothing here is branched on.
		at, all := b.offset(table), uint64(1)
		for _, id := range ids {
			from := at + int(id)*width
			i, j := from>>blockBits, (from+width-1)>>blockBits
			all &= b.right[i>>6].Load() >> (i & 63) & (b.right[j>>6].Load() >> (j & 63))
		}
		if all == 1 {
			return
		}
	}
	if !asked {
		b.fetch(table, width, ids)
	}
	for _, id := range ids {
		b.touch(table[int(id)*width : (int(id)+1)*width])
	}
}

// read reads a block and marks it as correct, or returns and reports the damage. at is the byte that the caller needs.
func (b *blocks) read(i, at int) *apierr.Corruption {
	var damage *apierr.Corruption
	if b.sums == nil {
		damage = b.readSections(i)
	} else if damage = b.compare(i, at); damage != nil && b.mended != nil {
		damage = b.mend(i, damage)
	}
	if damage != nil {
		damage.Fatal = smallAmong(damage.Section)
		b.tellDamage(damage)
		return damage
	}
	b.markRight(i)
	return nil
}

// markRight sets the bit of block i. Several goroutines may have verified the same block: only the one that
// changes the bit counts it, so left reaches 0 once all blocks are right, and not before.
func (b *blocks) markRight(i int) {
	bit := uint64(1) << (i & 63)
	if b.right[i>>6].Or(bit)&bit == 0 && b.left.Add(-1) == 0 {
		b.sound.Store(true)
	}
}

// block returns where a block begins and ends.
func (b *blocks) block(i int) (from, to int) {
	return i << blockBits, min((i+1)<<blockBits, b.covered)
}

// anyByte stands for no byte of a block in particular.
const anyByte = -1

// compare hashes block i and returns the damage if the checksum differs. It neither reads nor sets the bit of the block. The message
// names the section of the byte at an offset or, for anyByte, all sections in the block.
func (b *blocks) compare(i, at int) *apierr.Corruption {
	from, to := b.block(i)
	want, got := binary.LittleEndian.Uint32(b.sums[sumBytes*i:]), uint32(xxhash.Sum64(b.data[from:to]))
	if want == got {
		return nil
	}
	var asked string
	if at == anyByte {
		asked = b.sectionsIn(from, to)
	} else {
		asked = b.sectionAt(at)
	}
	return &apierr.Corruption{File: b.name, Section: asked, Offset: int64(from), Derived: b.derived,
		Reason: fmt.Sprintf("checksum %08x expected, %08x found in the %d bytes of the block", want, got, to-from)}
}

// readSections checks the sections with a byte in a block, in files of format 1.
func (b *blocks) readSections(i int) *apierr.Corruption {
	from, to := b.block(i)
	for k, s := range b.sections {
		if s.offset >= int64(to) || s.offset+s.length <= int64(from) || b.whole[k].Load() {
			continue
		}
		b.reading.Lock()
		var damage *apierr.Corruption
		if !b.whole[k].Load() {
			damage = b.checkSection(s)
			b.whole[k].Store(damage == nil)
		}
		b.reading.Unlock()
		if damage != nil {
			return damage
		}
	}
	return nil
}

// checkSection verifies the checksum of a whole section in the section table.
func (b *blocks) checkSection(s section) *apierr.Corruption {
	damage, _ := b.checkPieces(s, s.length, func(int64, int64) (func(), error) { return func() {}, nil })
	return damage
}

// checkPieces is checkSection that calls read before each piece of at most size bytes, with its offset in the file and its length, and
// what that returned after it. An error of read ends it.
func (b *blocks) checkPieces(s section, size int64, read func(at, n int64) (after func(), err error)) (*apierr.Corruption, error) {
	sum := xxhash.New()
	for at, end := s.offset, s.offset+s.length; at < end; {
		n := min(end-at, size)
		after, err := read(at, n)
		if err != nil {
			return nil, err
		}
		_, _ = sum.Write(b.data[at : at+n])
		after()
		at += n
	}
	if got := sum.Sum64(); got != s.checksum {
		return &apierr.Corruption{File: b.name, Section: s.tag.String(), Offset: s.offset, Derived: b.derived,
			Reason: fmt.Sprintf("checksum %016x expected, %016x found in %d bytes", s.checksum, got, s.length)}, nil
	}
	return nil, nil
}

// sectionAt returns the name of the section with the byte at an offset.
func (b *blocks) sectionAt(at int) string { return b.sectionsIn(at, at+1) }

// sectionsIn returns the names of the sections with a byte in a range.
func (b *blocks) sectionsIn(from, to int) string {
	var names []string
	for _, s := range b.sections {
		if s.offset < int64(to) && s.offset+s.length > int64(from) {
			names = append(names, s.tag.String())
		}
	}
	if len(names) == 0 {
		return "padding"
	}
	return strings.Join(names, ", ")
}

// forget marks all blocks as not verified: the data on disk may have changed.
func (b *blocks) forget() {
	b.sound.Store(false)
	for i := range b.whole {
		b.whole[i].Store(false)
	}
	for i := range b.right {
		for old := b.right[i].Swap(0); old != 0; old &= old - 1 {
			b.left.Add(1)
		}
	}
	b.sound.Store(false) // another goroutine may have verified the last block meanwhile
}

func (b *blocks) tellDamage(damage *apierr.Corruption) {
	if f := b.tell.Load(); f != nil {
		(*f)(damage)
	}
}

// writeSums writes the checksums of all that has been written so far.
func (w *fileWriter) writeSums() {
	w.pad(sectionAlign)
	w.flush()
	if w.sumFill > 0 {
		w.sums = binary.LittleEndian.AppendUint32(w.sums, uint32(w.blockSum.Sum64()))
	}
	sums := w.sums
	w.add(tagSums, 0, sums)
}

// sumBlocks computes the checksums of the blocks of the bytes that are written to the file next.
func (w *fileWriter) sumBlocks(p []byte) {
	for len(p) > 0 {
		n := min(len(p), blockBytes-w.sumFill)
		if n == blockBytes {
			w.sums = binary.LittleEndian.AppendUint32(w.sums, uint32(xxhash.Sum64(p[:n])))
		} else {
			_, _ = w.blockSum.Write(p[:n])
			if w.sumFill += n; w.sumFill == blockBytes {
				w.sums = binary.LittleEndian.AppendUint32(w.sums, uint32(w.blockSum.Sum64()))
				w.blockSum.Reset()
				w.sumFill = 0
			}
		}
		p = p[n:]
	}
}

func buildSums(_ context.Context, _ *Builder, f *fileWriter) error {
	f.writeSums()
	return nil
}

// openSums has nothing to do: the checksums are read before all other sections.
func (r *Reader) openSums() error { return nil }

func (m *merger) writeSums() error {
	m.f.writeSums()
	return nil
}

// verifySums hashes all blocks, verified before or not. Files of format 1 have no such checksums.
func (r *Reader) verifySums() error {
	if r.blocks.sums == nil {
		return nil
	}
	for i := range len(r.blocks.sums) / sumBytes {
		if damage := r.blocks.compare(i, anyByte); damage != nil {
			return damage
		}
	}
	return nil
}

func (i *inspector) sums() {
	i.t.List(len(i.p)/sumBytes, inspectItems, func(n int) {
		i.field(sumBytes, "block at %06x: checksum %08x", n*blockBytes, i.u32())
	})
}
