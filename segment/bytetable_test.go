package segment

import (
	"bytes"
	"fmt"
	"testing"
)

func TestByteTableNumbersDistinctKeys(t *testing.T) {
	rng := testRand(t)
	var table byteTable
	twin := map[string]int{}
	for range 20000 {
		key, extra := []byte(fmt.Sprintf("%0*d", 1+rng.IntN(5), rng.IntN(3000))), uint16(rng.IntN(3))
		id := fmt.Sprint(string(key), "/", extra)
		want, known := twin[id]
		if !known {
			want = len(twin)
			twin[id] = want
		}
		got, fresh := table.index(key, extra)
		if got != want || fresh == known || !bytes.Equal(table.key(got), key) {
			t.Fatalf("%s is %d (new: %v), want %d", id, got, fresh, want)
		}
	}
	if table.len() != len(twin) {
		t.Fatalf("%d keys, want %d", table.len(), len(twin))
	}
}

func TestFullArena(t *testing.T) {
	a := arena{chunks: make([][]byte, maxArenaChunks), used: arenaChunk}
	a.chunks[maxArenaChunks-1] = make([]byte, arenaChunk)
	for range 3 {
		copy(a.bytes(a.alloc(100), 100), "overwritten")
	}
	if a.memoryBytes() < 1<<32 {
		t.Fatalf("a full arena has %d bytes", a.memoryBytes())
	}
}
