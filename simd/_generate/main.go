// Command generate writes the amd64 kernels of package simd. Run it through
// go generate in the package's directory.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!noasm")
	floats("dotAVX2", false)
	floats("l2AVX2", true)
	floats512("dotAVX512", false)
	floats512("l2AVX512", true)
	gatherFloats("gatherFloatsAVX2", YMM, 8)
	gatherFloats("gatherFloatsAVX512", ZMM, 16)
	int8AVX2()
	int8VNNI()
	hammingAVX2()
	hammingAVX512()
	gatherAVX2()
	gatherVNNI()
	gatherHamming()
	quantizeAVX2()
	largestAVX2()
	ones("onesRare", 0)
	ones("ones2", 2)
	ones("ones4", 4)
	ones("ones7", 7)
	prefetch()
	Generate()
}

// operands loads the two slices' addresses and the common length.
func operands() (a, b Register, n GPVirtual) {
	a = Load(Param("a").Base(), GP64())
	b = Load(Param("b").Base(), GP64())
	n = Load(Param("a").Len(), GP64()).(GPVirtual)
	return a, b, n
}

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
// accumulators each, then single registers, then single elements.
func gatherFloats(name string, register func() VecVirtual, lanes int) {
	TEXT(name, NOSPLIT, "func(dots, squares, q, rows []float32, ids []uint32)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s needs %s, len(squares) and len(ids) >= len(dots), and every id's row of len(q) elements inside rows.",
		name, map[int]string{8: "AVX2 and FMA", 16: "AVX-512 F"}[lanes]))
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
	LEAQ(Mem{Base: rows, Index: next, Scale: 4}, next)
	MOVL(Mem{Base: ids}, row.As32())
	IMULQ(length, row)
	LEAQ(Mem{Base: rows, Index: row, Scale: 4}, row)
	step := func(i int) {
		x := register()
		VMOVUPS(Mem{Base: row, Index: at, Scale: 4, Disp: 4 * lanes * i}, x)
		VFMADD231PS(Mem{Base: q, Index: at, Scale: 4, Disp: 4 * lanes * i}, x, dot[i])
		VFMADD231PS(x, x, square[i])
	}
	Label("block")
	LEAQ(Mem{Base: at, Disp: accumulators * lanes}, end)
	CMPQ(end, length)
	JG(LabelRef("single"))
	for line := 0; line < 4*accumulators*lanes; line += 64 {
		PREFETCHT0(Mem{Base: next, Index: at, Scale: 4, Disp: line})
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
	VBROADCASTSS(Mem{Base: row, Index: at, Scale: 4}, x)
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

// sumInt32 adds the lanes of a 256-bit register of int32 and returns the sum.
func sumInt32(acc VecVirtual) {
	high := XMM()
	VEXTRACTI128(U8(1), acc, high)
	sum := acc.AsX()
	VPADDD(high, sum, sum)
	VPSHUFD(U8(0x4e), sum, high)
	VPADDD(high, sum, sum)
	VPSHUFD(U8(0xb1), sum, high)
	VPADDD(high, sum, sum)
	result := GP32()
	VMOVD(sum, result)
	VZEROUPPER()
	Store(result, ReturnIndex(0))
	RET()
}

// int8AVX2 widens to 16 bits: no pair of products can saturate.
func int8AVX2() {
	TEXT("dotInt8AVX2", NOSPLIT, "func(a, b []int8) int32")
	Pragma("noescape")
	Doc("dotInt8AVX2 needs AVX2, len(a) a multiple of 16, and len(b) >= len(a).")
	a, b, n := operands()
	acc := [2]VecVirtual{YMM(), YMM()}
	for i := range acc {
		VPXOR(acc[i], acc[i], acc[i])
	}
	step := func(offset int, into VecVirtual) {
		x, y := YMM(), YMM()
		VPMOVSXBW(Mem{Base: a, Disp: offset}, x)
		VPMOVSXBW(Mem{Base: b, Disp: offset}, y)
		VPMADDWD(y, x, x)
		VPADDD(x, into, into)
	}
	Label("block")
	CMPQ(n, U8(32))
	JL(LabelRef("single"))
	step(0, acc[0])
	step(16, acc[1])
	ADDQ(U8(32), a)
	ADDQ(U8(32), b)
	SUBQ(U8(32), n)
	JMP(LabelRef("block"))
	Label("single")
	TESTQ(n, n)
	JZ(LabelRef("reduce"))
	step(0, acc[0])
	Label("reduce")
	VPADDD(acc[1], acc[0], acc[0])
	sumInt32(acc[0])
}

// int8VNNI multiplies unsigned by signed bytes: a+128 times b, less 128 times
// the sum of b, which the same instruction gathers.
func int8VNNI() {
	TEXT("dotInt8VNNI", NOSPLIT, "func(a, b []int8) int32")
	Pragma("noescape")
	Doc("dotInt8VNNI needs AVX-512 F, BW, VNNI and BMI2, and len(b) >= len(a).")
	a, b, n := operands()
	bias, acc, sums := ZMM(), ZMM(), ZMM()
	byte128 := GP32()
	MOVL(U32(0x80), byte128)
	VPBROADCASTB(byte128, bias)
	VPXOR(acc.AsY(), acc.AsY(), acc.AsY())
	VPXOR(sums.AsY(), sums.AsY(), sums.AsY())
	add := func(x VecVirtual, y VecVirtual) {
		VPXORD(bias, x, x)
		VPDPBUSD(y, x, acc)
		VPDPBUSD(y, bias, sums)
	}
	Label("block")
	CMPQ(n, U8(64))
	JL(LabelRef("tail"))
	x, y := ZMM(), ZMM()
	VMOVDQU8(Mem{Base: a}, x)
	VMOVDQU8(Mem{Base: b}, y)
	add(x, y)
	ADDQ(U8(64), a)
	ADDQ(U8(64), b)
	SUBQ(U8(64), n)
	JMP(LabelRef("block"))
	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("reduce"))
	mask := K()
	tailMask(n, func(r GPVirtual) { KMOVQ(r, mask) })
	x, y = ZMM(), ZMM()
	VMOVDQU8_Z(Mem{Base: a}, mask, x)
	VMOVDQU8_Z(Mem{Base: b}, mask, y)
	add(x, y)
	Label("reduce")
	VPSUBD(sums, acc, acc)
	half := YMM()
	VEXTRACTI64X4(U8(1), acc, half)
	VPADDD(half, acc.AsY(), half)
	sumInt32(half)
}

