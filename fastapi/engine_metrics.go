package fastapi

import (
	"maps"
	"runtime"
	runtimemetrics "runtime/metrics"

	"github.com/prometheus/client_golang/prometheus"

	"svc/internal/embed"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// histogram shows times.
func histogram(d *prometheus.Desc, t vfs.TimesRead) prometheus.Metric {
	return prometheus.MustNewConstHistogram(d, t.Count, t.Seconds, t.Within)
}

// zeros adds the missing names with zeros. If a series appeared only with its first event, rates and sums would miss that event.
func zeros[T any](values map[string]T, names []string) map[string]T {
	all := make(map[string]T, len(names))
	for _, name := range names {
		var zero T
		all[name] = zero
	}
	maps.Copy(all, values)
	return all
}

// seed creates the series of searches before the first search, for the same reason. It is called only if the engine's series are
// requested; otherwise a series appears with its first request, as in Meilisearch.
func (m *metrics) seed() {
	for _, path := range [...]string{"/indexes/{index_uid}/search", "/multi-search"} {
		m.requests.WithLabelValues(methodPost, path, "200")
		m.times.WithLabelValues(methodPost, path)
	}
	m.chatSearches.WithLabelValues(chatSearchType)
}

// collectEngine reports metrics of the engine below requests and tasks: merges, the cache, memory, the runtime and the disk.
func (c state) collectEngine(to chan<- prometheus.Metric, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	counter := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value)
	}
	work := c.s.catalog.Work()
	counter(documentsDone, float64(work.Documents))
	counter(mergesDone, float64(work.Merges))
	counter(mergedBytes, float64(work.MergedBytes))
	bytes, hits, misses := c.s.catalog.SearchCache()
	gauge(cacheBytes, float64(bytes))
	counter(cacheHits, float64(hits))
	counter(cacheMisses, float64(misses))
	gauge(requestBytes, float64(c.s.budget.Used()))
	gauge(mappedMemory, float64(mapped.MappedBytes()))
	gauge(anonymousMemory, float64(heapBytes()))
	gauge(goroutines, float64(runtime.NumGoroutine()))
	collected := [...]runtimemetrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}}
	runtimemetrics.Read(collected[:])
	counter(collections, float64(collected[0].Value.Uint64()))
	counter(collectionTime, collected[1].Value.Float64())
	to <- histogram(syncTimes, vfs.Syncs())
	calls, failures := embed.Calls()
	counter(embedderCalls, float64(calls))
	counter(embedderFailures, float64(failures))
}
