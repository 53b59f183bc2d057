package task

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/bytedance/sonic"

	"svc/internal/embed"
)

// Batch is a finished or running batch. MarshalJSON gives the object of the API.
// Batches that the queue hands out are the caller's own.
type Batch struct {
	UID        uint32
	Progress   *Progress       // nil unless it runs
	Details    json.RawMessage // the union of its tasks' details
	Stats      Stats
	StartedAt  time.Time
	FinishedAt time.Time // zero while it runs
	Strategy   string    // why the batch holds no more tasks

	// When the first and the last of its tasks were enqueued; zero while it runs.
	Oldest, Newest time.Time
}

// Stats count the tasks that were in a batch when it finished.
type Stats struct {
	Total    int
	Statuses [len(statusNames)]int // by Status
	Kinds    [kindCount]int        // by Kind
	Indexes  map[string]int        // by index uid; global tasks are not in it
	Requests *Requests             // to providers of embeddings; nil when there was none
	trace    []traceEntry
}

// Requests counts the requests of a batch to embedding providers, retries included.
type Requests struct {
	Total     uint64 `json:"total"`
	Failed    uint64 `json:"failed"`
	LastError string `json:"lastError,omitempty"` // of the last one that failed
}

// requestsOf returns the calls to embedders of a batch, as the API shows them; nil if there were none.
func requestsOf(s *embed.Stats) *Requests {
	var r Requests
	if r.Total, r.Failed, r.LastError = s.Counts(); r.Total == 0 {
		return nil
	}
	return &r
}

// count counts a task by its status, kind and index.
func (s *Stats) count(t *Task) {
	s.Total++
	s.Statuses[t.Status]++
	s.Kinds[t.Kind]++
	if t.IndexUID != "" {
		if s.Indexes == nil {
			s.Indexes = map[string]int{}
		}
		s.Indexes[t.IndexUID]++
	}
}

// JSONBytes is how many bytes the batch object has, about.
func (b *Batch) JSONBytes() int { return objectBytes + len(b.Details) + len(b.Stats.Indexes)*500 }

// MarshalJSON gives the batch object of the API.
func (b *Batch) MarshalJSON() ([]byte, error) { return b.AppendJSON(make([]byte, 0, 512)), nil }

