package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Dot products of rows of int8, two at a time and gathered by number.

// sumInt32 returns the sum of the lanes of a 256-bit register of int32.
func sumInt32(acc VecVirtual) {
	result := lanes(acc)
	VZEROUPPER()
	Store(result, ReturnIndex(0))
	RET()
}

// lanes adds the lanes of a 256-bit register of int32.
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

const gatherDoc = "%s needs %s, len(q) a multiple of 64, and every id's row of len(q) bytes inside rows."

// gatherAVX2 scores one row after another, while those after it are being fetched: eight rows, or three of more than 512 bytes. That
// keeps about as many cache lines on their way as a core can wait for.
func gatherAVX2() {
	TEXT("gatherAVX2", NOSPLIT, "func(out []int32, q, rows []int8, ids []uint32)")
	Pragma("noescape")
	Doc(fmt.Sprintf(gatherDoc, "gatherAVX2", "AVX2"))
	out := Load(Param("out").Base(), GP64())
	n := Load(Param("out").Len(), GP64())
	q := Load(Param("q").Base(), GP64())
	stride := Load(Param("q").Len(), GP64())
	rows := Load(Param("rows").Base(), GP64())
	ids := Load(Param("ids").Base(), GP64())
	row, next, at, ahead := GP64(), GP64(), GP64(), GP64()
	MOVQ(U32(8), ahead)
	MOVQ(U32(3), at)
	CMPQ(stride, U32(512))
	CMOVQGT(at, ahead)
	CMPQ(ahead, n)
	CMOVQGT(n, ahead)
	// The first ones.
	XORQ(row, row)
	Label("first")
	CMPQ(row, ahead)
	JGE(LabelRef("row"))
	MOVL(Mem{Base: ids, Index: row, Scale: 4}, next.As32())
	IMULQ(stride, next)
	ADDQ(rows, next)
	XORQ(at, at)
	Label("line")
	PREFETCHT0(Mem{Base: next, Index: at, Scale: 1})
	ADDQ(U8(64), at)
	CMPQ(at, stride)
	JL(LabelRef("line"))
	INCQ(row)
	JMP(LabelRef("first"))
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	// Of the last rows, the row itself stands in for the one to fetch.
	XORQ(next, next)
	CMPQ(n, ahead)
	CMOVQGT(ahead, next)
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
