// Command generate writes the amd64 kernels of package simd. Run it through
// go generate in the package's directory.
package main

import (
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
	gatherFloats("gatherFloatsAVX2", YMM, 8, 4)
	gatherFloats("gatherFloatsAVX512", ZMM, 16, 4)
	gatherFloats("gatherHalvesF16C", YMM, 8, 2)
	gatherFloats("gatherHalvesAVX512", ZMM, 16, 2)
	halve()
	widen()
	int8AVX2()
	int8VNNI()
	hammingAVX2()
	hammingAVX512()
	gatherAVX2()
	gatherVNNI()
	gatherHamming()
	signsAbove()
	signsAboveAVX2()
	signsOfLines()
	signsOfMarks()
	quantizeAVX2()
	largestAVX2()
	ones("onesRare", 0)
	ones("ones2", 2)
	ones("ones4", 4)
	ones("ones7", 7)
	skipMarked()
	leading()
	planes("planesAVX2", "AVX2", false)
	planes("planesAVX512", "AVX-512 F and VL", true)
	fold()
	spread()
	common("commonVBMI2", false)
	common("commonPlacesVBMI2", true)
	prefetch()
	addRows()
	elements()
	Generate()
}

// operands loads the two slices' addresses and the common length.
func operands() (a, b Register, n GPVirtual) {
	a = Load(Param("a").Base(), GP64())
	b = Load(Param("b").Base(), GP64())
	n = Load(Param("a").Len(), GP64()).(GPVirtual)
	return a, b, n
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
