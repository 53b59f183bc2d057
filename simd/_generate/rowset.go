package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// addRows adds one row after another. No branch depends on whether the set has it. If it does, lines at dst are fetched instead of those of
// the row.
func addRows() {
	TEXT("addRows", NOSPLIT, "func(dst []uint32, words []uint64, epoch uint64, limit uint32, rows []uint32, table []int8, width int) int")
	Pragma("noescape")
	Doc("addRows needs a word for each 32 rows below limit, and len(dst) >= len(rows).")
	dst := Load(Param("dst").Base(), GP64())
	words := Load(Param("words").Base(), GP64())
	epoch := Load(Param("epoch"), GP64()).(GPVirtual)
	limit := Load(Param("limit"), GP32())
	rows := Load(Param("rows").Base(), GP64())
	end := Load(Param("rows").Len(), GP64())
	table := Load(Param("table").Base(), GP64())
	width := Load(Param("width"), GP64())
	added, zero := GP64(), GP32()
	XORQ(added, added)
	XORL(zero, zero)
	SHRQ(U8(32), epoch)
	LEAQ(Mem{Base: rows, Index: end, Scale: 4}, end)
	loop := func(name string, fetches bool) {
		Label(name)
		CMPQ(rows, end)
		JAE(LabelRef("done"))
		row, at, bits, line, last := GP64(), GP64(), GP32(), GP64(), GP64()
		MOVL(Mem{Base: rows}, row.As32())
		CMPL(row.As32(), limit)
		JAE(LabelRef("done"))
		MOVL(row.As32(), Mem{Base: dst, Index: added, Scale: 4})
		if fetches {
			MOVQ(row, line)
			IMULQ(width, line)
			ADDQ(table, line)
		}
		MOVL(row.As32(), at.As32())
		SHRL(U8(5), at.As32())
		MOVL(Mem{Base: words, Index: at, Scale: 8}, bits)
		CMPL(Mem{Base: words, Index: at, Scale: 8, Disp: 4}, epoch.As32())
		CMOVLNE(zero, bits)
		BTSL(row.As32(), bits) // the bit of row modulo 32
		if fetches {
			CMOVQCS(dst, line)
		}
		SBBQ(I8(-1), added) // plus 1, minus the bit that was set before
		MOVL(bits, Mem{Base: words, Index: at, Scale: 8})
		MOVL(epoch.As32(), Mem{Base: words, Index: at, Scale: 8, Disp: 4})
		ADDQ(U8(4), rows)
		if fetches {
			LEAQ(Mem{Base: line, Index: width, Scale: 1}, last)
			Label("line")
			PREFETCHT0(Mem{Base: line})
			ADDQ(U8(64), line)
			CMPQ(line, last)
			JB(LabelRef("line"))
		}
		JMP(LabelRef(name))
	}
	TESTQ(width, width)
	JZ(LabelRef("row"))
	loop("fetched", true)
	loop("row", false)
	Label("done")
	Store(added, ReturnIndex(0))
	RET()
}
