package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"svc/simd"
)

// kernelFigures is the speed of the kernels of one tier when they read their rows.
type kernelFigures struct {
	Tier    string
	Kernels []kernelFigure
}

type kernelFigure struct {
	Name          string
	Cached, Large float64 // GB/s: of rows in the first cache, and of many more than the last one holds
}

// Rows of 1,536 bytes (384 dimensions in float32, or 1,536 in 8 bits): as many as fit easily into the first cache, and 256 MiB.
const (
	kernelRow    = 1536
	kernelCached = 10 * kernelRow
	kernelLarge  = 256 << 20 / kernelRow * kernelRow
)

// measureTiers runs this program again in each tier that the processor has.
func measureTiers(ctx context.Context, quick bool) (all []kernelFigures, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot measure kernels: %w", err)
	}
	for t := simd.Portable; t <= simd.Available(); t++ {
		cmd := exec.CommandContext(ctx, program, "--kernels")
		if quick {
			cmd.Args = append(cmd.Args, "--quick")
		}
		cmd.Env = append(os.Environ(), "SVC_SIMD="+t.String())
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("cannot measure the kernels of %s: %w", t, err)
		}
		var f kernelFigures
		if err := json.Unmarshal(out, &f); err != nil {
			return nil, fmt.Errorf("cannot measure the kernels of %s: %w", t, err)
		}
		if f.Tier == t.String() {
			all = append(all, f)
		}
	}
	return all, nil
}

// measureKernels measures the running tier.
func measureKernels(quick bool) kernelFigures {
	large := kernelLarge
	if quick {
		large = large / 20 / kernelRow * kernelRow
	}
	f := kernelFigures{Tier: simd.Running().String()}
	plain := make([]byte, large)
	for i := range plain {
		plain[i] = byte(i)
	}
	f.add("plain read", len(plain), func(n int) { sink += int64(bytes.Count(plain[:n], []byte{7})) })
	floats, q := make([]float32, large/4), make([]float32, kernelRow/4)
	for i := range floats {
		floats[i] = float32(i % 7)
	}
	copy(q, floats)
	rows := func(n int, row func(at int)) {
		for at := 0; at < n; at += kernelRow {
			row(at)
		}
	}
	f.add("dot, float32", large, func(n int) {
		rows(n, func(at int) { sink += int64(simd.Dot(q, floats[at/4:at/4+len(q)])) })
	})
	f.add("squared distance, float32", large, func(n int) {
		rows(n, func(at int) { sink += int64(simd.L2(q, floats[at/4:at/4+len(q)])) })
	})
	ids, scores := make([]uint32, 256), make([]int32, 256)
	gathered := func(n, row int, gather func(scores []int32, ids []uint32)) {
		for at := 0; at < n/row; at += len(ids) {
			count := min(len(ids), n/row-at)
			for i := range count {
				ids[i] = uint32(at + i)
			}
			gather(scores[:count], ids[:count])
		}
	}
	dots, squares := make([]float32, len(ids)), make([]float32, len(ids))
	f.add("dot and squares, float32, gathered", large, func(n int) {
		gathered(n, kernelRow, func(_ []int32, ids []uint32) {
			simd.DotSquaresGather(dots[:len(ids)], squares, q, floats, ids)
		})
	})
	floats = nil
	codes := make([]int8, large)
	for i := range codes {
		codes[i] = int8(i)
	}
	f.add("dot, 8 bits", large, func(n int) {
		rows(n, func(at int) { sink += int64(simd.DotInt8(codes[:kernelRow], codes[at:at+kernelRow])) })
	})
	f.add("dot, 8 bits, gathered", large, func(n int) {
		gathered(n, kernelRow, func(scores []int32, ids []uint32) { simd.DotInt8Gather(scores, codes[:kernelRow], codes, ids) })
	})
	codes = nil
	bits := make([]uint64, large/8)
	for i := range bits {
		bits[i] = uint64(i)
	}
	f.add("Hamming, gathered", large, func(n int) {
		gathered(n, kernelRow, func(scores []int32, ids []uint32) { simd.HammingGather(scores, bits[:kernelRow/8], bits, ids) })
	})
	return f
}

// sink keeps the compiler from removing unused results.
//
//lint:ignore U1000 nobody reads it
var sink int64

// add measures reading the first n bytes, cached and all.
func (f *kernelFigures) add(name string, all int, read func(n int)) {
	speed := func(n, times int) float64 {
		best := time.Duration(1 << 62)
		for start, i := threadTime(), 0; i < 5 || i < 50 && threadTime()-start < 500*time.Millisecond; i++ {
			began := threadTime()
			for range times {
				read(n)
			}
			best = min(best, threadTime()-began)
		}
		return float64(n) * float64(times) / float64(best.Nanoseconds())
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	read(all)
	f.Kernels = append(f.Kernels, kernelFigure{name, speed(kernelCached, 2000), speed(all, 1)})
}

// kernelTables renders a row a kernel, two columns a tier.
func kernelTables(tiers []kernelFigures) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "| kernel, GB/s of rows read by one thread: in the first cache / of %d MiB |", kernelLarge>>20)
	for _, t := range tiers {
		fmt.Fprintf(&b, " %s |", t.Tier)
	}
	b.WriteString("\n| --- |")
	for range tiers {
		b.WriteString(" --- |")
	}
	b.WriteByte('\n')
	for i, k := range tiers[0].Kernels {
		fmt.Fprintf(&b, "| %s |", k.Name)
		for _, t := range tiers {
			fmt.Fprintf(&b, " %.1f / %.1f |", t.Kernels[i].Cached, t.Kernels[i].Large)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}
