package segment

import (
	"encoding/binary"
	"slices"
	"sort"
)

// forward finds the ordinals of a row.
type forward struct {
	kind  int
	width int
	have  int       // rows with any
	bits  bitPlanes // of forwardPlanes
	rows  []byte    // of forwardSparse
	start []byte
	ords  []byte
}

// openForward opens the part "row → ordinals" of a column of a segment with the given number of rows. ords is the number of ordinals;
// with none the part is empty.
func openForward(b *blocks, p []byte, rows, ords int) (forward, bool) {
	if ords == 0 {
		return forward{}, true
	}
	if len(p) < 8 {
		return forward{}, false
	}
	b.touch(p[:8])
	f := forward{kind: int(p[0]), width: int(p[1]), have: int(binary.LittleEndian.Uint32(p[4:]))}
	p = p[8:]
	w := uint64(f.width)
	n := uint64(rows)
	if f.kind == forwardPlanes {
		size := planesBytes(rows, f.width)
		if w > maxPlanes || ords >= 1<<w || size > len(p) {
			return forward{}, false
		}
		f.ords = p[:size]
		f.bits = bitPlanes{n: f.width, rows: rows, words: f.ords}
		return f, true
	}
	if w != 1 && w != 2 && w != 4 {
		return forward{}, false
	}
	switch f.kind {
	case forwardSingle:
		if w*n > uint64(len(p)) {
			return forward{}, false
		}
		f.ords = p[:w*n]
		return f, true
	case forwardSparse:
		n = uint64(f.have)
		if 4*n > uint64(len(p)) {
			return forward{}, false
		}
		f.rows, p = p[:4*n], p[4*n:]
	case forwardMulti:
	default:
		return forward{}, false
	}
	if 4*(n+1) > uint64(len(p)) {
		return forward{}, false
	}
	f.start, p = p[:4*(n+1)], p[4*(n+1):]
	b.touch(f.start[4*n:])
	if m := w * uint64(binary.LittleEndian.Uint32(f.start[4*n:])); m > uint64(len(p)) {
		return forward{}, false
	} else {
		f.ords = p[:m]
	}
	return f, true
}

// append appends the ordinals of a row.
func (f *forward) append(dst []uint32, row Row) []uint32 {
	i := int(row)
	switch f.kind {
	case forwardSingle:
		if i*f.width >= len(f.ords) {
			return dst
		}
		ord := readUint(f.ords, f.width, i)
		if ord == noOrdinal>>(32-8*f.width) {
			return dst
		}
		return append(dst, ord)
	case forwardSparse:
		i = sort.Search(f.have, func(i int) bool { return binary.LittleEndian.Uint32(f.rows[4*i:]) >= uint32(row) })
		if i == f.have || binary.LittleEndian.Uint32(f.rows[4*i:]) != uint32(row) {
			return dst
		}
	case forwardPlanes:
		if i < f.bits.rows {
			if ord := f.bits.ordinal(i); ord != 1<<f.bits.n-1 {
				dst = append(dst, ord)
			}
		}
		return dst
	case forwardMulti:
		if 4*i+8 > len(f.start) {
			return dst
		}
	default:
		return dst
	}
	from, to := int(binary.LittleEndian.Uint32(f.start[4*i:])), int(binary.LittleEndian.Uint32(f.start[4*i+4:]))
	if to > len(f.ords)/f.width {
		return dst
	}
	for ; from < to; from++ {
		dst = append(dst, readUint(f.ords, f.width, from))
	}
	return dst
}

// each appends the ordinals of each row, and for each of them the place of its row in rows. Ordinals from size on are left out.
func (f *forward) each(ords, places, rows []uint32, size int) (_, _ []uint32) {
	switch f.kind {
	case forwardSingle:
		return f.eachSingle(ords, places, rows, size)
	case forwardPlanes:
		return f.bits.each(ords, places, rows, size)
	}
	for i, row := range rows {
		from := len(ords)
		ords = f.append(ords, Row(row))
		kept := ords[:from]
		for _, ord := range ords[from:] {
			if int(ord) < size {
				kept, places = append(kept, ord), append(places, uint32(i))
			}
		}
		ords = kept
	}
	return ords, places
}

