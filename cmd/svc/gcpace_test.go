package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGCPercentOf(t *testing.T) {
	for _, c := range []struct {
		live, want uint64
	}{
		{0, 4800},
		{1 << 20, 4800},
		{16 << 20, 300},
		{48 << 20, 100},
		{96 << 20, 50},
		{1 << 40, 50},
		{math.MaxUint64, 50},
	} {
		if got := gcPercentOf(c.live); got != c.want {
			t.Errorf("%d live bytes: %d%%, want %d%%", c.live, got, c.want)
		}
	}
}

// Each collection sets the way to the next one, again and again.
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
		for deadline := time.Now().Add(time.Minute); !ok(percent()); time.Sleep(time.Millisecond) {
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
