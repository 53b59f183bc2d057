package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// common compares blocks of 8 numbers of a with blocks of 32 of b, each with each: 4 numbers of a are repeated over a register, and
// compared in their 4 rotations. Then it passes the block whose last number is the lower one, or both. No branch depends on the numbers.
//
// It writes the numbers that both have, or, if places is true, their indexes in b.
func common(name string, places bool) {
	TEXT(name, NOSPLIT, "func(dst, a, b *byte, an, bn int) int")
	Pragma("noescape")
	Doc(name+" needs AVX512BW, VBMI2, POPCNT, BMI1 and BMI2.", "At dst there are 64 bytes for each 8 numbers of a, for each 32 of b, and once more.")
	dst := Load(Param("dst"), GP64())
	a := Load(Param("a"), GP64())
	b := Load(Param("b"), GP64())
	an := Load(Param("an"), GP64())
	bn := Load(Param("bn"), GP64())
	begin, endA, endB := GP64(), GP64(), GP64()
	MOVQ(dst, begin)
	start, lanes := GP64(), ZMM()
	if places {
		MOVQ(b, start)
		VMOVDQU16(lanesOfBlock(), lanes)
	}
	LEAQ(Mem{Base: a, Index: an, Scale: 2}, endA)
	LEAQ(Mem{Base: b, Index: bn, Scale: 2}, endB)
	lastA, lastB := GP64(), GP64() // where the last whole block begins at most
	LEAQ(Mem{Base: endA, Disp: -16}, lastA)
	LEAQ(Mem{Base: endB, Disp: -64}, lastB)
	block := ZMM()
	here := K() // the numbers of the block

	// quad keeps the numbers of the block that differ from 4 numbers of a.
	quad := func(at int, none Register) {
		q, from := ZMM(), Register(here)
		VPBROADCASTQ(Mem{Base: a, Disp: at}, q)
		for turn := range 4 {
			x := q
			if turn > 0 {
				x = ZMM()
				VPRORQ(U8(16*turn), q, x)
			}
			const notEqual = 4
			VPCMPUW(U8(notEqual), x, block, from, none)
			from = none
		}
	}
	write := func() {
		both, second := K(), K()
		quad(0, both)
		quad(8, second)
		KANDD(both, second, both)
		KANDND(here, both, both)
		mask := GP32()
		KMOVD(both, mask)
		packed := ZMM()
		if places {
			index, base := GP64(), ZMM()
			MOVQ(b, index)
			SUBQ(start, index)
			SHRQ(U8(1), index)
			VPBROADCASTW(index.(GPVirtual).As32(), base)
			VPADDW(lanes, base, base)
			VPCOMPRESSW_Z(base, both, packed)
		} else {
			VPCOMPRESSW_Z(block, both, packed)
		}
		VMOVDQU16(packed, Mem{Base: dst})
		POPCNTL(mask, mask)
		LEAQ(Mem{Base: dst, Index: mask.(GPVirtual).As64(), Scale: 2}, dst)
	}

	CMPQ(b, endB)
	JAE(LabelRef("done"))
	KXNORD(here, here, here)
	CMPQ(a, lastA)
	JA(LabelRef("few"))
	CMPQ(b, lastB)
	JA(LabelRef("tail"))
	Label("step")
	VMOVDQU16(Mem{Base: b}, block)
	x, y := GP32(), GP32()
	MOVWLZX(Mem{Base: a, Disp: 14}, x)
	MOVWLZX(Mem{Base: b, Disp: 62}, y)
	write()
	passA, passB := GP64(), GP64()
	XORL(passA.(GPVirtual).As32(), passA.(GPVirtual).As32())
	XORL(passB.(GPVirtual).As32(), passB.(GPVirtual).As32())
	CMPL(x, y)
	SETLS(passA.(GPVirtual).As8())
	SETCC(passB.(GPVirtual).As8())
	SHLQ(U8(4), passA)
	SHLQ(U8(6), passB)
	ADDQ(passA, a)
	ADDQ(passB, b)
	CMPQ(a, lastA)
	JA(LabelRef("few"))
	CMPQ(b, lastB)
	JBE(LabelRef("step"))
	CMPQ(b, endB)
	JAE(LabelRef("done"))

	Label("tail") // less than a block of b is left
	maskOfTail(b, endB, here)
	VMOVDQU16_Z(Mem{Base: b}, here, block)
	MOVWLZX(Mem{Base: endB, Disp: -2}, y)
	Label("rest")
	CMPQ(a, lastA)
	JA(LabelRef("few"))
	MOVWLZX(Mem{Base: a}, x)
	CMPL(x, y)
	JA(LabelRef("done"))
	write()
	ADDQ(U8(16), a)
	JMP(LabelRef("rest"))

	Label("few") // less than a block of a is left: one number after the other
	CMPQ(a, endA)
	JAE(LabelRef("done"))
	MOVWLZX(Mem{Base: a}, x)
	Label("find")
	CMPQ(b, lastB)
	JA(LabelRef("end"))
	MOVWLZX(Mem{Base: b, Disp: 62}, y)
	CMPL(x, y)
	JBE(LabelRef("compare"))
	ADDQ(U8(64), b)
	JMP(LabelRef("find"))
	Label("end")
	CMPQ(b, endB)
	JAE(LabelRef("done"))
	maskOfTail(b, endB, here)
	Label("compare")
	VMOVDQU16_Z(Mem{Base: b}, here, block)
	one := ZMM()
	VPBROADCASTW(x, one)
	equal := K()
	VPCMPEQW(one, block, here, equal)
	mask := GP32()
	KMOVD(equal, mask)
	if places {
		index, lane := GP64(), GP64()
		MOVQ(b, index)
		SUBQ(start, index)
		SHRQ(U8(1), index)
		TZCNTL(mask, lane.(GPVirtual).As32())
		ADDQ(lane, index)
		MOVW(index.(GPVirtual).As16(), Mem{Base: dst})
	} else {
		MOVW(x.(GPVirtual).As16(), Mem{Base: dst})
	}
	more := GP64()
	XORL(more.(GPVirtual).As32(), more.(GPVirtual).As32())
	TESTL(mask, mask)
	SETNE(more.(GPVirtual).As8())
	LEAQ(Mem{Base: dst, Index: more, Scale: 2}, dst)
	ADDQ(U8(2), a)
	JMP(LabelRef("few"))

	Label("done")
	VZEROUPPER()
	SUBQ(begin, dst)
	SHRQ(U8(1), dst)
	Store(dst, ReturnIndex(0))
	RET()
}

// maskOfTail marks the numbers from b up to end, which are less than 32.
func maskOfTail(b, end Register, here Register) {
	left, mask := GP64(), GP64()
	MOVQ(end, left)
	SUBQ(b, left)
	SHRQ(U8(1), left)
	MOVQ(I32(-1), mask)
	BZHIQ(left, mask, mask)
	KMOVD(mask.(GPVirtual).As32(), here)
}

// lanesOfBlock are the numbers from 0 to 31.
func lanesOfBlock() Mem {
	lanes := GLOBL("lanesOfBlock", RODATA|NOPTR)
	for i := range 32 {
		DATA(2*i, U16(i))
	}
	return lanes
}