// eachSingle is each where a row has one ordinal at most. The mark of a row without a value is an ordinal past size. Each row is written,
// and some stay: branches would depend on the values.
func (f *forward) eachSingle(ords, places, rows []uint32, size int) (_, _ []uint32) {
	n, m := len(ords), len(places)
	ords, places = slices.Grow(ords, len(rows))[:n+len(rows)], slices.Grow(places, len(rows))[:m+len(rows)]
	at, to, got := ords[n:], places[m:], 0
	switch f.width {
	case 1:
		for i, row := range rows {
			if int(row) < len(f.ords) {
				ord := uint32(f.ords[row])
				at[got], to[got] = ord, uint32(i)
				if int(ord) < size {
					got++
				}
			}
		}
	case 2:
		for i, row := range rows {
			if p := 2 * int(row); p+2 <= len(f.ords) {
				ord := uint32(binary.LittleEndian.Uint16(f.ords[p:]))
				at[got], to[got] = ord, uint32(i)
				if int(ord) < size {
					got++
				}
			}
		}
	default:
		for i, row := range rows {
			if p := 4 * int(row); p+4 <= len(f.ords) {
				ord := binary.LittleEndian.Uint32(f.ords[p:])
				at[got], to[got] = ord, uint32(i)
				if int(ord) < size {
					got++
				}
			}
		}
	}
	return ords[:n+got], places[:m+got]
}

// with appends those rows that have an ordinal in [lo, hi). dst may be rows[:0].
func (f *forward) with(dst, rows []uint32, lo, hi uint32) []uint32 {
	if f.kind == forwardSingle {
		return f.withSingle(dst, rows, lo, hi)
	}
	if f.kind == forwardPlanes {
		return f.bits.with(dst, rows, int(lo), int(hi))
	}
	var buf []uint32
	for _, row := range rows {
		buf = f.append(buf[:0], Row(row))
		for _, ord := range buf {
			if ord-lo < hi-lo {
				dst = append(dst, row)
				break
			}
		}
	}
	return dst
}

// withSingle is with where a row has one ordinal at most. It writes as eachSingle does.
func (f *forward) withSingle(dst, rows []uint32, lo, hi uint32) []uint32 {
	n := len(dst)
	dst = slices.Grow(dst, len(rows))[:n+len(rows)]
	at, got := dst[n:], 0
	switch f.width {
	case 1:
		for _, row := range rows {
			if int(row) < len(f.ords) {
				at[got] = row
				if uint32(f.ords[row])-lo < hi-lo {
					got++
				}
			}
		}
	case 2:
		for _, row := range rows {
			if p := 2 * int(row); p+2 <= len(f.ords) {
				at[got] = row
				if uint32(binary.LittleEndian.Uint16(f.ords[p:]))-lo < hi-lo {
					got++
				}
			}
		}
	default:
		for _, row := range rows {
			if p := 4 * int(row); p+4 <= len(f.ords) {
				at[got] = row
				if binary.LittleEndian.Uint32(f.ords[p:])-lo < hi-lo {
					got++
				}
			}
		}
	}
	return dst[:n+got]
}

// chosen appends the rows whose ordinal has its bit set; bit size is for rows without an ordinal. A row has at most one ordinal. It
// writes like eachSingle.
func (f *forward) chosen(dst, rows []uint32, bits []uint64, size int) []uint32 {
	n := len(dst)
	dst = slices.Grow(dst, len(rows))[:n+len(rows)]
	if f.width == 1 && size <= noByte { // a forged segment may have more values
		return dst[:n+chosenBytes(dst[n:], rows, f.ords, bits, size)]
	}
	at, got := dst[n:], 0
	for _, row := range rows {
		ord := size
		switch f.width {
		case 1:
			if int(row) < len(f.ords) {
				ord = min(int(f.ords[row]), size)
			}
		case 2:
			if p := 2 * int(row); p+2 <= len(f.ords) {
				ord = min(int(binary.LittleEndian.Uint16(f.ords[p:])), size)
			}
		case 4:
			if p := 4 * int(row); p+4 <= len(f.ords) {
				ord = min(int(binary.LittleEndian.Uint32(f.ords[p:])), size)
			}
		}
		at[got] = row
		got += int(bits[ord/64] >> (ord % 64) & 1)
	}
	return dst[:n+got]
}