// hammingAVX2 counts bits by a table of 16 nibbles (W. Muła, N. Kurz, D. Lemire,
// "Faster Population Counts Using AVX2 Instructions", 2016).
func hammingAVX2() {
	nibbles := GLOBL("nibbleBits", RODATA|NOPTR)
	for i := range 32 {
		bits := (i & 1) + (i >> 1 & 1) + (i >> 2 & 1) + (i >> 3 & 1)
		DATA(i, U8(bits))
	}
	TEXT("hammingAVX2", NOSPLIT, "func(a, b []uint64) int64")
	Pragma("noescape")
	Doc("hammingAVX2 needs AVX2 and POPCNT, and len(b) >= len(a).")
	a, b, n := operands()
	table, low, zero, acc := YMM(), YMM(), YMM(), YMM()
	VMOVDQU(nibbles, table)
	fifteen := GP32()
	MOVL(U32(0x0f0f0f0f), fifteen)
	VMOVD(fifteen, low.AsX())
	VPBROADCASTD(low.AsX(), low)
	VPXOR(zero, zero, zero)
	VPXOR(acc, acc, acc)
	Label("block")
	CMPQ(n, U8(4))
	JL(LabelRef("reduce"))
	x, high := YMM(), YMM()
	VMOVDQU(Mem{Base: a}, x)
	VPXOR(Mem{Base: b}, x, x)
	VPSRLW(U8(4), x, high)
	VPAND(low, x, x)
	VPAND(low, high, high)
	VPSHUFB(x, table, x)
	VPSHUFB(high, table, high)
	VPADDB(high, x, x)
	VPSADBW(zero, x, x)
	VPADDQ(x, acc, acc)
	ADDQ(U8(32), a)
	ADDQ(U8(32), b)
	SUBQ(U8(4), n)
	JMP(LabelRef("block"))
	Label("reduce")
	other := XMM()
	VEXTRACTI128(U8(1), acc, other)
	VPADDQ(other, acc.AsX(), other)
	total, second := GP64(), GP64()
	VPEXTRQ(U8(1), other, second)
	VMOVQ(other, total)
	ADDQ(second, total)
	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	word := GP64()
	MOVQ(Mem{Base: a}, word)
	XORQ(Mem{Base: b}, word)
	POPCNTQ(word, word)
	ADDQ(word, total)
	ADDQ(U8(8), a)
	ADDQ(U8(8), b)
	DECQ(n)
	JMP(LabelRef("tail"))
	Label("done")
	VZEROUPPER()
	Store(total, ReturnIndex(0))
	RET()
}

