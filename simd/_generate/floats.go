package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Dot products and squared distances of rows of float32, two at a time and gathered by number.

const accumulators = 4 // hides the latency of a fused multiply-add

// floats writes a dot product (or squared distance) over 8-lane registers:
// four accumulators, then single registers, then single elements.
func floats(name string, squared bool) {
	TEXT(name, NOSPLIT, "func(a, b []float32) float32")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s needs AVX2 and FMA, and len(b) >= len(a).", name))
	a, b, n := operands()
	acc := make([]VecVirtual, accumulators)
	for i := range acc {
		acc[i] = YMM()
		VXORPS(acc[i], acc[i], acc[i])
	}
	step := func(offset int, into VecVirtual) {
		x := YMM()
		VMOVUPS(Mem{Base: a, Disp: offset}, x)
		if squared {
			VSUBPS(Mem{Base: b, Disp: offset}, x, x)
			VFMADD231PS(x, x, into)
		} else {
			VFMADD231PS(Mem{Base: b, Disp: offset}, x, into)
		}
	}
	Label("block")
	CMPQ(n, U8(8*accumulators))
	JL(LabelRef("single"))
	for i := range acc {
		step(32*i, acc[i])
	}
	ADDQ(U32(32*accumulators), a)
	ADDQ(U32(32*accumulators), b)
	SUBQ(U8(8*accumulators), n)
	JMP(LabelRef("block"))

	Label("single")
	CMPQ(n, U8(8))
	JL(LabelRef("reduce"))
	step(0, acc[0])
	ADDQ(U8(32), a)
	ADDQ(U8(32), b)
	SUBQ(U8(8), n)
	JMP(LabelRef("single"))

	Label("reduce")
	VADDPS(acc[1], acc[0], acc[0])
	VADDPS(acc[3], acc[2], acc[2])
	VADDPS(acc[2], acc[0], acc[0])
	sum := acc[0].AsX()
	high := XMM()
	VEXTRACTF128(U8(1), acc[0], high)
	VADDPS(high, sum, sum)
	VHADDPS(sum, sum, sum)
	VHADDPS(sum, sum, sum)

	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	x := XMM()
	VMOVSS(Mem{Base: a}, x)
	if squared {
		VSUBSS(Mem{Base: b}, x, x)
		VFMADD231SS(x, x, sum)
	} else {
		VFMADD231SS(Mem{Base: b}, x, sum)
	}
	ADDQ(U8(4), a)
	ADDQ(U8(4), b)
	DECQ(n)
	JMP(LabelRef("tail"))

	Label("done")
	VZEROUPPER()
	Store(sum, ReturnIndex(0))
	RET()
}

// tailMask sets a mask register to the lowest n bits, n < 64.
func tailMask(n GPVirtual, move func(r GPVirtual)) {
	ones := GP64()
	MOVQ(I64(-1), ones)
	bits := GP64()
	BZHIQ(n, ones, bits)
	move(bits)
}

// floats512 is floats over 16-lane registers with a masked tail.
func floats512(name string, squared bool) {
	TEXT(name, NOSPLIT, "func(a, b []float32) float32")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s needs AVX-512 F and BMI2, and len(b) >= len(a).", name))
	a, b, n := operands()
	acc := make([]VecVirtual, accumulators)
	for i := range acc {
		acc[i] = ZMM()
		VXORPS(acc[i].AsY(), acc[i].AsY(), acc[i].AsY())
	}
	add := func(x VecVirtual, y Op, into VecVirtual) {
		if squared {
			VSUBPS(y, x, x)
			VFMADD231PS(x, x, into)
		} else {
			VFMADD231PS(y, x, into)
		}
	}
	step := func(offset int, into VecVirtual) {
		x := ZMM()
		VMOVUPS(Mem{Base: a, Disp: offset}, x)
		add(x, Mem{Base: b, Disp: offset}, into)
	}
	Label("block")
	CMPQ(n, U8(16*accumulators))
	JL(LabelRef("single"))
	for i := range acc {
		step(64*i, acc[i])
	}
	ADDQ(U32(64*accumulators), a)
	ADDQ(U32(64*accumulators), b)
	SUBQ(U8(16*accumulators), n)
	JMP(LabelRef("block"))

	Label("single")
	CMPQ(n, U8(16))
	JL(LabelRef("tail"))
	step(0, acc[0])
	ADDQ(U8(64), a)
	ADDQ(U8(64), b)
	SUBQ(U8(16), n)
	JMP(LabelRef("single"))

	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("reduce"))
	mask := K()
	tailMask(n, func(r GPVirtual) { KMOVW(r.As32(), mask) })
	x, y := ZMM(), ZMM()
	VMOVUPS_Z(Mem{Base: a}, mask, x)
	VMOVUPS_Z(Mem{Base: b}, mask, y)
	add(x, y, acc[1])

	Label("reduce")
	VADDPS(acc[1], acc[0], acc[0])
	VADDPS(acc[3], acc[2], acc[2])
	VADDPS(acc[2], acc[0], acc[0])
	half := YMM()
	VEXTRACTF64X4(U8(1), acc[0], half)
	VADDPS(half, acc[0].AsY(), half)
	quarter := XMM()
	VEXTRACTF128(U8(1), half, quarter)
	sum := half.AsX()
	VADDPS(quarter, sum, sum)
	VHADDPS(sum, sum, sum)
	VHADDPS(sum, sum, sum)
	VZEROUPPER()
	Store(sum, ReturnIndex(0))
	RET()
}

