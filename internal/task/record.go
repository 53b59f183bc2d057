package task

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"svc/internal/apierr"
)

// noUID stands for a missing uid in records and facts. Enqueue never gives it to a task.
const noUID = ^uint32(0)

// A task's record in the queue file, all numbers little-endian:
//
//	u8  version (1)
//	u8  status
//	u8  kind
//	u8  flags: 1 index, 2 metadata, 4 details, 8 error, 16 network
//	i64 enqueued, started, finished: nanoseconds since 1970, 0 for none
//	u32 batch, canceledBy: noUID for none
//	uvarint count, then a uvarint each: the names the task touches (see names.go); with flag "index" the first is its own
//	uvarint length + bytes, each of: metadata, details (JSON), error code, error message, network (JSON) where flagged; content
//	  (JSON) always
//
// The fixed part is what start-up reads of every task; the rest is decoded when the task is shown or run.
const (
	recordVersion = 1
	recordFixed   = 4 + 3*8 + 2*4

	hasIndex    = 1
	hasMetadata = 2
	hasDetails  = 4
	hasError    = 8
	hasNetwork  = 16
)

var errRecord = errors.New("damaged record")

// record is a task as it is stored.
type record struct {
	head
	stored   *head // as decodeRecord read it, or as it was put last; nil: the file does not have the task
	hasIndex bool
	metadata *string
	details  []byte // nil: none
	err      *apierr.Error
	network  []byte // nil: none
	content  []byte
}

// size is how many bytes append appends at most.
func (r *record) size() int {
	n := recordFixed + binary.MaxVarintLen32*(2+len(r.names)+5) + len(r.details) + len(r.network) + len(r.content)
	if r.metadata != nil {
		n += len(*r.metadata)
	}
	if r.err != nil {
		n += binary.MaxVarintLen32 + len(r.err.Code) + len(r.err.Message)
	}
	return n
}

// append appends the record: version, status, kind, flags, three times, two uids and the names of indexes, then the parts that the
// flags announce, and the content. The part up to the names has everything that the roster keeps, so that a start decodes no content.
func (r *record) append(b []byte) []byte {
	var flags byte
	if r.hasIndex {
		flags |= hasIndex
	}
	if r.metadata != nil {
		flags |= hasMetadata
	}
	if r.details != nil {
		flags |= hasDetails
	}
	if r.err != nil {
		flags |= hasError
	}
	if r.network != nil {
		flags |= hasNetwork
	}
	b = append(b, recordVersion, byte(r.status), byte(r.kind), flags)
	for _, t := range r.times {
		b = binary.LittleEndian.AppendUint64(b, uint64(t))
	}
	b = binary.LittleEndian.AppendUint32(b, r.batch)
	b = binary.LittleEndian.AppendUint32(b, r.canceledBy)
	b = binary.AppendUvarint(b, uint64(len(r.names)))
	for _, n := range r.names {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if r.metadata != nil {
		b = appendBytes(b, *r.metadata)
	}
	if r.details != nil {
		b = appendBytes(b, r.details)
	}
	if r.err != nil {
		b = appendBytes(b, r.err.Code)
		b = appendBytes(b, r.err.Message)
	}
	if r.network != nil {
		b = appendBytes(b, r.network)
	}
	return appendBytes(b, r.content)
}

func appendBytes[T ~string | ~[]byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// decodeHead reads the fixed part and the names of a record, and returns what follows.
func (r *record) decodeHead(b []byte) (rest []byte, err error) {
	if len(b) < recordFixed {
		return nil, errRecord
	}
	if b[0] != recordVersion {
		return nil, fmt.Errorf("record version %d, want %d", b[0], recordVersion)
	}
	if int(b[1]) >= len(statusNames) || Kind(b[2]) >= kindCount {
		return nil, errRecord
	}
	r.status, r.kind, r.hasIndex = Status(b[1]), Kind(b[2]), b[3]&hasIndex != 0
	for i := range r.times {
		r.times[i] = int64(binary.LittleEndian.Uint64(b[4+8*i:]))
	}
	r.batch = binary.LittleEndian.Uint32(b[28:])
	r.canceledBy = binary.LittleEndian.Uint32(b[32:])
	b = b[recordFixed:]
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, errRecord
	}
	b = b[n:]
	r.names = r.names[:0]
	for range count {
		name, n := binary.Uvarint(b)
		if n <= 0 || name > uint64(^nameID(0)) {
			return nil, errRecord
		}
		r.names = append(r.names, nameID(name))
		b = b[n:]
	}
	if r.hasIndex && count == 0 {
		return nil, errRecord
	}
	return b, nil
}

// decodeRecord reads a record, which may be modified and stored again. It copies b, which may belong to the queue file.
func decodeRecord(b []byte) (*record, error) {
	r, content, err := decodeFields(bytes.Clone(b), func(field []byte) ([]byte, error) { return field, nil })
	if err != nil {
		return nil, err
	}
	r.content = content
	stored := r.head
	r.stored = &stored
	return r, nil
}

// decodeShown decodes the part of a task that the API shows. Its content aliases b and is not part of the record. It calls
// room, if not nil, before it allocates memory for large values.
func decodeShown(b []byte, room Room) (r *record, content []byte, err error) {
	return decodeFields(b, func(field []byte) ([]byte, error) {
		if len(field) >= largeBytes && room != nil {
			if err := room.Hold(len(field)); err != nil {
				return nil, err
			}
		}
		return append(make([]byte, 0, len(field)), field...), nil
	})
}

// decodeFields decodes a record without its content, which it returns. keep returns the copy of a field to store.
func decodeFields(b []byte, keep func(field []byte) ([]byte, error)) (r *record, content []byte, err error) {
	r = new(record)
	rest, err := r.decodeHead(b)
	if err != nil {
		return nil, nil, err
	}
	flags := b[3]
	next := func() (s []byte) {
		if err != nil {
			return nil
		}
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			err = errRecord
			return nil
		}
		s, rest = rest[n:n+int(length)], rest[n+int(length):]
		return s
	}
	field := func() (s []byte) {
		if s = next(); err == nil {
			s, err = keep(s)
		}
		return s
	}
	if flags&hasMetadata != 0 {
		s := string(field())
		r.metadata = &s
	}
	if flags&hasDetails != 0 {
		r.details = field()
	}
	if flags&hasError != 0 {
		r.err = &apierr.Error{Code: apierr.Code(field())}
		r.err.Message = string(field())
	}
	if flags&hasNetwork != 0 {
		r.network = field()
	}
	content = next()
	if err == nil && len(rest) != 0 {
		err = errRecord
	}
	if err != nil {
		return nil, nil, err
	}
	return r, content, nil
}

// task gives the stored task, without its content.
func (r *record) task(uid uint32, names *names) *Task {
	t := &Task{
		UID: uid, Status: r.status, Kind: r.kind, Details: r.details, Error: r.err, CustomMetadata: r.metadata, Network: r.network,
		EnqueuedAt: fromNanos(r.times[enqueuedAt]), StartedAt: fromNanos(r.times[startedAt]), FinishedAt: fromNanos(r.times[finishedAt]),
		BatchUID: uidOrNil(r.batch), CanceledBy: uidOrNil(r.canceledBy),
	}
	if r.hasIndex {
		t.IndexUID = names.text(r.names[0])
	}
	return t
}

func uidOrNil(uid uint32) *uint32 {
	if uid == noUID {
		return nil
	}
	return &uid
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func toNanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
