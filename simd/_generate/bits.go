package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ones writes the indexes of the bits that are set. Of each word it writes as many as are usual without a look at how many there are, as
// branches that depend on random bits are mispredicted (Langdale and Lemire 2019); 0: it passes over words without any.
func ones(name string, usual int) {
	TEXT(name, NOSPLIT, "func(dst *byte, words []uint64) int")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s needs BMI1 and POPCNT, words, and room at dst for all numbers and %d more.", name, usual))
	dst := Load(Param("dst"), GP64())
	at := Load(Param("words").Base(), GP64())
	left := Load(Param("words").Len(), GP64())
	begin, base := GP64(), GP32()
	MOVQ(dst, begin)
	XORL(base, base)

	word, count, next := GP64(), GP64(), GP64()
	write := func(to Mem) {
		index := GP64()
		TZCNTQ(word, index)
		ADDL(base, index.(GPVirtual).As32())
		MOVW(index.(GPVirtual).As16(), to)
		BLSRQ(word, word)
	}
	Label("word")
	MOVQ(Mem{Base: at}, word)
	if usual == 0 {
		TESTQ(word, word)
		JZ(LabelRef("next"))
		Label("one")
		write(Mem{Base: dst})
		LEAQ(Mem{Base: dst, Disp: 2}, dst)
		JNZ(LabelRef("one"))
	} else {
		POPCNTQ(word, count)
		for i := range usual {
			write(Mem{Base: dst, Disp: 2 * i})
		}
		JNZ(LabelRef("more"))
		Label("written")
		LEAQ(Mem{Base: dst, Index: count, Scale: 2}, dst)
	}
	Label("next")
	ADDL(U8(64), base)
	ADDQ(U8(8), at)
	DECQ(left)
	JNZ(LabelRef("word"))
	SUBQ(begin, dst)
	SHRQ(U8(1), dst)
	Store(dst, ReturnIndex(0))
	RET()
	if usual > 0 {
		Label("more")
		LEAQ(Mem{Base: dst, Disp: 2 * usual}, next)
		Label("one")
		write(Mem{Base: next})
		LEAQ(Mem{Base: next, Disp: 2}, next)
		JNZ(LabelRef("one"))
		JMP(LabelRef("written"))
	}
}
