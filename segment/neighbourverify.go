package segment

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// pairName is how a pair is called where it is wrong: field, first and second.
func pairName(key uint32, second int) string {
	return fmt.Sprintf("%04x.%04x.%04x", key>>16, key&0xffff, second)
}

// verifyNeighbours checks that the words are those of postings, in order, and that the list of each pair has the rows given by the
// positions of its words.
func (r *Reader) verifyNeighbours() error {
	n := r.allNeighbours()
	of := neighbourSource{rows: r.rows}
	it := r.Terms(nil, nil, nil)
	for it.Next() {
		if i, ok := n.number(int(it.walk.Value())); ok {
			if i != len(of.postings) {
				return r.damaged(tagNeighbours, "the words are not in order")
			}
			of.postings = append(of.postings, it.Posting())
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	if words := len(n.words) / neighbourWordBytes; len(of.postings) != words {
		return r.damaged(tagNeighbours, "%d words of which %d have a posting", words, len(of.postings))
	}
	if err := r.verifyPairOrder(n, len(of.postings)); err != nil {
		return err
	}
	at := 0
	for _, field := range fieldsOf([]neighbourSource{of}) {
		from := at
		for at < n.blockCount() && n.key(at)>>16 == uint32(field) {
			at++
		}
		if err := r.verifyPairs(&of, n, field, from, at); err != nil {
			return err
		}
	}
	if at != n.blockCount() {
		return r.damaged(tagNeighbours, "%d blocks, of which %d are of a field with words", n.blockCount(), at)
	}
	return nil
}

// verifyPairOrder checks that the blocks are contiguous, and that their pairs are in order.
func (r *Reader) verifyPairOrder(n *neighbourReader, words int) error {
	at := len(n.section)
	if n.section != nil {
		at = neighbourHeadBytes + len(n.words) + len(n.blocks)
	}
	for i := range n.blockCount() {
		key := n.key(i)
		if i > 0 && n.key(i-1) >= key {
			return r.damaged(tagNeighbours, "the block %08x follows %08x", key, n.key(i-1))
		}
		b, ok := n.block(i)
		if !ok || b.offset != at {
			return r.damaged(tagNeighbours, "the block %08x is not inside, or not behind the one before", key)
		}
		if first := int(key & 0xffff); first >= words {
			return r.damaged(tagNeighbours, "the block %08x is of a word beyond %d", key, words)
		}
		if b.pairs() == 0 {
			return r.damaged(tagNeighbours, "the block %08x has no pairs", key)
		}
		for k := range b.pairs() {
			if b.second(k) >= words {
				return r.damaged(tagNeighbours, "the pair %s is of a word beyond %d", pairName(key, b.second(k)), words)
			}
			if k > 0 && b.second(k-1) >= b.second(k) {
				return r.damaged(tagNeighbours, "the pair %s follows %s", pairName(key, b.second(k)), pairName(key, b.second(k-1)))
			}
			if _, ok := b.list(nil, k); !ok {
				return r.damaged(tagNeighbours, "the rows of the pair %s are not inside", pairName(key, b.second(k)))
			}
		}
		at = b.listOffset + b.end(b.pairs()-1)
		at += -at & (postingAlign - 1)
	}
	if at != len(n.section) {
		return r.damaged(tagNeighbours, "%d bytes, of which blocks have %d", len(n.section), at)
	}
	return nil
}

// pairSum is of rows in their order.
type pairSum struct {
	hash  uint64
	count int32
	last  uint32
}

func (s *pairSum) add(row uint32) {
	s.hash = (bits.RotateLeft64(s.hash, 29) ^ uint64(row) + 1) * 0x9e3779b97f4a7c15
	s.count++
	s.last = row
}

// verifyPairs reads the rows in which words are neighbours in a field, and compares the sum of each pair with the lists of
// some blocks. It holds one sum per pair.
func (r *Reader) verifyPairs(of *neighbourSource, n *neighbourReader, field FieldID, from, to int) error {
	blockOf := make([]pairBlock, len(of.postings)) // by first word
	begin := make([]int, len(of.postings))         // of its sums
	pairs := 0
	for i := from; i < to; i++ {
		first := n.key(i) & 0xffff
		blockOf[first], _ = n.block(i)
		begin[first] = pairs
		pairs += blockOf[first].pairs()
	}
	sums := make([]pairSum, pairs)
	err := of.eachNeighbour(field, func(int) error { return nil }, func(first, second int, row uint32) error {
		i, ok := blockOf[first].find(second)
		if !ok {
			return r.damaged(tagNeighbours, "no list of the pair %s, which stands in row %d", pairName(blockKey(field, first), second), row)
		}
		if s := &sums[begin[first]+i]; s.count == 0 || s.last != row {
			s.add(row)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		key := n.key(i)
		b := &blockOf[key&0xffff]
		for k := range b.pairs() {
			l, _ := b.list(&r.blocks, k)
			rows, err := r.verifyRows(tagNeighbours, l, r.rows)
			if err != nil {
				return fmt.Errorf("pair %s: %w", pairName(key, b.second(k)), err)
			}
			var want pairSum
			for _, row := range rows {
				want.add(row)
			}
			switch got := sums[begin[key&0xffff]+k]; {
			case got.count != want.count:
				return r.damaged(tagNeighbours, "the pair %s stands in %d rows, and has %d", pairName(key, b.second(k)), got.count, want.count)
			case got.hash != want.hash:
				return r.damaged(tagNeighbours, "the pair %s has other rows than those %d that it stands in", pairName(key, b.second(k)), got.count)
			}
		}
	}
	return nil
}

func (i *inspector) neighbours() {
	n := i.r.allNeighbours()
	words := len(n.words) / neighbourWordBytes
	i.field(4, "%d words", words)
	i.field(4, "%d blocks", n.blockCount())
	i.t.List(words, inspectItems, func(k int) { i.field(neighbourWordBytes, "word %d: posting at %d", k, i.u64()) })
	i.at = neighbourHeadBytes + len(n.words)
	i.t.List(n.blockCount(), inspectItems, func(k int) {
		e := n.blocks[k*neighbourBlockBytes:]
		i.field(neighbourBlockBytes, "field %d, behind word %d: %d pairs at %d", n.key(k)>>16, n.key(k)&0xffff, binary.LittleEndian.Uint32(e[4:]),
			binary.LittleEndian.Uint64(e[8:]))
	})
	i.t.List(n.blockCount(), inspectItems, func(k int) {
		if b, ok := n.block(k); ok {
			i.pairBlock(&b, k)
		}
	})
}

// pairBlock prints a block.
func (i *inspector) pairBlock(b *pairBlock, number int) {
	i.t.Node(func() {
		i.at = b.offset
		i.t.List(b.pairs(), inspectItems, func(k int) { i.field(2, "word %d", b.second(k)) })
		i.at = b.offset + len(b.seconds)
		i.t.List(b.pairs(), inspectItems, func(k int) { i.field(4, "its list ends at %d", b.end(k)) })
		i.at = b.offset + len(b.seconds) + len(b.ends)
		i.padding(b.listOffset)
		i.t.List(b.pairs(), inspectItems, func(k int) {
			l, ok := b.list(nil, k)
			if !ok {
				i.t.Note("the rows of word %d are not inside", b.second(k))
				return
			}
			end := b.listOffset + b.end(k)
			head, _ := peekUvarint(i.p, i.at)
			i.field(head, "%d rows, %s", l.Count, codeName(l.Code))
			i.padding(end - len(l.P))
			i.rows(l)
		})
		if b.pairs() <= inspectItems {
			i.padding(i.at + -i.at&(postingAlign-1))
		}
	}, "block %d", number)
}

// padding prints the bytes up to a place in the section.
func (i *inspector) padding(end int) {
	if end > i.at {
		i.field(end-i.at, "padding")
	}
}
