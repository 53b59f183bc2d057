package publish

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
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

	// healTime is the least time between two images that are made because objects are damaged.
	healTime = 10 * time.Minute
)

// scrubber finds objects of the last image, and of the entries behind it, that are missing or damaged. They are forgotten, and another
// image is made: with it they are sent again. What only earlier images need cannot be sent again, as the directory no longer has it.
//
// Missing objects and wrong sizes are seen in a list after each image. If Options.Verify is set, the content of all files is read once in
// that time, in the order of their names, which are checksums: it is random. After a restart it goes on anywhere.
type scrubber struct {
	p      *Publisher
	after  string // the name of the last file that was read
	healed time.Time

	// These are of the last image.
	files []group.File   // by name of their object
	bytes int64          // of files
	read  int64          // of files, since all entries are read again
	begin group.Position // the entries are behind it
	from  group.Position // of the last entries that were read
}

func newScrubber(p *Publisher) *scrubber {
	start := make([]byte, 1)
	rand.Read(start)
	return &scrubber{p: p, after: filesPrefix + hex.EncodeToString(start)}
}

// pause returns the time until the next step; 0: there is none.
func (s *scrubber) pause() time.Duration { return min(s.p.o.Verify, scrubTime) }

// due returns a channel that is ready when a step is due.
func (s *scrubber) due() <-chan time.Time {
	if s.pause() == 0 {
		return nil
	}
	return time.After(s.pause())
}

// image looks at the list of objects after an image. It reports whether another one is to be made.
func (s *scrubber) image(ctx context.Context, st *group.Image) (again bool, err error) {
	s.files, s.bytes, s.read, s.begin, s.from = s.files[:0], 0, 0, st.Run, st.Run
	listed := map[string]int64{}
	for i := range st.Files {
		f := &st.Files[i].File
		listed[fileName(*f)] = -1
		s.files = append(s.files, *f)
		s.bytes += f.Size
	}
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
	for i := range s.files {
		f := &s.files[i]
		if listed[fileName(*f)] == s.p.archive.stored(f.Size) {
			continue
		}
		bad, err := s.check(ctx, f) // lists may be stale
		if err != nil {
			return false, err
		}
		again = again || bad
	}
	return again && s.heals(), nil
}

// step reads some of the files, and the entries that were published since the step before; after all of the files, all entries again. It
// reports whether another image is to be made.
func (s *scrubber) step(ctx context.Context) (again bool, err error) {
	left := s.bytes
	if share := float64(s.pause()) / float64(s.p.o.Verify); share < 1 {
		left = int64(float64(left) * share)
	}
	at, _ := slices.BinarySearchFunc(s.files, s.after, func(f group.File, name string) int { return cmp.Compare(fileName(f), name) })
	for n := 0; n < len(s.files) && left >= 0; n++ {
		f := &s.files[(at+n)%len(s.files)]
		if name := fileName(*f); n > 0 || name != s.after {
			bad, err := s.check(ctx, f)
			if err != nil {
				return false, err
			}
			again = again || bad
			left -= f.Size
			s.read += f.Size
			s.after = name
		}
	}
	if s.read >= s.bytes {
		s.read, s.from = 0, s.begin
	}
	bad, err := s.entries(ctx)
	return (again || bad) && s.heals(), err
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

// entries reads the entries behind the image that it did not read before.
func (s *scrubber) entries(ctx context.Context) (bad bool, err error) {
	next := s.from
	next.Index++
	var logs []logRef
	err = s.p.retry(ctx, func() (err error) {
		logs, err = s.p.archive.logsFrom(ctx, next, 0)
		return err
	})
	for i := range logs {
		l := &logs[i]
		if err == nil {
			err = s.p.retry(ctx, func() error {
				_, err := s.p.archive.batch(ctx, l)
				if broken(err) && !errors.Is(err, fs.ErrNotExist) { // lists may be stale
					return &fatalError{err}
				}
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			})
		}
		if broken(err) {
			s.p.damaged(l.name, err)
			bad, err = true, nil
		}
		s.from.Index = max(s.from.Index, l.last)
	}
	return bad, err
}

// heals reports whether another image may be made now.
func (s *scrubber) heals() bool {
	if !s.healed.IsZero() && time.Since(s.healed) < s.p.o.heal {
		return false // what was forgotten is sent with the next image
	}
	s.healed = time.Now()
	return true
}

// damaged notes a damaged object.
func (p *Publisher) damaged(name string, err error) {
	p.o.Logger.Warn("an object of the publication is missing or damaged; svc uploads a new image", "object", name, "error", err)
	p.note(func(s *Status) { s.Damaged++ })
}

// stored returns the size of an object with so many bytes of content.
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
