package task

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/boltfile"
	"svc/internal/index"
	"svc/internal/vfs"
)

// Statistics is the queue as it stands.
type Statistics struct {
	Statuses map[string]int // tasks by name, all names
	Kinds    map[string]int // tasks by name, all names
	Indexes  map[string]int // tasks by index uid
	Oldest   time.Time      // when the oldest unfinished task was enqueued; zero: none

	Running      bool
	RunningBatch uint32
	RunningSteps []index.Step // outermost first

	Finished  bool // a batch that succeeded or failed is stored
	LastBatch uint32
	LastTrace []StepTime // of LastBatch

	Indexed *IndexedBatch // the last batch that added documents; nil when none is stored

	Batches uint64        // that have ended since the start
	Commits vfs.TimesRead // of the queue's file since the start

	UsedBytes int64 // live bytes of the queue's file
	MaxBytes  int64 // from which the queue refuses tasks; < 0: unlimited
}

// IndexedBatch is a batch that added or updated documents.
type IndexedBatch struct {
	UID       uint32
	IndexUID  string
	Documents int64
	Took      time.Duration
}

// StepTime is how long a step of a batch took.
type StepTime struct {
	Path string // "a > b"
	Took time.Duration
}

// Unfinished returns the number of tasks that wait or run. While the queue is being changed, it returns its previous result.
func (q *Queue) Unfinished() int64 {
	if q.roster.mu.TryRLock() {
		q.counted.Store(int64(q.roster.byStatus[Enqueued].GetCardinality()))
		q.roster.mu.RUnlock()
	}
	return q.counted.Load()
}

// Statistics counts the content of the queue. It costs no more than reading one batch, whatever the number of tasks.
func (q *Queue) Statistics() (*Statistics, error) {
	s := &Statistics{Statuses: map[string]int{}, Kinds: map[string]int{}, Indexes: map[string]int{}, MaxBytes: q.o.MaxBytes, Batches: q.ended.Load(), Commits: q.commits.Read()}
	err := q.read(func(ro *roster, tx *boltfile.Tx) error {
		for i, set := range ro.byStatus {
			s.Statuses[Status(i).String()] = int(set.GetCardinality())
		}
		for i, set := range ro.byKind {
			s.Kinds[Kind(i).String()] = int(set.GetCardinality())
		}
		ro.names.each(func(uid string, id nameID) {
			if set := ro.byName[id]; set != nil && !set.IsEmpty() {
				s.Indexes[uid] = int(set.GetCardinality())
			}
		})
		if unfinished := ro.byStatus[Enqueued]; !unfinished.IsEmpty() {
			s.Oldest = fromNanos(ro.times.get(unfinished.Minimum(), enqueuedAt))
		}
		for i, run := range ro.running {
			n := int(run.set.GetCardinality())
			s.Statuses[Enqueued.String()] -= n
			s.Statuses[Processing.String()] += n
			if i == 0 {
				s.Running, s.RunningBatch, s.RunningSteps = true, run.uid, run.progress.current().Steps
			}
		}
		for _, status := range [...]Status{Succeeded, Failed} {
			if set := ro.batchesByStatus[status]; !set.IsEmpty() {
				s.LastBatch, s.Finished = max(s.LastBatch, set.Maximum()), true
			}
		}
		ended := roaring.Or(ro.batchesByStatus[Succeeded], ro.batchesByStatus[Failed])
		if ended.And(ro.batchesByKind[DocumentAdditionOrUpdate]); !ended.IsEmpty() {
			s.Indexed = &IndexedBatch{UID: ended.Maximum()}
		}
		s.UsedBytes = q.usedBytes(tx)
		return nil
	}, func(tx *boltfile.Tx) error {
		if s.Indexed != nil {
			b, err := readBatch(tx, s.Indexed.UID, nil, nil)
			if err != nil {
				return err
			}
			if err := s.Indexed.read(b); err != nil {
				return err
			}
		}
		if !s.Finished {
			return nil
		}
		b, err := readBatch(tx, s.LastBatch, nil, nil)
		if err != nil {
			return err
		}
		for _, e := range b.Stats.trace {
			s.LastTrace = append(s.LastTrace, StepTime{e.path, e.took})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// read sets the fields from the record of the batch, whose tasks all belong to one index.
func (x *IndexedBatch) read(b *Batch) error {
	for uid := range b.Stats.Indexes {
		x.IndexUID = uid
	}
	x.Took = b.FinishedAt.Sub(b.StartedAt)
	var details struct {
		IndexedDocuments int64 `json:"indexedDocuments"`
	}
	if err := json.Unmarshal(b.Details, &details); err != nil {
		return fmt.Errorf("cannot read the details of batch %d: %w", b.UID, err)
	}
	x.Documents = details.IndexedDocuments
	return nil
}

// usedBytes returns the live bytes of the queue's file.
func (q *Queue) usedBytes(tx *boltfile.Tx) int64 {
	return tx.Size() - q.db.FreeBytes()
}
