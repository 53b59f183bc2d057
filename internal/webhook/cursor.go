package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/sealedjson"
)

// cursorVersion is the format version of the file of cursors.
const cursorVersion = 1

// cursors has the cursor of each webhook: the set of batches that need not be delivered to it. These were delivered, were given up,
// or ended before the webhook was created. Batches end and are delivered out of order, so one number is not enough, but the set has
// few runs. The file is a sealed JSON object with the runs of each webhook, by UUID: [[first, last], ...].
type cursors map[uuid.UUID]*roaring.Bitmap

// readCursors reads the file. If it is missing, there are no cursors.
func (s *Sender) readCursors() (cursors, error) {
	b, err := sealedjson.Read(s.fs, s.file, cursorVersion)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := parseCursors(b)
	if err != nil {
		return nil, &apierr.Corruption{File: s.file, Offset: -1, Reason: err.Error()}
	}
	return c, nil
}

func parseCursors(b []byte) (cursors, error) {
	var runs map[uuid.UUID][][]uint32
	if err := json.Unmarshal(b, &runs); err != nil {
		return nil, err
	}
	c := make(cursors, len(runs))
	for id, all := range runs {
		set := roaring.New()
		for _, run := range all {
			if len(run) != 2 || run[0] > run[1] {
				return nil, fmt.Errorf("%v is no run of batches", run)
			}
			set.AddRange(uint64(run[0]), uint64(run[1])+1)
		}
		c[id] = set
	}
	return c, nil
}

// encode returns the content of the file.
func (c cursors) encode() ([]byte, error) {
	runs := make(map[uuid.UUID][][2]uint32, len(c))
	for id, set := range c {
		all := [][2]uint32{}
		for first, end := range set.Ranges() {
			all = append(all, [2]uint32{first, uint32(end - 1)})
		}
		runs[id] = all
	}
	return json.Marshal(runs)
}

// save writes the cursors if they have changed since they were written.
func (s *Sender) save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	if !s.changed {
		s.mu.Unlock()
		return nil
	}
	c := make(cursors, len(s.lines))
	for id, l := range s.lines {
		c[id] = l.settled.Clone()
	}
	s.changed = false
	s.mu.Unlock()
	b, err := c.encode()
	if err == nil {
		err = sealedjson.Write(s.fs, s.file, cursorVersion, b)
	}
	if err != nil {
		s.mu.Lock()
		s.changed = true
		s.mu.Unlock()
		return fmt.Errorf("cannot store the webhook cursors: %w", err)
	}
	return nil
}
