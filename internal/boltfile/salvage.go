package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"svc/internal/apierr"
)

// Remains are the values of a damaged file that can be read. Each is as it was stored: its checksum says so.
type Remains struct {
	Lost []*apierr.Corruption // pages, and what Each finds

	name    string
	file    *os.File
	buckets map[string][]remain // by ascending key
}

// remain is where a value stands.
type remain struct {
	key    string
	at     int64
	length int
}

// Salvage reads the remains of a file that is not open. It looks for pages that the newest root no longer leads to below the older
// root, which has them as of before the last change.
func Salvage(name string) (*Remains, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r := &Remains{name: name, file: f}
	roots := rootsOf(f, name, info.Size())
	if len(roots) == 0 {
		r.lose("roots", 0, "both are damaged, or it is not a file of svc")
		return r, nil
	}
	if len(roots) == 1 {
		r.lose("roots", 0, "one of the two is damaged: svc uses the other, which may lack the last change")
	}
	newest := salvager{remains: r, salvageRoot: roots[0], buckets: map[string][]remain{}}
	newest.tree(newest.bucket, "", 0)
	r.buckets = newest.buckets
	if newest.holes > 0 && len(roots) == 2 {
		older := salvager{remains: r, salvageRoot: roots[1], buckets: map[string][]remain{}, silent: true}
		older.tree(older.bucket, "", 0)
		r.add(older.buckets)
	}
	for _, list := range r.buckets {
		slices.SortStableFunc(list, func(a, b remain) int { return strings.Compare(a.key, b.key) })
	}
	return r, nil
}

// rootsOf returns the valid roots, the newest first.
func rootsOf(f io.ReaderAt, name string, length int64) []salvageRoot {
	var roots []salvageRoot
	for at := int64(0); at < length && at <= maxPage; at = max(2*at, minPage) {
		c := checker{r: f, name: name}
		b, size := c.rootAt(at)
		if b == nil || at > 0 && at != size {
			continue
		}
		c.size, c.pages = size, uint64(length/size)
		c.begin()
		roots = append(roots, salvageRoot{c, binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[48:])})
	}
	slices.SortFunc(roots, func(a, b salvageRoot) int { return -int(int64(a.tx - b.tx)) })
	return roots
}

type salvageRoot struct {
	checker
	bucket uint64 // its page
	tx     uint64
}

// add adds what the older root has and the newest lacks.
func (r *Remains) add(older map[string][]remain) {
	n := 0
	for bucket, list := range older {
		known := map[string]bool{}
		for _, e := range r.buckets[bucket] {
			known[e.key] = true
		}
		for _, e := range list {
			if !known[e.key] {
				r.buckets[bucket] = append(r.buckets[bucket], e)
				n++
			}
		}
	}
	if n > 0 {
		r.lose("roots", 0, "%d records are in the state before the last change, which may have removed some of them", n)
	}
}

func (r *Remains) lose(section string, offset int64, format string, args ...any) {
	r.Lost = append(r.Lost, &apierr.Corruption{File: r.name, Section: section, Offset: offset, Reason: fmt.Sprintf(format, args...)})
}

// Close closes the file.
func (r *Remains) Close() error { return r.file.Close() }

// Buckets returns the names of the buckets in which anything was found.
func (r *Remains) Buckets() []string { return slices.Sorted(maps.Keys(r.buckets)) }

// Each calls f with the undamaged values of a bucket, by ascending key. f must not keep them. If f returns an error that says that a
// value is damaged, Each records it like a wrong checksum. Other errors end Each.
func (r *Remains) Each(bucket string, f func(key, value []byte) error) error {
	for _, e := range r.buckets[bucket] {
		b := make([]byte, e.length)
		_, err := r.file.ReadAt(b, e.at)
		var value []byte
		if err == nil {
			value, err = Value([]byte(e.key), b)
		}
		if err == nil {
			if err = f([]byte(e.key), value); err != nil && !errors.As(err, new(*BadValue)) {
				return err
			}
		}
		if err != nil {
			r.lose(bucket, e.at, "key %x: %v", e.key, err)
		}
	}
	return nil
}

// BadValue is the error of who cannot use a value.
type BadValue struct{ Err error }

func (e *BadValue) Error() string { return e.Err.Error() }

// salvager walks through all readable pages that a root reaches.
type salvager struct {
	salvageRoot
	remains *Remains
	buckets map[string][]remain
	holes   int
	silent  bool
}

func (s *salvager) hole(id uint64, format string, args ...any) {
	s.holes++
	if !s.silent {
		s.remains.lose(fmt.Sprintf("page %d", id), int64(id)*s.size, format, args...)
	}
}

// tree collects the entries of a page and its descendants. in names the bucket of the page; "" is the root bucket.
func (s *salvager) tree(id uint64, in string, depth int) {
	page, flags, err := s.read(id)
	if err != nil || depth > maxDepth {
		var damage *apierr.Corruption
		if errors.As(err, &damage) {
			s.hole(id, "%s", damage.Reason)
		} else {
			s.hole(id, "%v", err)
		}
		return
	}
	n := int(binary.LittleEndian.Uint16(page[10:]))
	fits := min(n, (len(page)-pageHeader)/elementBytes)
	switch flags {
	case leafFlag:
		s.leaf(id, page, int64(id)*s.size, in, depth)
	case branchFlag:
		if n == 0 || fits < n {
			s.hole(id, "a branch with %d keys", n)
		}
		for i := range fits {
			s.tree(binary.LittleEndian.Uint64(page[pageHeader+i*elementBytes+8:]), in, depth+1)
		}
	default:
		s.hole(id, "it has the flags %#x, and should be a branch or a leaf", flags)
	}
}

// leaf collects the values of a leaf: a page, or the part of one at an offset of the file.
func (s *salvager) leaf(id uint64, page []byte, offset int64, in string, depth int) {
	n := int(binary.LittleEndian.Uint16(page[10:]))
	fits := min(n, (len(page)-pageHeader)/elementBytes)
	if fits < n {
		s.hole(id, "a leaf with %d keys", n)
	}
	for i := range fits {
		at := pageHeader + i*elementBytes
		e := page[at:]
		from := uint64(at) + uint64(binary.LittleEndian.Uint32(e[4:]))
		middle := from + uint64(binary.LittleEndian.Uint32(e[8:]))
		end := middle + uint64(binary.LittleEndian.Uint32(e[12:]))
		if end > uint64(len(page)) || middle-from > maxKeyBytes {
			s.hole(id, "key %d or its value is outside its page", i)
			continue
		}
		key, value := page[from:middle], page[middle:end]
		if binary.LittleEndian.Uint32(e)&bucketElement == 0 {
			if in != "" {
				s.buckets[in] = append(s.buckets[in], remain{string(key), offset + int64(middle), len(value)})
			}
			continue
		}
		if in != "" || len(value) < bucketBytes {
			s.hole(id, "a bucket of %d bytes", len(value))
			continue
		}
		name := string(bytes.Clone(key))
		if root := binary.LittleEndian.Uint64(value); root != 0 {
			s.tree(root, name, depth+1)
		} else if len(value) >= bucketBytes+pageHeader {
			s.leaf(id, value[bucketBytes:], offset+int64(middle)+bucketBytes, name, depth)
		}
	}
}