func hammingAVX512() {
	TEXT("hammingAVX512", NOSPLIT, "func(a, b []uint64) int64")
	Pragma("noescape")
	Doc("hammingAVX512 needs AVX-512 F, VPOPCNTDQ and BMI2, and len(b) >= len(a).")
	a, b, n := operands()
	acc := ZMM()
	VPXOR(acc.AsY(), acc.AsY(), acc.AsY())
	Label("block")
	CMPQ(n, U8(8))
	JL(LabelRef("tail"))
	x := ZMM()
	VMOVDQU64(Mem{Base: a}, x)
	VPXORQ(Mem{Base: b}, x, x)
	VPOPCNTQ(x, x)
	VPADDQ(x, acc, acc)
	ADDQ(U8(64), a)
	ADDQ(U8(64), b)
	SUBQ(U8(8), n)
	JMP(LabelRef("block"))
	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("reduce"))
	mask := K()
	tailMask(n, func(r GPVirtual) { KMOVW(r.As32(), mask) })
	x = ZMM()
	y := ZMM()
	VMOVDQU64_Z(Mem{Base: a}, mask, x)
	VMOVDQU64_Z(Mem{Base: b}, mask, y)
	VPXORQ(y, x, x)
	VPOPCNTQ(x, x)
	VPADDQ(x, acc, acc)
	Label("reduce")
	half := YMM()
	VEXTRACTI64X4(U8(1), acc, half)
	VPADDQ(half, acc.AsY(), half)
	quarter := XMM()
	VEXTRACTI128(U8(1), half, quarter)
	VPADDQ(quarter, half.AsX(), quarter)
	total, second := GP64(), GP64()
	VPEXTRQ(U8(1), quarter, second)
	VMOVQ(quarter, total)
	ADDQ(second, total)
	VZEROUPPER()
	Store(total, ReturnIndex(0))
	RET()
}

// lanes adds the lanes of a register of int32.
func lanes(acc VecVirtual) Register {
	high := XMM()
	VEXTRACTI128(U8(1), acc, high)
	sum := acc.AsX()
	VPADDD(high, sum, sum)
	VPSHUFD(U8(0x4e), sum, high)
	VPADDD(high, sum, sum)
	VPSHUFD(U8(0xb1), sum, high)
	VPADDD(high, sum, sum)
	result := GP32()
	VMOVD(sum, result)
	return result
}

const gatherDoc = "%s needs %s, len(q) a multiple of 64, and every id's row of len(q) bytes inside rows."

