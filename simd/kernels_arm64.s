//go:build !noasm

// The kernels of the tier NEON. avo writes amd64 alone, so these are by hand:
// each is a loop of 64 bytes, one of 16, and one of single elements.
//
// Instructions that Go's assembler has no name for are words, put together as
// the Arm Architecture Reference Manual (DDI 0487, C7.2) encodes them: the
// second source from bit 16, the first one from bit 5, the destination from 0.

#include "textflag.h"

// FADD d.4S = n.4S + m.4S
#define FADD4(m, n, d) WORD $(0x4e20d400 | m<<16 | n<<5 | d)

// FSUB d.4S = n.4S - m.4S
#define FSUB4(m, n, d) WORD $(0x4ea0d400 | m<<16 | n<<5 | d)

// FADDP d.4S = sums of neighbours in n.4S, then in m.4S
#define FADDP4(m, n, d) WORD $(0x6e20d400 | m<<16 | n<<5 | d)

// SMULL d.8H = n.8B * m.8B, of the lower halves
#define SMULL(m, n, d) WORD $(0x0e20c000 | m<<16 | n<<5 | d)

// SMULL2 d.8H = n.16B * m.16B, of the upper halves
#define SMULL2(m, n, d) WORD $(0x4e20c000 | m<<16 | n<<5 | d)

// SADALP d.4S += sums of neighbours in n.8H
#define SADALP(n, d) WORD $(0x4e606800 | n<<5 | d)

// SDOT d.4S += sums of four neighbours in n.16B * m.16B
#define SDOT(m, n, d) WORD $(0x4e809400 | m<<16 | n<<5 | d)

#define ZERO(v) VEOR v.B16, v.B16, v.B16

#define ARGUMENTS \
	MOVD a_base+0(FP), R0  \
	MOVD a_len+8(FP), R2   \
	MOVD b_base+24(FP), R1 \
	ZERO(V0)               \
	ZERO(V1)               \
	ZERO(V2)               \
	ZERO(V3)

// The sum of all lanes of V0 to V3, as the float F0.
#define SUM4 \
	FADD4(1, 0, 0)  \
	FADD4(3, 2, 2)  \
	FADD4(2, 0, 0)  \
	FADDP4(0, 0, 0) \
	FADDP4(0, 0, 0)

// The sum of all lanes of V0 to V3, as the integer R3.
#define SUM4_INT \
	VADD  V1.S4, V0.S4, V0.S4 \
	VADD  V3.S4, V2.S4, V2.S4 \
	VADD  V2.S4, V0.S4, V0.S4 \
	VADDV V0.S4, V0           \
	FMOVS F0, R3

// func dotNEON(a, b []float32) float32
TEXT ·dotNEON(SB), NOSPLIT, $0-52
	ARGUMENTS

block:
	CMP    $16, R2
	BLT    single
	VLD1.P 64(R0), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1.P 64(R1), [V20.S4, V21.S4, V22.S4, V23.S4]
	VFMLA  V16.S4, V20.S4, V0.S4
	VFMLA  V17.S4, V21.S4, V1.S4
	VFMLA  V18.S4, V22.S4, V2.S4
	VFMLA  V19.S4, V23.S4, V3.S4
	SUB    $16, R2
	B      block

single:
	CMP    $4, R2
	BLT    reduce
	VLD1.P 16(R0), [V16.S4]
	VLD1.P 16(R1), [V20.S4]
	VFMLA  V16.S4, V20.S4, V0.S4
	SUB    $4, R2
	B      single

reduce:
	SUM4

tail:
	CBZ     R2, done
	FMOVS.P 4(R0), F16
	FMOVS.P 4(R1), F20
	FMADDS  F16, F0, F20, F0
	SUB     $1, R2
	B       tail

done:
	FMOVS F0, ret+48(FP)
	RET

// func l2NEON(a, b []float32) float32
TEXT ·l2NEON(SB), NOSPLIT, $0-52
	ARGUMENTS

block:
	CMP    $16, R2
	BLT    single
	VLD1.P 64(R0), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1.P 64(R1), [V20.S4, V21.S4, V22.S4, V23.S4]
	FSUB4(20, 16, 16)
	FSUB4(21, 17, 17)
	FSUB4(22, 18, 18)
	FSUB4(23, 19, 19)
	VFMLA  V16.S4, V16.S4, V0.S4
	VFMLA  V17.S4, V17.S4, V1.S4
	VFMLA  V18.S4, V18.S4, V2.S4
	VFMLA  V19.S4, V19.S4, V3.S4
	SUB    $16, R2
	B      block

single:
	CMP    $4, R2
	BLT    reduce
	VLD1.P 16(R0), [V16.S4]
	VLD1.P 16(R1), [V20.S4]
	FSUB4(20, 16, 16)
	VFMLA  V16.S4, V16.S4, V0.S4
	SUB    $4, R2
	B      single

reduce:
	SUM4

tail:
	CBZ     R2, done
	FMOVS.P 4(R0), F16
	FMOVS.P 4(R1), F20
	FSUBS   F20, F16, F16
	FMADDS  F16, F0, F16, F0
	SUB     $1, R2
	B       tail

done:
	FMOVS F0, ret+48(FP)
	RET

// func dotSquaresNEON(a, b []float32) (dot, squares float32)
TEXT ·dotSquaresNEON(SB), NOSPLIT, $0-56
	ARGUMENTS

