package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Rows of float32 as int8.

// broadcast fills a register with one float.
func broadcast(bits uint32, into VecVirtual) {
	r := GP32()
	MOVL(U32(bits), r)
	VMOVD(r, into.AsX())
	VBROADCASTSS(into.AsX(), into)
}

// ordered is the comparison that holds where neither side is no number.
const ordered = 7

// quantizeAVX2 encodes eight elements at a time. The conversion rounds halves to even; NaN is cleared before it.
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

// largestAVX2 keeps the maximum of sixteen lanes. If one operand of a maximum is NaN, the second operand results: the maximum so far.
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
