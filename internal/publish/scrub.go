package publish

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minio/sio"

	"svc/internal/bucket"
	"svc/internal/group"
)

const (
	// scrubTime is the time between two steps of a scrubber, if Options.Verify is longer.
	scrubTime = time.Hour

	// healTime is the minimum time between two images that are made because objects are damaged.
	healTime = 10 * time.Minute
)

// scrubber finds missing or damaged objects of the last image and of later entries. It forgets them and requests another image, with
// which they are uploaded again. Objects that only earlier images need cannot be uploaded again, because the directory no longer has
// them.
//
// A list after each image shows missing files and wrong sizes. If Options.Verify is set, the content of all files is read once in
// that time, in the random order of their names, which are checksums. Each step also reads new entries and finds missing ones. After
// a restart it continues at a random place.
type scrubber struct {
	p       *Publisher
	after   string    // the name of the last file that was read
	left    float64   // bytes of files that the steps so far may have read and have not; less than 0: they read more
	next    time.Time // when a step is due
	healed  time.Time // when an image was asked for last; zero: never
	pending bool      // damage was found too soon after that

	// These are of the last image.
	files []group.File   // by name of their object
	bytes int64          // of files
	read  int64          // of files, since all entries are read again
	begin group.Position // the entries are behind it
	from  group.Position // of the last entries that were read
	lost  uint64         // the first entry that the step before did not find; 0: it found all
}

// newScrubber makes a scrubber that begins at a random file: publishers that restart often reach all files in
// the end.
func newScrubber(p *Publisher) *scrubber {
	start := make([]byte, 1)
	rand.Read(start)
	s := &scrubber{p: p, after: filesPrefix + hex.EncodeToString(start)}
	s.next = time.Now().Add(s.pause())
	return s
}

// pause returns the time until the next step, or 0 if there is none.
func (s *scrubber) pause() time.Duration { return min(s.p.o.Verify, scrubTime) }

// due returns a channel that receives when wake has something to do. Images do not delay it.
func (s *scrubber) due() <-chan time.Time {
	at := s.next
	if heal := s.healed.Add(s.p.o.heal); s.pending && (s.pause() == 0 || heal.Before(at)) {
		at = heal
	} else if s.pause() == 0 {
		return nil
	}
	return time.After(time.Until(at))
}

// wake does a step if one is due. It reports whether to make another image.
func (s *scrubber) wake(ctx context.Context) (again bool, err error) {
	bad := false
	if s.pause() > 0 && !time.Now().Before(s.next) {
		s.next = time.Now().Add(s.pause())
		bad, err = s.step(ctx)
	}
	return s.heals(bad), err
}

// image looks at the list of objects after an image. It reports whether another one is to be made.
func (s *scrubber) image(ctx context.Context, st *group.Image) (again bool, err error) {
	s.files, s.bytes, s.read, s.begin, s.from, s.lost = s.files[:0], 0, 0, st.Run, st.Run, 0
	s.pending = false // the image uploads what was forgotten
	listed := map[string]int64{}
	for i := range st.Files {
		f := &st.Files[i].File
		listed[fileName(*f)] = -1
		s.files = append(s.files, *f)
		s.bytes += f.Size
	}
	s.left = max(s.left, -float64(s.bytes)) // a large file may have been deleted after it was read
	slices.SortFunc(s.files, func(a, b group.File) int { return cmp.Compare(fileName(a), fileName(b)) })
	err = s.p.retry(ctx, func() error {
		return s.p.o.Store.List(ctx, filesPrefix, "", func(o bucket.Object) error {
			if _, ok := listed[o.Name]; ok {
				listed[o.Name] = o.Size
			}
			return nil
		})
	})
	if err != nil {
		return false, err
	}
	bad := false
	for i := range s.files {
		f := &s.files[i]
		if listed[fileName(*f)] == s.p.archive.stored(f.Size) {
			continue
		}
		damaged, err := s.check(ctx, f) // lists may be stale
		if err != nil {
			return false, err
		}
		bad = bad || damaged
	}
	return s.heals(bad), nil
}

