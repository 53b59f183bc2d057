package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// planes compares 256 rows at a time with two bounds. ternary: with AVX-512, which takes one instruction for a plane and a bound.
func planes(name, needs string, ternary bool) {
	TEXT(name, NOSPLIT, "func(marks *uint64, blocks *byte, n, planes int, bounds *uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s needs %s, n blocks with so many planes, one at least, marks for them, and two words a plane at bounds.", name, needs))
	marks := Load(Param("marks"), GP64())
	at := Load(Param("blocks"), GP64())
	left := Load(Param("n"), GP64())
	planes := Load(Param("planes"), GP64())
	bounds := Load(Param("bounds"), GP64())
	bound, plane := GP64(), GP64()
	x, high, low := YMM(), YMM(), YMM()

	// less makes rows of a bound those that are less by the next plane, too: by the majority of what they were, of the plane's bit being
	// unset and of the bound's bit being set.
	less := func(rows Op, to Mem) {
		if ternary {
			VPTERNLOGQ_BCST(U8(0xb2), to, x, rows)
			return
		}
		set, either := YMM(), YMM()
		VPBROADCASTQ(to, set)
		VPOR(set, rows, either)
		VPAND(set, rows, rows)
		VPANDN(either, x, either)
		VPOR(either, rows, rows)
	}
	Label("block")
	TESTQ(left, left)
	JZ(LabelRef("done"))
	VPXOR(high, high, high)
	VPXOR(low, low, low)
	MOVQ(bounds, bound)
	MOVQ(planes, plane)
	Label("plane")
	VMOVDQU(Mem{Base: at}, x)
	less(high, Mem{Base: bound})
	less(low, Mem{Base: bound, Disp: 8})
	ADDQ(U8(32), at)
	ADDQ(U8(16), bound)
	DECQ(plane)
	JNZ(LabelRef("plane"))
	VPANDN(high, low, high)
	VPOR(Mem{Base: marks}, high, high)
	VMOVDQU(high, Mem{Base: marks})
	ADDQ(U8(32), marks)
	DECQ(left)
	JMP(LabelRef("block"))
	Label("done")
	VZEROUPPER()
	RET()
}