// AppendJSON appends the batch object of the API to dst.
func (b *Batch) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"uid":`...)
	dst = strconv.AppendUint(dst, uint64(b.UID), 10)
	dst = append(dst, `,"progress":`...)
	if b.Progress == nil {
		dst = append(dst, "null"...)
	} else {
		dst = b.Progress.appendJSON(dst)
	}
	dst = append(dst, `,"details":`...)
	dst = appendRaw(dst, b.Details)
	dst = append(dst, `,"stats":`...)
	dst = b.Stats.appendJSON(dst)
	dst = append(dst, `,"duration":`...)
	dst = appendDuration(dst, b.StartedAt, b.FinishedAt)
	dst = append(dst, `,"startedAt":`...)
	dst = appendTime(dst, b.StartedAt)
	dst = append(dst, `,"finishedAt":`...)
	dst = appendTime(dst, b.FinishedAt)
	dst = append(dst, `,"batchStrategy":`...)
	dst = appendString(dst, b.Strategy)
	return append(dst, '}')
}

func (s *Stats) appendJSON(b []byte) []byte {
	b = append(b, `{"totalNbTasks":`...)
	b = strconv.AppendInt(b, int64(s.Total), 10)
	b = append(b, `,"status":`...)
	b = appendCounts(b, statusNames[:], s.Statuses[:])
	b = append(b, `,"types":`...)
	b = appendCounts(b, kindNames[:], s.Kinds[:])
	b = append(b, `,"indexUids":`...)
	uids := sortedKeys(s.Indexes)
	counts := make([]int, len(uids))
	for i, uid := range uids {
		counts[i] = s.Indexes[uid]
	}
	b = appendCounts(b, uids, counts)
	if len(s.trace) > 0 {
		b = append(b, `,"progressTrace":{`...)
		for i, e := range s.trace {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, e.path)
			b = append(b, ':')
			b = appendString(b, shortDuration(e.took))
		}
		b = append(b, '}')
	}
	if s.Requests != nil {
		b = append(append(b, `,"embedderRequests":`...), encode(s.Requests)...)
	}
	return append(b, '}')
}

// appendCounts writes an object of the counts that are not zero.
func appendCounts(b []byte, names []string, counts []int) []byte {
	b = append(b, '{')
	for i, n := range counts {
		if n == 0 {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = appendString(b, names[i])
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, '}')
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// A batch's record in the queue file, all numbers little-endian:
//
//	u8  version (1)
//	u8  a bit for each status among its tasks
//	u32 a bit for each kind among its tasks
//	i64 started, finished, then the oldest and the newest time a task of it was enqueued: nanoseconds since 1970
//	uvarint count, then uvarint length + bytes each: its index uids
//	JSON of storedBatch
const (
	batchVersion = 1
	batchFixed   = 2 + 4 + 4*8
)

// batchTimesStored are the columns that a batch has; enqueuedAt is not one of them.
var batchTimesStored = [...]int{startedAt, finishedAt, oldestEnqueued, newestEnqueued}

// storedBatch is the JSON part of a batch record, behind the fixed part that the roster reads.
type storedBatch struct {
	Details  json.RawMessage `json:"details"`
	Total    int             `json:"total"`
	Statuses []int           `json:"statuses"`
	Kinds    []int           `json:"kinds"`
	Indexes  map[string]int  `json:"indexes"`
	Trace    []storedStep    `json:"trace,omitempty"`
	Requests *Requests       `json:"requests,omitempty"`
	Strategy string          `json:"strategy"`
	Tasks    []byte          `json:"tasks"` // a roaring bitmap
}

type storedStep struct {
	Path string        `json:"path"`
	Took time.Duration `json:"took"`
}

// count takes note of a task of the batch.
func (f *batchFact) count(t *Task) {
	f.statuses |= 1 << t.Status
	f.kinds |= 1 << t.Kind
	at := toNanos(t.EnqueuedAt)
	if f.times[oldestEnqueued] == 0 || at < f.times[oldestEnqueued] {
		f.times[oldestEnqueued] = at
	}
	f.times[newestEnqueued] = max(f.times[newestEnqueued], at)
}

// encodeBatch gives the record of a finished batch.
func encodeBatch(b *Batch, f *batchFact, tasks *roaring.Bitmap) ([]byte, error) {
	set, err := tasks.ToBytes()
	if err != nil {
		return nil, fmt.Errorf("cannot encode the tasks of batch %d: %w", b.UID, err)
	}
	s := storedBatch{
		Details: b.Details, Total: b.Stats.Total, Statuses: b.Stats.Statuses[:], Kinds: b.Stats.Kinds[:],
		Indexes: b.Stats.Indexes, Strategy: b.Strategy, Tasks: set, Requests: b.Stats.Requests,
	}
	for _, e := range b.Stats.trace {
		s.Trace = append(s.Trace, storedStep{e.path, e.took})
	}
	rec := append(make([]byte, 0, 512), batchVersion, f.statuses)
	rec = binary.LittleEndian.AppendUint32(rec, f.kinds)
	for _, column := range batchTimesStored {
		rec = binary.LittleEndian.AppendUint64(rec, uint64(f.times[column]))
	}
	rec = binary.AppendUvarint(rec, uint64(len(f.indexes)))
	for _, uid := range f.indexes {
		rec = appendBytes(rec, uid)
	}
	return append(rec, encode(s)...), nil
}

// decode reads the head of a batch's record and returns the JSON after it.
func (f *batchFact) decode(b []byte) (rest []byte, err error) {
	if len(b) < batchFixed {
		return nil, errRecord
	}
	if b[0] != batchVersion {
		return nil, fmt.Errorf("record version %d, want %d", b[0], batchVersion)
	}
	f.statuses, f.kinds = b[1], binary.LittleEndian.Uint32(b[2:])
	for i, column := range batchTimesStored {
		f.times[column] = int64(binary.LittleEndian.Uint64(b[6+8*i:]))
	}
	b = b[batchFixed:]
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, errRecord
	}
	b = b[n:]
	f.indexes = f.indexes[:0]
	for range count {
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)-n) {
			return nil, errRecord
		}
		f.indexes = append(f.indexes, string(b[n:n+int(length)]))
		b = b[n+int(length):]
	}
	return b, nil
}

// decodeBatch reads a batch's record.
func decodeBatch(uid uint32, rec []byte) (*Batch, *roaring.Bitmap, error) {
	var f batchFact
	rest, err := f.decode(rec)
	if err != nil {
		return nil, nil, err
	}
	var s storedBatch
	if err := sonic.Unmarshal(slices.Clone(rest), &s); err != nil {
		return nil, nil, err
	}
	set := roaring.New()
	if err := set.UnmarshalBinary(s.Tasks); err != nil {
		return nil, nil, err
	}
	b := &Batch{
		UID: uid, Details: s.Details, Strategy: s.Strategy,
		StartedAt: fromNanos(f.times[startedAt]), FinishedAt: fromNanos(f.times[finishedAt]),
		Stats:  Stats{Total: s.Total, Indexes: s.Indexes, Requests: s.Requests},
		Oldest: fromNanos(f.times[oldestEnqueued]), Newest: fromNanos(f.times[newestEnqueued]),
	}
	copy(b.Stats.Statuses[:], s.Statuses)
	copy(b.Stats.Kinds[:], s.Kinds)
	for _, e := range s.Trace {
		b.Stats.trace = append(b.Stats.trace, traceEntry{e.Path, e.Took})
	}
	return b, set, nil
}
