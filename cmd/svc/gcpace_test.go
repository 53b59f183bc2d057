package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"svc/internal/pace"
)

func TestGCPercentOf(t *testing.T) {
	for _, c := range []struct {
		live, headroom, want uint64
	}{
		{0, gcHeadroom, 1200},
		{4 << 20, gcHeadroom, 1200},
		{16 << 20, gcHeadroom, 300},
		{48 << 20, gcHeadroom, 100},
		{96 << 20, gcHeadroom, 50},
		{1 << 40, gcHeadroom, 50},
		{math.MaxUint64, gcHeadroom, 50},
		{128 << 20, gcHeadroomBeside, 200},
		{1 << 30, gcHeadroomBeside, 50},
	} {
		if got := gcPercentOf(c.live, c.headroom); got != c.want {
			t.Errorf("%d live bytes, %d to grow by: %d%%, want %d%%", c.live, c.headroom, got, c.want)
		}
	}
}

// TestGCIsPaced checks that each collection sets the target of the next one.
func TestGCIsPaced(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	p := paceGC()
	defer p.stop()
	percent := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	until := func(what string, ok func(uint64) bool) {
		for deadline := time.Now().Add(2 * time.Minute); !ok(percent()); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d%%", what, percent())
			}
			runtime.GC()
		}
	}
	until("little is live", func(n uint64) bool { return n > gcPercent })
	ballast := make([]byte, 256<<20)
	until("much is live", func(n uint64) bool { return n == gcPercent })
	runtime.KeepAlive(ballast)
	ballast = nil
	until("little is live again", func(n uint64) bool { return n > gcPercent })
}

// TestHeadroomBesideSearches checks that the heap may grow by more while work pauses for searches, from the first pause on, up to a
// quarter of the indexing memory.
func TestHeadroomBesideSearches(t *testing.T) {
	for room, want := range map[int64]uint64{32 << 20: gcHeadroom, 400 << 20: 100 << 20, 1 << 40: gcHeadroomBeside} {
		p, searches := new(gcPacer), new(pace.Searches)
		if n := p.headroom(); n != gcHeadroom {
			t.Errorf("before any search: %d bytes", n)
		}
		p.heed(searches, room)
		told := 0
		searches.OnYield(func() { told++ })
		searches.Begin()
		if n := p.headroom(); n != gcHeadroom {
			t.Errorf("no work pauses: %d bytes", n)
		}
		w := pace.Of(pace.Beside(t.Context(), searches))
		for range 2 {
			for w.Yield() == 0 {
			}
		}
		if n := p.headroom(); n != want || told != 1 {
			t.Errorf("%d bytes of indexing memory: %d, want %d; called %d times", room, n, want, told)
		}
		t.Run("crowded", func(t *testing.T) {
			setCrowded(t)
			if n := p.headroom(); n != gcHeadroom {
				t.Errorf("files do not fit into memory: %d bytes", n)
			}
		})
	}
	(*gcPacer)(nil).heed(new(pace.Searches), 0)
}

// TestHeadroomOfMappedFiles checks that the heap may grow by more if much is mapped, up to a share of the indexing memory.
func TestHeadroomOfMappedFiles(t *testing.T) {
	defer func(f func() int64) { mappedBytes = f }(mappedBytes)
	for _, c := range []struct{ mapped, indexing, want int64 }{
		{0, 1 << 40, gcHeadroom},
		{700 << 20, 1 << 40, gcHeadroom},
		{3200 << 20, 1 << 40, 200 << 20},
		{1 << 40, 1 << 40, gcHeadroomBeside},
		{1 << 40, 4 << 30, 128 << 20},
		{1 << 40, 341 << 20, gcHeadroom},
		{0, 32 << 20, gcHeadroom},
		{0, 2 << 20, 18 << 20},
	} {
		mappedBytes = func() int64 { return c.mapped }
		p := new(gcPacer)
		p.heed(new(pace.Searches), c.indexing)
		if n := p.headroom(); n != uint64(c.want) {
			t.Errorf("%d bytes mapped, %d for indexing: %d bytes, want %d", c.mapped, c.indexing, n, c.want)
		}
	}
}
