package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// Conversions between float32 and half precision, 8 elements at a time.

// maxHalf is the largest finite number of half precision, as float32 has it.
const maxHalf = 0x477fe000

// halve rounds to half precision. Operands are ordered so that minimum and maximum pass on NaN.
func halve() {
	TEXT("halveF16C", NOSPLIT, "func(dst []uint16, v []float32)")
	Pragma("noescape")
	Doc("halveF16C needs AVX2 and F16C, len(v) a multiple of 8, and len(dst) >= len(v).")
	dst := Load(Param("dst").Base(), GP64())
	v := Load(Param("v").Base(), GP64())
	n := Load(Param("v").Len(), GP64())
	bound, most, least := GP32(), YMM(), YMM()
	MOVL(U32(maxHalf), bound)
	VMOVD(bound, most.AsX())
	VPBROADCASTD(most.AsX(), most)
	MOVL(U32(maxHalf|1<<31), bound)
	VMOVD(bound, least.AsX())
	VPBROADCASTD(least.AsX(), least)
	Label("block")
	CMPQ(n, U8(8))
	JL(LabelRef("done"))
	x := YMM()
	VMINPS(Mem{Base: v}, most, x)
	VMAXPS(x, least, x)
	VCVTPS2PH(U8(0), x, Mem{Base: dst})
	ADDQ(U8(32), v)
	ADDQ(U8(16), dst)
	SUBQ(U8(8), n)
	JMP(LabelRef("block"))
	Label("done")
	VZEROUPPER()
	RET()
}

func widen() {
	TEXT("widenF16C", NOSPLIT, "func(dst []float32, h []uint16)")
	Pragma("noescape")
	Doc("widenF16C needs AVX2 and F16C, len(h) a multiple of 8, and len(dst) >= len(h).")
	dst := Load(Param("dst").Base(), GP64())
	h := Load(Param("h").Base(), GP64())
	n := Load(Param("h").Len(), GP64())
	Label("block")
	CMPQ(n, U8(8))
	JL(LabelRef("done"))
	x := YMM()
	VCVTPH2PS(Mem{Base: h}, x)
	VMOVUPS(x, Mem{Base: dst})
	ADDQ(U8(16), h)
	ADDQ(U8(32), dst)
	SUBQ(U8(8), n)
	JMP(LabelRef("block"))
	Label("done")
	VZEROUPPER()
	RET()
}
