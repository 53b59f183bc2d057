package task

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// BenchmarkOneDocument measures the share of the queue in a request with one document, until its task is stored as finished.
func BenchmarkOneDocument(b *testing.B) {
	o, _ := testOptions(b)
	o.noSync = false
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

// BenchmarkEnqueue measures the acknowledgement with many callers, which share commits.
func BenchmarkEnqueue(b *testing.B) {
	o, _ := testOptions(b)
	o.noSync = false
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

// BenchmarkReadTasks reads the newest 20 of some thousand tasks, as GET /tasks does.
func BenchmarkReadTasks(b *testing.B) {
	o, _ := testOptions(b)
	million(b, o, 10_000)
	q, err := open(o)
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	for b.Loop() {
		page, err := q.Tasks(Filter{Limit: 20})
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range page.Results {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// million writes a queue file with n finished tasks, each with its own batch.
func million(b testing.TB, o Options, n int) {
	b.Helper()
	q, err := open(o)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := 0; at < n; at += 10_000 {
		err := q.update(func(tx *txn) error {
			for uid := uint32(at); uid < uint32(min(at+10_000, n)); uid++ {
				when := start.Add(time.Duration(uid) * time.Second)
				rec := &record{head: head{fact: fact{Succeeded, Kind(uid % 7), [3]int64{toNanos(when), toNanos(when.Add(time.Duration(uid%9) * time.Minute)), toNanos(when.Add(time.Hour))}, uid}, canceledBy: noUID}}
				if uid%100 == 0 {
					rec.status = Failed
				}
				rec.details = []byte(`{"receivedDocuments":1,"indexedDocuments":1}`)
				rec.content = []byte(`{"documents":1,"file":"0123456789abcdef01234567.ndjson","size":1000}`)
				if err := tx.setNames(rec, fmt.Sprint("index-", uid%200), nil); err != nil {
					return err
				}
				if err := tx.put(uid, rec); err != nil {
					return err
				}
				t := rec.task(uid, tx.names)
				bt := &Batch{UID: uid, StartedAt: t.StartedAt, FinishedAt: t.FinishedAt, Details: rec.details}
				bt.Stats.count(t)
				f := &batchFact{indexes: sortedKeys(bt.Stats.Indexes)}
				f.times[startedAt], f.times[finishedAt] = toNanos(bt.StartedAt), toNanos(bt.FinishedAt)
				f.count(t)
				enc, err := encodeBatch(bt, f, roaring.BitmapOf(uid))
				if err != nil {
					return err
				}
				if err := tx.putBatch(uid, f, enc); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := q.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkMillionTasks(b *testing.B) {
	o, _ := testOptions(b)
	million(b, o, 1_000_000)
	q, err := open(o)
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	day := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	from := uint32(500_000)
	filters := []struct {
		name string
		f    Filter
	}{
		{"all", Filter{}},
		{"from the middle", Filter{From: &from}},
		{"status", Filter{Statuses: []Status{Failed}}},
		{"index and kind", Filter{IndexUIDs: []string{"index-7", "index-8"}, Kinds: []Kind{DocumentDeletion, SettingsUpdate}}},
		{"enqueued on a day", Filter{AfterEnqueuedAt: day, BeforeEnqueuedAt: day.Add(24 * time.Hour)}},
		{"started, scattered", Filter{AfterStartedAt: day, BeforeStartedAt: day.Add(24 * time.Hour)}},
		{"restricted key", Filter{Allowed: func(uid string) bool { return uid < "index-5" }}},
	}
	for _, c := range filters {
		c.f.Limit = 20
		b.Run("tasks/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := q.Tasks(c.f); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("batches/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := q.Batches(c.f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStart(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o, _ := testOptions(b)
			million(b, o, n)
			for b.Loop() {
				q, err := open(o)
				if err != nil {
					b.Fatal(err)
				}
				q.Close()
			}
			info, _ := os.Stat(filepath.Join(o.Dir, "queue.db"))
			b.ReportMetric(float64(info.Size())/float64(n), "file-bytes/task")
		})
	}
}
