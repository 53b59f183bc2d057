package main

import (
	"bytes"
	"fmt"
	"runtime"
)

// tables renders the figures about vectors.
func (f *vectorFigures) tables() []byte {
	var b bytes.Buffer
	svc, queries := f.libraries[0], f.set.queries.rows
	fmt.Fprintf(&b, "## %s\n\nCommit `%s` on %d cores of %s (%s/%s, %s, kernels: %s), load average before it %s.\n",
		f.set.title, f.commit, f.cores, f.cpu, runtime.GOOS, runtime.GOARCH, runtime.Version(), f.tier, f.loadAverage)
	fmt.Fprintf(&b, "%d vectors of %d dimensions in one memory-mapped segment, %d queries, in process. Recall@10 is against all rows scored in float32; svc's answers are rescored from its full-precision rows. Each figure is the best of %d rounds that take turns, and seconds of one thread are of processor time, which other work on the machine adds little to. Command: `%s`.\n\n",
		f.set.base.rows, f.set.base.columns, queries, vectorRounds, f.command)

	fmt.Fprintf(&b, "| one thread | build s | bytes a vector | queries/s at recall@10 0.95 | 0.98 | 0.99 |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, l := range f.libraries {
		fmt.Fprintf(&b, "| %s | %.1f | %.0f | %s | %s | %s |\n", l.name, l.build, l.memory, l.cell(0.95, queries), l.cell(0.98, queries), l.cell(0.99, queries))
	}
	if len(f.libraries) > 1 {
		fmt.Fprintf(&b, "\nThe other libraries: M 16, efConstruction 200, called with all queries at once. Bytes are of svc's segment, which is mapped, and by how much the process of the others grew.\n")
	}
	if f.set.large() {
		fmt.Fprintf(&b, "\nGraphs were built on %d threads, whose seconds are added up.\n", f.cores)
	}

	fmt.Fprintf(&b, "\n| effort | recall@10 | queries/s |\n| --- | --- | --- |\n")
	for _, p := range svc.points {
		fmt.Fprintf(&b, "| %d | %.4f | %.0f |\n", p.effort, p.recall, p.qps(queries))
	}

	fmt.Fprintf(&b, "\n| segment of vectors | |\n| --- | --- |\n")
	if !f.set.large() { // of those, which may have been kept by a run long ago, processor time is above
		fmt.Fprintf(&b, "| written with the graph, %d threads | %.1f s |\n", f.cores, f.buildAll)
	}
	fmt.Fprintf(&b, "| codes, graph and all else, beside the full-precision row | %.0f bytes a vector |\n", svc.memory-float64(4*f.set.base.columns))
	fmt.Fprintf(&b, "| search of usual effort, warm | %.0f µs |\n", microseconds(f.warm))
	fmt.Fprintf(&b, "| the same on %d threads | %.0f queries/s |\n", f.cores, f.threads)
	fmt.Fprintf(&b, "| the first search of a file that is in memory, and each of the next 99 | %.1f ms, %.2f ms |\n", milliseconds(f.firstHeld), milliseconds(f.nextCold))
	fmt.Fprintf(&b, "| the first search of a file that is not in memory, %g s after it was opened | %.1f ms |\n", afterOpen.Seconds(), milliseconds(f.firstRead))
	fmt.Fprintf(&b, "| the same as soon as it is open | %.1f ms |\n", milliseconds(f.firstCold))

	fmt.Fprintf(&b, "\n| rows allowed | candidates | recall@10 | µs a search | recall@10, again | µs, again | µs an exact scan of the candidates |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range f.restricts {
		again := "– | –"
		if r.gathered {
			again = fmt.Sprintf("%.4f | %.1f", r.recallAgain, microseconds(r.again))
		}
		fmt.Fprintf(&b, "| %s | %d | %.4f | %.1f | %s | %.1f |\n", r.filter, r.candidates, r.recall, microseconds(r.each), again, microseconds(r.scan))
	}
	fmt.Fprintf(&b, "\n\"Again\" is with signs of the filter's rows, which an index gathers when a filter is asked for again; – where there are none to gather.\n")
	fmt.Fprintln(&b)
	if len(f.deleted) > 0 {
		fmt.Fprintf(&b, "| vectors of a row | µs a search | with %g%% of the rows deleted |\n| --- | --- | --- |\n", 100*deletedShare)
		for _, d := range f.deleted {
			whole, some := each(d.whole.seconds, queries), each(d.some.seconds, queries)
			fmt.Fprintf(&b, "| %d | %.1f | %.1f, %.2f × |\n", d.vectors, microseconds(whole), microseconds(some), float64(some)/float64(whole))
		}
		fmt.Fprintln(&b)
	}
	if h := f.overHTTP; h != nil {
		h.table(&b, f.set.base.rows)
	}
	if len(f.kernels) > 0 {
		b.Write(kernelTables(f.kernels))
	}
	return b.Bytes()
}

func (f *overHTTP) table(b *bytes.Buffer, vectors int) {
	x := f.indexing
	fmt.Fprintf(b, "| over HTTP | |\n| --- | --- |\n")
	fmt.Fprintf(b, "| %d documents with vectors, %.0f MiB of JSON in one request, until the task is finished | %.2f s, %.2f s of CPU time |\n", vectors, mib(int64(f.payload)), x.seconds, x.cpuSeconds)
	fmt.Fprintf(b, "| peak RSS meanwhile, data directory after it | %.0f MiB, %.0f MiB |\n\n", mib(x.peak), mib(x.disk))
	fmt.Fprintf(b, "| searches over HTTP | p50 ms | p99 ms | QPS, %d connections | CPU ms each |\n| --- | --- | --- | --- | --- |\n", connections)
	for _, s := range f.searches {
		fmt.Fprintf(b, "| %s | %.2f | %.2f | %.0f | %.2f |\n", s.name, s.p50, s.p99, s.qps, s.cpuPerRequest)
	}
	fmt.Fprintln(b)
}