block:
	CMP    $8, R2
	BLT    single
	VLD1.P 32(R0), [V16.S4, V17.S4]
	VLD1.P 32(R1), [V20.S4, V21.S4]
	VFMLA  V16.S4, V20.S4, V0.S4
	VFMLA  V20.S4, V20.S4, V2.S4
	VFMLA  V17.S4, V21.S4, V1.S4
	VFMLA  V21.S4, V21.S4, V3.S4
	SUB    $8, R2
	B      block

single:
	CMP    $4, R2
	BLT    reduce
	VLD1.P 16(R0), [V16.S4]
	VLD1.P 16(R1), [V20.S4]
	VFMLA  V16.S4, V20.S4, V0.S4
	VFMLA  V20.S4, V20.S4, V2.S4
	SUB    $4, R2

reduce:
	FADD4(1, 0, 0)
	FADD4(3, 2, 2)
	FADDP4(0, 0, 0)
	FADDP4(0, 0, 0)
	FADDP4(2, 2, 2)
	FADDP4(2, 2, 2)

tail:
	CBZ     R2, done
	FMOVS.P 4(R0), F16
	FMOVS.P 4(R1), F20
	FMADDS  F16, F0, F20, F0
	FMADDS  F20, F2, F20, F2
	SUB     $1, R2
	B       tail

done:
	FMOVS F0, dot+48(FP)
	FMOVS F2, squares+52(FP)
	RET

// func dotInt8NEON(a, b []int8) int32
//
// A product has 16 bits at most: (-128)² = 2¹⁴. Pairs of them are added to 32.
TEXT ·dotInt8NEON(SB), NOSPLIT, $0-52
	ARGUMENTS

block:
	CMP    $32, R2
	BLT    single
	VLD1.P 32(R0), [V16.B16, V17.B16]
	VLD1.P 32(R1), [V20.B16, V21.B16]
	SMULL(20, 16, 24)
	SMULL2(20, 16, 25)
	SMULL(21, 17, 26)
	SMULL2(21, 17, 27)
	SADALP(24, 0)
	SADALP(25, 1)
	SADALP(26, 2)
	SADALP(27, 3)
	SUB    $32, R2
	B      block

single:
	CMP    $16, R2
	BLT    reduce
	VLD1.P 16(R0), [V16.B16]
	VLD1.P 16(R1), [V20.B16]
	SMULL(20, 16, 24)
	SMULL2(20, 16, 25)
	SADALP(24, 0)
	SADALP(25, 1)
	SUB    $16, R2

reduce:
	SUM4_INT

tail:
	CBZ    R2, done
	MOVB.P 1(R0), R4
	MOVB.P 1(R1), R5
	MADDW  R4, R3, R5, R3
	SUB    $1, R2
	B      tail

done:
	MOVW R3, ret+48(FP)
	RET

// func dotInt8SDOT(a, b []int8) int32
TEXT ·dotInt8SDOT(SB), NOSPLIT, $0-52
	ARGUMENTS

block:
	CMP    $64, R2
	BLT    single
	VLD1.P 64(R0), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1.P 64(R1), [V20.B16, V21.B16, V22.B16, V23.B16]
	SDOT(20, 16, 0)
	SDOT(21, 17, 1)
	SDOT(22, 18, 2)
	SDOT(23, 19, 3)
	SUB    $64, R2
	B      block

single:
	CMP    $16, R2
	BLT    reduce
	VLD1.P 16(R0), [V16.B16]
	VLD1.P 16(R1), [V20.B16]
	SDOT(20, 16, 0)
	SUB    $16, R2
	B      single

reduce:
	SUM4_INT

tail:
	CBZ    R2, done
	MOVB.P 1(R0), R4
	MOVB.P 1(R1), R5
	MADDW  R4, R3, R5, R3
	SUB    $1, R2
	B      tail

done:
	MOVW R3, ret+48(FP)
	RET

// func hammingNEON(a, b []uint64) int64
//
// A byte has at most 8 differing bits, and four bytes are added before all
// sixteen of a register are.
TEXT ·hammingNEON(SB), NOSPLIT, $0-56
	ARGUMENTS

block:
	CMP     $8, R2
	BLT     single
	VLD1.P  64(R0), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1.P  64(R1), [V20.B16, V21.B16, V22.B16, V23.B16]
	VEOR    V20.B16, V16.B16, V16.B16
	VEOR    V21.B16, V17.B16, V17.B16
	VEOR    V22.B16, V18.B16, V18.B16
	VEOR    V23.B16, V19.B16, V19.B16
	VCNT    V16.B16, V16.B16
	VCNT    V17.B16, V17.B16
	VCNT    V18.B16, V18.B16
	VCNT    V19.B16, V19.B16
	VADD    V17.B16, V16.B16, V16.B16
	VADD    V19.B16, V18.B16, V18.B16
	VADD    V18.B16, V16.B16, V16.B16
	VUADDLV V16.B16, V16
	VADD    V16.D2, V0.D2, V0.D2
	SUB     $8, R2
	B       block

single:
	CBZ     R2, done
	VLD1.P  8(R0), [V16.B8]
	VLD1.P  8(R1), [V20.B8]
	VEOR    V20.B8, V16.B8, V16.B8
	VCNT    V16.B8, V16.B8
	VUADDLV V16.B8, V16
	VADD    V16.D2, V0.D2, V0.D2
	SUB     $1, R2
	B       single

done:
	VMOV V0.D[0], R3
	MOVD R3, ret+48(FP)
	RET

// func prefetchLines(p *byte, n int)
TEXT ·prefetchLines(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1

line:
	CMP  $0, R1
	BLE  done
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUB  $64, R1
	B    line

done:
	RET
