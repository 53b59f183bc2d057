package segment

import "encoding/binary"

// directParent marks, in the parent of an element, that there is no array between the two.
const directParent = 1

const elementHeaderBytes = 8

// rowBlock is how many elements share the first row in the section: the row of the first of them.
const rowBlock = 64

// writeElements writes the section of elements:
//
//	u32 elements, u32: bit 0, parents follow; bits 8 and 9, the width w of rows
//	w 0: elements × u32 row, ascending; w 1 or 2 instead:
//	⌈elements ⁄ 64⌉ × u32 row of every 64th element; elements × w bytes, row less that of its 64; padding up to a multiple of 4
//	elements × u32 parent: 0 for none, else its number + 1 times 2, and 1 more where no array stands between
//
// parents is nil if no element has one.
func writeElements(f *fileWriter, rows, parents []uint32) {
	n := len(rows)
	f.limit(elementHeaderBytes+8*n, "elements")
	most := uint32(0)
	for i := 0; i < n; i += rowBlock {
		most = max(most, rows[min(i+rowBlock, n)-1]-rows[i])
	}
	w := width(int(most))
	if w == 4 {
		w = 0
	}
	flags := uint32(w) << 8
	if parents != nil {
		flags |= 1
	}
	f.begin(tagElements, 0)
	f.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(n)), flags))
	if w == 0 {
		f.writeUint32s(n, func(i int) uint32 { return rows[i] })
	} else {
		f.writeUint32s((n+rowBlock-1)/rowBlock, func(i int) uint32 { return rows[rowBlock*i] })
		above := make([]byte, 0, w*n)
		for i := 0; i < n; i += rowBlock {
			for _, row := range rows[i:min(i+rowBlock, n)] {
				above = appendUint(above, w, row-rows[i])
			}
		}
		f.Write(above)
		f.Write(zeros[:-w*n&3])
	}
	if parents != nil {
		f.writeUint32s(n, func(i int) uint32 { return parents[i] })
	}
	f.end()
}

// openElementRows cuts the section of elements, behind its header, into its parts. It returns false if the length is wrong.
func (e *Elements) openElementRows(p []byte, w int) bool {
	first, above, parents := 0, 4*e.n, 0
	if w > 0 {
		first, above = 4*((e.n+rowBlock-1)/rowBlock), w*e.n
	}
	if e.nested {
		parents = 4 * e.n
	}
	if w > 2 || len(p) != first+(above+3)&^3+parents {
		return false
	}
	e.first, e.above, e.width = p[:first], p[first:first+above], w
	e.parents = p[len(p)-parents:]
	return true
}

// row returns the row of an element.
func (e *Elements) row(i int) uint32 {
	if e.width != 1 {
		return e.wideRow(i)
	}
	return binary.LittleEndian.Uint32(e.first[i/rowBlock*4:]) + uint32(e.above[i])
}

func (e *Elements) wideRow(i int) uint32 {
	if e.width == 2 {
		return binary.LittleEndian.Uint32(e.first[i/rowBlock*4:]) + uint32(binary.LittleEndian.Uint16(e.above[2*i:]))
	}
	return binary.LittleEndian.Uint32(e.above[4*i:])
}

func (e *Elements) parentCode(i int) uint32 {
	if !e.nested {
		return 0
	}
	return binary.LittleEndian.Uint32(e.parents[4*i:])
}