// noByte is noOrdinal in a table of bytes.
const noByte = noOrdinal & 0xff

// chosenBytes is chosen for ordinals of one byte. Ordinals from size on use the bit of size. It returns how many rows it has written
// to at.
func chosenBytes(at, rows []uint32, ords []byte, bits []uint64, size int) (got int) {
	var of [(noByte + 1) / 64]uint64
	copy(of[:], bits)
	if bits[size/64]>>(size%64)&1 != 0 {
		of[size/64] |= ^uint64(0) << (size % 64)
		for i := size/64 + 1; i < len(of); i++ {
			of[i] = ^uint64(0)
		}
	} else {
		of[size/64] &= 1<<(size%64) - 1
		clear(of[size/64+1:])
	}
	for _, row := range rows {
		ord := byte(noByte)
		if int(row) < len(ords) {
			ord = ords[row]
		}
		at[got] = row
		got += int(of[ord/64] >> (ord % 64) & 1)
	}
	return got
}

// count adds one to the count of each ordinal of each row.
func (f *forward) count(counts, rows []uint32) {
	switch f.kind {
	case forwardSingle:
		f.countSingle(counts, rows)
	case forwardMulti:
		f.countMulti(counts, rows)
	default:
		var buf []uint32
		for _, row := range rows {
			buf = f.append(buf[:0], Row(row))
			for _, ord := range buf {
				if int(ord) < len(counts) {
					counts[ord]++
				}
			}
		}
	}
}

// countMulti counts where a row may have several ordinals.
func (f *forward) countMulti(counts, rows []uint32) {
	ords := len(f.ords) / f.width
	for _, row := range rows {
		at := 4 * int(row)
		if at+8 > len(f.start) {
			continue
		}
		start := f.start[at : at+8]
		from, to := int(binary.LittleEndian.Uint32(start)), min(int(binary.LittleEndian.Uint32(start[4:])), ords)
		if from >= to {
			continue
		}
		switch f.width {
		case 1:
			for _, ord := range f.ords[from:to] {
				if int(ord) < len(counts) {
					counts[ord]++
				}
			}
		case 2:
			for p := f.ords[2*from : 2*to]; len(p) >= 2; p = p[2:] {
				if ord := int(binary.LittleEndian.Uint16(p)); ord < len(counts) {
					counts[ord]++
				}
			}
		default:
			for p := f.ords[4*from : 4*to]; len(p) >= 4; p = p[4:] {
				if ord := int(binary.LittleEndian.Uint32(p)); ord < len(counts) {
					counts[ord]++
				}
			}
		}
	}
}

// countSingle counts where a row has one ordinal at most. An ordinal past the
// counts is the mark of a row without a value.
func (f *forward) countSingle(counts, rows []uint32) {
	switch f.width {
	case 1:
		for _, row := range rows {
			if int(row) < len(f.ords) {
				if ord := int(f.ords[row]); ord < len(counts) {
					counts[ord]++
				}
			}
		}
	case 2:
		for _, row := range rows {
			if at := 2 * int(row); at+2 <= len(f.ords) {
				if ord := int(binary.LittleEndian.Uint16(f.ords[at:])); ord < len(counts) {
					counts[ord]++
				}
			}
		}
	default:
		for _, row := range rows {
			if int(row)*f.width < len(f.ords) {
				if ord := readUint(f.ords, f.width, int(row)); int(ord) < len(counts) {
					counts[ord]++
				}
			}
		}
	}
}