// gatherFloats writes the dot products and the sums of squares of one row after
// another, in one pass over each, while a row after it is being fetched: four
// accumulators each, then single registers, then single elements. Elements of
// rows have 4 bytes, or 2 for half precision.
func gatherFloats(name string, register func() VecVirtual, lanes, size int) {
	signature, needs := "func(dots, squares, q, rows []float32, ids []uint32)", map[int]string{8: "AVX2 and FMA", 16: "AVX-512 F"}[lanes]
	if size == 2 {
		signature = "func(dots, squares, q []float32, rows []uint16, ids []uint32)"
		needs = map[int]string{8: "AVX2, FMA and F16C", 16: "AVX-512 F and F16C"}[lanes]
	}
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(fmt.Sprintf("%s needs %s, len(squares) and len(ids) >= len(dots), and every id's row of len(q) elements inside rows.", name, needs))
	const ahead = 2
	q := Load(Param("q").Base(), GP64())
	length := Load(Param("q").Len(), GP64()).(GPVirtual)
	ids := Load(Param("ids").Base(), GP64())
	rows := Load(Param("rows").Base(), GP64())
	n := Load(Param("dots").Len(), GP64()).(GPVirtual)
	dots := Load(Param("dots").Base(), GP64())
	squares := Load(Param("squares").Base(), GP64())
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	var dot, square [accumulators]VecVirtual
	for i := range dot {
		dot[i], square[i] = register(), register()
		VXORPS(dot[i].AsY(), dot[i].AsY(), dot[i].AsY())
		VXORPS(square[i].AsY(), square[i].AsY(), square[i].AsY())
	}
	// Of the last rows, the row itself stands in for the one to fetch.
	row, next, at, end := GP64(), GP64(), GP64(), GP64()
	XORQ(at, at)
	XORQ(next, next)
	MOVQ(U32(ahead), end)
	CMPQ(n, U8(ahead))
	CMOVQGT(end, next)
	MOVL(Mem{Base: ids, Index: next, Scale: 4}, next.As32())
	IMULQ(length, next)
	LEAQ(Mem{Base: rows, Index: next, Scale: uint8(size)}, next)
	MOVL(Mem{Base: ids}, row.As32())
	IMULQ(length, row)
	LEAQ(Mem{Base: rows, Index: row, Scale: uint8(size)}, row)
	step := func(i int) {
		x := register()
		if elements := (Mem{Base: row, Index: at, Scale: uint8(size), Disp: size * lanes * i}); size == 2 {
			VCVTPH2PS(elements, x)
		} else {
			VMOVUPS(elements, x)
		}
		VFMADD231PS(Mem{Base: q, Index: at, Scale: 4, Disp: 4 * lanes * i}, x, dot[i])
		VFMADD231PS(x, x, square[i])
	}
	Label("block")
	LEAQ(Mem{Base: at, Disp: accumulators * lanes}, end)
	CMPQ(end, length)
	JG(LabelRef("single"))
	for line := 0; line < size*accumulators*lanes; line += 64 {
		PREFETCHT0(Mem{Base: next, Index: at, Scale: uint8(size), Disp: line})
	}
	for i := range dot {
		step(i)
	}
	MOVQ(end, at)
	JMP(LabelRef("block"))
	Label("single")
	LEAQ(Mem{Base: at, Disp: lanes}, end)
	CMPQ(end, length)
	JG(LabelRef("reduce"))
	step(0)
	MOVQ(end, at)
	JMP(LabelRef("single"))
	Label("reduce")
	for _, acc := range [2][accumulators]VecVirtual{dot, square} {
		VADDPS(acc[1], acc[0], acc[0])
		VADDPS(acc[3], acc[2], acc[2])
		VADDPS(acc[2], acc[0], acc[0])
		if lanes == 16 {
			half := YMM()
			VEXTRACTF64X4(U8(1), acc[0], half)
			VADDPS(half, acc[0].AsY(), acc[0].AsY())
		}
	}
	sums, high := dot[0].AsX(), XMM()
	VHADDPS(square[0].AsY(), dot[0].AsY(), dot[0].AsY())
	VEXTRACTF128(U8(1), dot[0].AsY(), high)
	VADDPS(high, sums, sums)
	VHADDPS(sums, sums, sums)
	Label("tail") // the lowest lane has the dot product, the next one the squares
	CMPQ(at, length)
	JGE(LabelRef("store"))
	x, y := XMM(), XMM()
	if size == 2 {
		element := GP32()
		MOVWLZX(Mem{Base: row, Index: at, Scale: 2}, element)
		VMOVD(element, x)
		VCVTPH2PS(x, x)
		VBROADCASTSS(x, x)
	} else {
		VBROADCASTSS(Mem{Base: row, Index: at, Scale: 4}, x)
	}
	VMOVSS(Mem{Base: q, Index: at, Scale: 4}, y)
	VINSERTPS(U8(0x10), x, y, y)
	VFMADD231PS(x, y, sums)
	INCQ(at)
	JMP(LabelRef("tail"))
	Label("store")
	VMOVSS(sums, Mem{Base: dots})
	VEXTRACTPS(U8(1), sums, Mem{Base: squares})
	ADDQ(U8(4), dots)
	ADDQ(U8(4), squares)
	ADDQ(U8(4), ids)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}
