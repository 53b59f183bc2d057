package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"svc/internal/apierr"
	"svc/internal/boltfile"
	"svc/internal/vfs"
)

// Salvaged reads the remains of a queue directory that is not open.
type Salvaged struct {
	dir     string
	remains *boltfile.Remains // nil: there is no file
	names   *names
	lost    []*apierr.Corruption
}

// Salvage opens the files of a queue that may be damaged anywhere.
func Salvage(dir string) (*Salvaged, error) {
	s := &Salvaged{dir: dir, names: newNames()}
	file := path.Join(dir, "queue.db")
	r, err := boltfile.Salvage(file)
	if errors.Is(err, fs.ErrNotExist) {
		s.lost = append(s.lost, &apierr.Corruption{File: file, Offset: -1, Reason: "it is missing"})
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	s.remains = r
	err = r.Each(string(nameBucket), func(k, v []byte) error {
		if len(k) != 4 {
			return &boltfile.BadValue{Err: errRecord}
		}
		s.names.set(nameID(binary.BigEndian.Uint32(k)), string(v))
		return nil
	})
	return s, err
}

// Close closes the file.
func (s *Salvaged) Close() error {
	if s.remains == nil {
		return nil
	}
	return s.remains.Close()
}

// Lost returns the losses found so far.
func (s *Salvaged) Lost() []*apierr.Corruption {
	if s.remains == nil {
		return s.lost
	}
	return append(s.lost, s.remains.Lost...)
}

// Tasks calls f with each task that can be read, with its content, in the order of uids.
func (s *Salvaged) Tasks(f func(*Task) error) error {
	return s.each(taskBucket, func(uid uint32, v []byte) (func() error, error) {
		rec, err := decodeRecord(v)
		if err != nil {
			return nil, err
		}
		if rec.hasIndex && s.names.text(rec.names[0]) == "" {
			return nil, errors.New("the uid of its index is lost")
		}
		t := rec.task(uid, s.names)
		if t.Content, err = decodeContent(rec.kind, rec.content); err != nil {
			return nil, err
		}
		return func() error { return f(t) }, nil
	})
}

// Changed returns the tasks of the batches that were running last and that changed indexes, with the start of the batch. Such a batch
// ended even if the queue file does not know its end. steps are the last ones of the indexes.
func (s *Salvaged) Changed(steps []uint64) map[uint32]time.Time {
	_, last, err := openJournal(vfs.OS, s.dir)
	if err != nil {
		s.lost = append(s.lost, &apierr.Corruption{File: path.Join(s.dir, "running"), Offset: -1, Reason: err.Error()})
		return nil
	}
	changed := map[uint32]time.Time{}
	for _, e := range last.all() {
		first, end := marks(e.UID, e.Plan.Create)
		if slices.ContainsFunc(steps, func(step uint64) bool { return step >= first && step < end }) {
			for _, uid := range e.Tasks {
				changed[uid] = e.StartedAt
			}
		}
	}
	return changed
}

// Batches calls f with each batch that can be read, in the order of uids.
func (s *Salvaged) Batches(f func(*Batch) error) error {
	return s.each(batchBucket, func(uid uint32, v []byte) (func() error, error) {
		b, _, err := decodeBatch(uid, v)
		return func() error { return f(b) }, err
	})
}

// each calls decode with each readable value of a bucket, and then the function that decode returns. A value for which decode fails
// counts as lost.
func (s *Salvaged) each(bucket []byte, decode func(uid uint32, v []byte) (func() error, error)) error {
	if s.remains == nil {
		return nil
	}
	return s.remains.Each(string(bucket), func(k, v []byte) error {
		if len(k) != 4 {
			return &boltfile.BadValue{Err: errRecord}
		}
		call, err := decode(binary.BigEndian.Uint32(k), v)
		if err != nil {
			return &boltfile.BadValue{Err: err}
		}
		return call()
	})
}

// PayloadFile returns where the documents of an addition lie.
func (s *Salvaged) PayloadFile(c AddDocuments) string { return path.Join(s.dir, "payloads", c.File) }