// gatherAVX2 scores one row after another, while a row after it is being fetched.
func gatherAVX2() {
	TEXT("gatherAVX2", NOSPLIT, "func(out []int32, q, rows []int8, ids []uint32)")
	Pragma("noescape")
	Doc(fmt.Sprintf(gatherDoc, "gatherAVX2", "AVX2"))
	const ahead = 3
	out := Load(Param("out").Base(), GP64())
	n := Load(Param("out").Len(), GP64())
	q := Load(Param("q").Base(), GP64())
	stride := Load(Param("q").Len(), GP64())
	rows := Load(Param("rows").Base(), GP64())
	ids := Load(Param("ids").Base(), GP64())
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	// Of the last rows, the row itself stands in for the one to fetch.
	row, next, at := GP64(), GP64(), GP64()
	XORQ(next, next)
	MOVQ(U32(ahead), at)
	CMPQ(n, U8(ahead))
	CMOVQGT(at, next)
	MOVL(Mem{Base: ids, Index: next, Scale: 4}, next.As32())
	IMULQ(stride, next)
	ADDQ(rows, next)
	MOVL(Mem{Base: ids}, row.As32())
	IMULQ(stride, row)
	ADDQ(rows, row)
	XORQ(at, at)
	acc := [4]VecVirtual{YMM(), YMM(), YMM(), YMM()}
	for i := range acc {
		VPXOR(acc[i], acc[i], acc[i])
	}
	Label("chunk")
	PREFETCHT0(Mem{Base: next, Index: at, Scale: 1})
	for i := range acc {
		x, y := YMM(), YMM()
		VPMOVSXBW(Mem{Base: q, Index: at, Scale: 1, Disp: 16 * i}, x)
		VPMOVSXBW(Mem{Base: row, Index: at, Scale: 1, Disp: 16 * i}, y)
		VPMADDWD(y, x, x)
		VPADDD(x, acc[i], acc[i])
	}
	ADDQ(U8(64), at)
	CMPQ(at, stride)
	JL(LabelRef("chunk"))
	VPADDD(acc[1], acc[0], acc[0])
	VPADDD(acc[3], acc[2], acc[2])
	VPADDD(acc[2], acc[0], acc[0])
	MOVL(lanes(acc[0]), Mem{Base: out})
	ADDQ(U8(4), out)
	ADDQ(U8(4), ids)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// gatherVNNI scores four rows at once, so that each part of the query is loaded
// once for them, while the four after them are being fetched. A row's score is
// (row+128)·q − 128·Σq. Past the last row, the last one stands in.
func gatherVNNI() {
	TEXT("gatherVNNI", NOSPLIT, "func(out []int32, q, rows []int8, ids []uint32)")
	Pragma("noescape")
	Doc(fmt.Sprintf(gatherDoc, "gatherVNNI", "AVX-512 F, BW and VNNI"))
	bias, sums := ZMM(), XMM()
	byte128 := GP32()
	MOVL(U32(0x80), byte128)
	VPBROADCASTB(byte128, bias)

	stride := Load(Param("q").Len(), GP64()).(GPVirtual)
	at := GP64()
	q := Load(Param("q").Base(), GP64())
	acc := ZMM()
	VPXOR(acc.AsY(), acc.AsY(), acc.AsY())
	XORQ(at, at)
	Label("query")
	x := ZMM()
	VMOVDQU8(Mem{Base: q, Index: at, Scale: 1}, x)
	VPDPBUSD(x, bias, acc)
	ADDQ(U8(64), at)
	CMPQ(at, stride)
	JL(LabelRef("query"))
	half := YMM()
	VEXTRACTI64X4(U8(1), acc, half)
	VPADDD(half, acc.AsY(), half)
	total := lanes(half)
	VPBROADCASTD(total.(GPVirtual).As32(), sums)

	ids := Load(Param("ids").Base(), GP64())
	n := Load(Param("out").Len(), GP64())
	out := Load(Param("out").Base(), GP64())
	var next [4]GPVirtual
	for i := range next {
		next[i] = GP64()
	}
	// addresses sets next to the rows from number first of those left.
	addresses := func(first int) {
		last := GP64()
		for i := range next {
			MOVQ(U32(uint32(first+i)), next[i])
			LEAQ(Mem{Base: n, Disp: -1}, last)
			CMPQ(next[i], last)
			CMOVQGT(last, next[i])
		}
		rows := GP64()
		Load(Param("rows").Base(), rows)
		for i := range next {
			MOVL(Mem{Base: ids, Index: next[i], Scale: 4}, next[i].As32())
			IMULQ(stride, next[i])
			ADDQ(rows, next[i])
		}
	}
	TESTQ(n, n)
	JZ(LabelRef("done"))
	addresses(0)
	Label("group")
	var row [4]GPVirtual
	accs := [4]VecVirtual{}
	for i := range row {
		row[i] = GP64()
		MOVQ(next[i], row[i])
		accs[i] = ZMM()
		VPXOR(accs[i].AsY(), accs[i].AsY(), accs[i].AsY())
	}
	addresses(4)
	XORQ(at, at)
	Label("chunk")
	for i := range next {
		PREFETCHT0(Mem{Base: next[i], Index: at, Scale: 1})
	}
	qs := ZMM()
	VMOVDQU8(Mem{Base: q, Index: at, Scale: 1}, qs)
	for i := range row {
		x := ZMM()
		VPXORD(Mem{Base: row[i], Index: at, Scale: 1}, bias, x)
		VPDPBUSD(qs, x, accs[i])
	}
	ADDQ(U8(64), at)
	CMPQ(at, stride)
	JL(LabelRef("chunk"))
	// Sixteen lanes of four rows become one lane a row.
	for i := range accs {
		high := YMM()
		VEXTRACTI64X4(U8(1), accs[i], high)
		VPADDD(high, accs[i].AsY(), accs[i].AsY())
	}
	VPHADDD(accs[1].AsY(), accs[0].AsY(), accs[0].AsY())
	VPHADDD(accs[3].AsY(), accs[2].AsY(), accs[2].AsY())
	VPHADDD(accs[2].AsY(), accs[0].AsY(), accs[0].AsY())
	scores := XMM()
	VEXTRACTI128(U8(1), accs[0].AsY(), scores)
	VPADDD(scores, accs[0].AsX(), scores)
	VPSUBD(sums, scores, scores)
	CMPQ(n, U8(4))
	JL(LabelRef("rest"))
	VMOVDQU(scores, Mem{Base: out})
	ADDQ(U8(16), out)
	ADDQ(U8(16), ids)
	SUBQ(U8(4), n)
	JNZ(LabelRef("group"))
	JMP(LabelRef("done"))
	Label("rest")
	VMOVD(scores, Mem{Base: out})
	VPSRLDQ(U8(4), scores, scores)
	ADDQ(U8(4), out)
	DECQ(n)
	JNZ(LabelRef("rest"))
	Label("done")
	VZEROUPPER()
	RET()
}

// gatherHamming counts the differing bits of one row after another, while the
// fourth after it is being fetched: rows of bits are few cache lines long.
func gatherHamming() {
	TEXT("gatherHamming", NOSPLIT, "func(out []int32, q, rows []uint64, ids []uint32)")
	Pragma("noescape")
	Doc("gatherHamming needs AVX-512 F, VPOPCNTDQ and BMI2, and every id's row of len(q) words inside rows.")
	out := Load(Param("out").Base(), GP64())
	n := Load(Param("out").Len(), GP64())
	q := Load(Param("q").Base(), GP64())
	words := Load(Param("q").Len(), GP64()).(GPVirtual)
	rows := Load(Param("rows").Base(), GP64())
	ids := Load(Param("ids").Base(), GP64())
	const ahead = 4
	tail, rest := K(), GP64()
	MOVQ(words, rest)
	ANDQ(U8(7), rest)
	tailMask(rest, func(r GPVirtual) { KMOVW(r.As32(), tail) })
	whole := GP64()
	MOVQ(words, whole)
	ANDQ(I8(-8), whole)
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	CMPQ(n, U8(ahead))
	JLE(LabelRef("score"))
	next := GP64()
	MOVL(Mem{Base: ids, Disp: 4 * ahead}, next.As32())
	IMULQ(words, next)
	PREFETCHT0(Mem{Base: rows, Index: next, Scale: 8})
	Label("score")
	row, at := GP64(), GP64()
	MOVL(Mem{Base: ids}, row.As32())
	IMULQ(words, row)
	LEAQ(Mem{Base: rows, Index: row, Scale: 8}, row)
	x, acc := ZMM(), ZMM()
	VPXOR(acc.AsY(), acc.AsY(), acc.AsY())
	XORQ(at, at)
	Label("block")
	CMPQ(at, whole)
	JGE(LabelRef("tail"))
	VMOVDQU64(Mem{Base: q, Index: at, Scale: 8}, x)
	VPXORQ(Mem{Base: row, Index: at, Scale: 8}, x, x)
	VPOPCNTQ(x, x)
	VPADDQ(x, acc, acc)
	ADDQ(U8(8), at)
	JMP(LabelRef("block"))
	Label("tail")
	y := ZMM()
	VMOVDQU64_Z(Mem{Base: q, Index: at, Scale: 8}, tail, x)
	VMOVDQU64_Z(Mem{Base: row, Index: at, Scale: 8}, tail, y)
	VPXORQ(y, x, x)
	VPOPCNTQ(x, x)
	VPADDQ(x, acc, acc)
	half := YMM()
	VEXTRACTI64X4(U8(1), acc, half)
	VPADDQ(half, acc.AsY(), half)
	quarter := XMM()
	VEXTRACTI128(U8(1), half, quarter)
	VPADDQ(quarter, half.AsX(), quarter)
	high := XMM()
	VPSRLDQ(U8(8), quarter, high)
	VPADDQ(high, quarter, quarter)
	VMOVD(quarter, Mem{Base: out})
	ADDQ(U8(4), out)
	ADDQ(U8(4), ids)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// broadcast fills a register with one float.
func broadcast(bits uint32, into VecVirtual) {
	r := GP32()
	MOVL(U32(bits), r)
	VMOVD(r, into.AsX())
	VBROADCASTSS(into.AsX(), into)
}

// ordered is the comparison that holds where neither side is no number.
const ordered = 7

// quantizeAVX2 codes eight elements at a time. The conversion rounds halves to
// even; what is no number is cleared before it.
func quantizeAVX2() {
	TEXT("quantizeAVX2", NOSPLIT, "func(dst []int8, v []float32, scale float32)")
	Pragma("noescape")
	Doc("quantizeAVX2 needs AVX2, len(v) a multiple of 8, and len(dst) >= len(v).")
	dst := Load(Param("dst").Base(), GP64())
	v := Load(Param("v").Base(), GP64())
	n := Load(Param("v").Len(), GP64())
	scale, most, least := YMM(), YMM(), YMM()
	factor, _ := Param("scale").Resolve()
	VBROADCASTSS(factor.Addr, scale)
	broadcast(0x42fe0000, most)
	broadcast(0xc2fe0000, least)
	Label("step")
	CMPQ(n, U8(8))
	JL(LabelRef("done"))
	x, number, high := YMM(), YMM(), XMM()
	VMULPS(Mem{Base: v}, scale, x)
	VCMPPS(U8(ordered), x, x, number)
	VANDPS(number, x, x)
	VMINPS(most, x, x)
	VMAXPS(least, x, x)
	VCVTPS2DQ(x, x)
	VEXTRACTI128(U8(1), x, high)
	VPACKSSDW(high, x.AsX(), high)
	VPACKSSWB(high, high, high)
	VMOVQ(high, Mem{Base: dst})
	ADDQ(U8(32), v)
	ADDQ(U8(8), dst)
	SUBQ(U8(8), n)
	JMP(LabelRef("step"))
	Label("done")
	VZEROUPPER()
	RET()
}

// largestAVX2 keeps the maximum of sixteen lanes. Of a maximum with what is no
// number the second operand remains, which is the maximum so far.
func largestAVX2() {
	TEXT("largestAVX2", NOSPLIT, "func(v []float32) float32")
	Pragma("noescape")
	Doc("largestAVX2 needs AVX2, and len(v) a multiple of 16.")
	v := Load(Param("v").Base(), GP64())
	n := Load(Param("v").Len(), GP64())
	magnitude := YMM()
	broadcast(0x7fffffff, magnitude)
	most := [2]VecVirtual{YMM(), YMM()}
	for i := range most {
		VXORPS(most[i], most[i], most[i])
	}
	Label("step")
	CMPQ(n, U8(16))
	JL(LabelRef("reduce"))
	for i := range most {
		x := YMM()
		VANDPS(Mem{Base: v, Disp: 32 * i}, magnitude, x)
		VMAXPS(most[i], x, most[i])
	}
	ADDQ(U8(64), v)
	SUBQ(U8(16), n)
	JMP(LabelRef("step"))
	Label("reduce")
	VMAXPS(most[1], most[0], most[0])
	high, largest := XMM(), most[0].AsX()
	VEXTRACTF128(U8(1), most[0], high)
	VMAXPS(high, largest, largest)
	VPSHUFD(U8(0x4e), largest, high)
	VMAXPS(high, largest, largest)
	VPSHUFD(U8(0xb1), largest, high)
	VMAXPS(high, largest, largest)
	VZEROUPPER()
	Store(largest, ReturnIndex(0))
	RET()
}

// prefetch asks for the cache lines of some bytes.
func prefetch() {
	TEXT("prefetchLines", NOSPLIT, "func(p *byte, n int)")
	Pragma("noescape")
	Doc("prefetchLines fetches the lines of the n bytes at p ahead of their use. No address is refused.")
	p := Load(Param("p"), GP64())
	n := Load(Param("n"), GP64())
	Label("line")
	CMPQ(n, U8(0))
	JLE(LabelRef("done"))
	PREFETCHT0(Mem{Base: p})
	ADDQ(U8(64), p)
	SUBQ(U8(64), n)
	JMP(LabelRef("line"))
	Label("done")
	RET()
}
