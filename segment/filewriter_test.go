package segment

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"

	"svc/internal/vfs"
)

// TestPiecesOfFiles checks a file's contents, and that large writes are aligned to their size, except for the last one and for flushes.
func TestPiecesOfFiles(t *testing.T) {
	for _, large := range []bool{true, false} {
		t.Run(fmt.Sprintf("large %v", large), func(t *testing.T) {
			piece := writePiece
			if !large {
				piece = writeStep
				crowd(t)
			}
			r := rand.New(rand.NewPCG(7, 7))
			for _, size := range []int{0, writeStep - headerBytes - 1, writeStep - headerBytes, writeStep, writePiece, 3*writePiece + 12345} {
				mem, at, whole := vfs.NewMem(), 0, 0
				hooked := vfs.Hook(mem, func(o vfs.Op) error {
					if o.Kind == vfs.OpWrite {
						if at%piece == 0 && o.Bytes == piece {
							whole++
						}
						at += o.Bytes
					}
					return nil
				})
				asked := 0
				f, err := createFile(hooked, "x.seg", func(n int) error {
					if n > writeStep {
						t.Fatalf("the throttle was called for %d bytes", n)
					}
					asked += n
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				want, flushed := append([]byte(fileMagic), make([]byte, headerBytes-len(fileMagic))...), 0
				for left := size; left > 0; {
					p := make([]byte, min(left, 1+r.IntN(1<<r.IntN(22))))
					for i := range p {
						p[i] = byte(r.Uint32())
					}
					f.raw(p)
					want, left = append(want, p...), left-len(p)
					if r.IntN(50) == 0 {
						f.flush()
						flushed++
					}
				}
				sums := blockSums(want)
				f.writeSums()
				length, err := f.finish()
				if err != nil {
					t.Fatal(err)
				}
				got, err := vfs.ReadFile(mem, "x.seg")
				if err != nil || !bytes.Equal(got[:len(want)], want) || int64(len(got)) != length || asked != len(got) {
					t.Fatalf("%d bytes: the file differs, or has %d bytes, want %d; the throttle was called for %d (%v)", size, len(got), length, asked, err)
				}
				if !bytes.HasPrefix(f.sums, sums) {
					t.Errorf("%d bytes: checksums of blocks differ", size)
				}
				if least := len(want)/piece - flushed - 1; whole < least {
					t.Errorf("%d bytes: %d whole pieces, want at least %d", size, whole, least)
				}
			}
		})
	}
}

// blockSums returns the checksums of the whole blocks of some bytes.
func blockSums(p []byte) []byte {
	var sums []byte
	for ; len(p) >= blockBytes; p = p[blockBytes:] {
		sum := uint32(xxhash.Sum64(p[:blockBytes]))
		sums = append(sums, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
	}
	return sums
}