// step reads some of the files, and the entries that were published since the step before; after all of the files, all entries again. It
// reports whether anything is missing or damaged.
func (s *scrubber) step(ctx context.Context) (bad bool, err error) {
	s.left += float64(s.bytes) * float64(s.pause()) / float64(s.p.o.Verify)
	at, found := slices.BinarySearchFunc(s.files, s.after, func(f group.File, name string) int { return cmp.Compare(fileName(f), name) })
	if found {
		at++
	}
	for n := 0; n < len(s.files) && s.left > 0; n++ {
		f := &s.files[(at+n)%len(s.files)]
		damaged, err := s.check(ctx, f)
		if err != nil {
			return bad, err
		}
		bad = bad || damaged
		s.left -= float64(f.Size)
		s.read += f.Size
		s.after = fileName(*f)
	}
	s.left = min(s.left, 0) // all was read
	if s.read >= s.bytes {
		s.read, s.from = 0, s.begin
	}
	damaged, err := s.entries(ctx)
	return bad || damaged, err
}

// check reads a file, and forgets its object if that is bad.
func (s *scrubber) check(ctx context.Context, f *group.File) (bad bool, err error) {
	name := fileName(*f)
	err = s.p.retry(ctx, func() error {
		in, err := s.p.archive.file(ctx, *f)
		if err == nil {
			_, err = io.Copy(io.Discard, &paced{ctx, in, s.p.limit})
			_ = in.Close()
		}
		if broken(err) {
			return &fatalError{err}
		}
		return err
	})
	if !broken(err) {
		return false, err
	}
	s.p.damaged(name, err)
	s.p.objects.forget(name)
	return true, nil
}

// entries reads the entries after the image that it has not read before. Lists may be stale, so entries are missing only if two steps
// do not find them.
func (s *scrubber) entries(ctx context.Context) (bad bool, err error) {
	published, lost := s.p.published(), s.lost
	s.lost = 0
	next, before := s.from, uint64(0)
	next.Index++
	if s.from == s.begin {
		before = maxBatchEntries // the image may have been taken in the middle of an object
	}
	var logs []logRef
	err = s.p.retry(ctx, func() (err error) {
		logs, err = s.p.archive.logsFrom(ctx, next, before)
		return err
	})
	if err != nil {
		return false, err
	}
	for i := range logs {
		l := &logs[i]
		gone, waits := s.missing(l.first.Index, lost)
		if bad = bad || gone; waits {
			return bad, nil
		}
		err := s.p.retry(ctx, func() error {
			_, err := s.p.archive.batch(ctx, l)
			if broken(err) {
				return &fatalError{err}
			}
			return err
		})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // as if it were not listed
		case broken(err):
			s.p.damaged(l.name, err)
			bad = true
		case err != nil:
			return bad, err
		}
		s.from.Index = max(s.from.Index, l.last)
	}
	if published.SameLog(s.from) {
		gone, _ := s.missing(published.Index+1, lost)
		bad = bad || gone
	}
	return bad, nil
}

// missing records that the entries from the next one up to, but not including, end are missing. If the step before already missed the
// entries from lost on, they are gone, and the scrubber continues after them. Otherwise it waits for the next step.
func (s *scrubber) missing(end, lost uint64) (gone, waits bool) {
	first := s.from.Index + 1
	switch {
	case end <= first:
		return false, false
	case lost != first:
		s.lost = first
		return false, true
	}
	s.p.damaged(logPrefix, fmt.Errorf("no object has the entries %d to %d: %w", first, end-1, fs.ErrNotExist))
	s.from.Index = end - 1
	return true, false
}

// heals reports whether another image is to be made now, as damage was found.
func (s *scrubber) heals(bad bool) bool {
	s.pending = s.pending || bad
	if !s.pending || !s.healed.IsZero() && time.Since(s.healed) < s.p.o.heal {
		return false
	}
	s.pending, s.healed = false, time.Now()
	return true
}

// damaged notes a damaged object.
func (p *Publisher) damaged(name string, err error) {
	p.o.Logger.Warn("an object of the publication is missing or damaged; svc uploads a new image", "object", name, "error", err)
	p.note(func(s *Status) { s.Damaged++ })
}

// stored returns the size of an object with the given size of content.
func (a *Archive) stored(size int64) int64 {
	if a.key == nil {
		return size
	}
	sealed, err := sio.EncryptedSize(uint64(size))
	if err != nil {
		return -1 // it cannot be sealed
	}
	return int64(sealed)
}

// whole reports whether the object of a file has the size that its name says.
func (a *Archive) whole(o *bucket.Object) bool {
	_, text, _ := strings.Cut(o.Name, "-")
	size, err := strconv.ParseInt(text, 16, 64)
	return err == nil && a.stored(size) == o.Size
}
