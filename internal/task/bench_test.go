package task

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkOneDocument measures the queue's share of a one-document request: until its task is stored as finished.
func BenchmarkOneDocument(b *testing.B) {
	o, _ := testOptions(b)
	finished := make(chan struct{}, 1)
	o.OnBatch = func([]*Task) { finished <- struct{}{} }
	q := openQueue(b, o)
	var acknowledged time.Duration
	for i := 0; b.Loop(); i++ {
		n := adding(b, q, "a", AddDocuments{MayCreate: true}, fmt.Sprint(i))
		began := time.Now()
		if _, err := q.Enqueue(context.Background(), n); err != nil {
			b.Fatal(err)
		}
		acknowledged += time.Since(began)
		<-finished
	}
	b.ReportMetric(float64(acknowledged.Microseconds())/float64(b.N), "µs-to-202/op")
}

// BenchmarkEnqueue measures the acknowledgement under many callers: the commits are shared.
func BenchmarkEnqueue(b *testing.B) {
	o, _ := testOptions(b)
	o.MaxBatchTasks = 0
	q := openQueue(b, o)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := q.Enqueue(context.Background(), adding(b, q, "a", AddDocuments{MayCreate: true}, fmt.Sprint(i))); err != nil {
				b.Fatal(err)
			}
		}
	})
}
