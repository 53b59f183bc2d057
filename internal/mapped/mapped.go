// Package mapped maps files into memory for reading. No other package of svc imports the mmap library. If a file has no operating
// system file (one in memory, in tests), it is read into memory instead. So is a small file if very many are mapped.
package mapped

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/edsrzf/mmap-go"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

var open atomic.Int64

// Count returns how many files are mapped (or read instead) and not closed. Tests use it to find leaks.
func Count() int { return int(open.Load()) }

var mappedFiles, mappedBytes atomic.Int64

// smallFile is the size in bytes up to which a file is read where mappings run short: those that are many are small, each segment of
// an index of a few documents one.
const smallFile = 64 << 10

// MappedBytes returns the total size of mapped files. Used pages are in memory, and the system can evict them.
func MappedBytes() int64 { return mappedBytes.Load() }

// Scarce reports whether the process is about to run out of mappings: unused files should be closed.
func Scarce() bool { return mappedFiles.Load() >= mostMappings()/4*3 }

// File is a whole file in memory, read-only.
type File struct {
	name   string
	data   []byte
	m      mmap.MMap // nil when data is not a mapping
	own    bool      // writes to data do not reach a file
	closed atomic.Bool
	fault  atomic.Pointer[func(*apierr.Corruption)]

	scattered []Part // see Scatter; guarded by mappings
	cold      bool   // see SetCold; guarded by mappings
}

// Open maps the file called name. The bytes stay readable until Close even
// when the file is unlinked.
func Open(fsys vfs.FS, name string) (*File, error) { return openAs(fsys, name, mmap.RDONLY) }

// OpenPrivate is Open with writable bytes. Writes do not change the file.
func OpenPrivate(fsys vfs.FS, name string) (*File, error) { return openAs(fsys, name, mmap.COPY) }

func openAs(fsys vfs.FS, name string, mode int) (*File, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", name, err)
	}
	defer f.Close() // a mapping outlives its descriptor
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", name, err)
	}
	size := info.Size()
	if size != int64(int(size)) {
		return nil, fmt.Errorf("cannot map %s: %d bytes do not fit the address space", name, size)
	}
	m := &File{name: name, own: mode == mmap.COPY}
	switch of, ok := f.(vfs.OSFile); {
	case size == 0: // mmap(2) refuses a length of 0
	case ok && (size > smallFile || mappedFiles.Load() < mostMappings()):
		m.m, err = mmap.MapRegion(of.OSFile(), int(size), mode, 0, 0)
		m.data = m.m
	default:
		m.data = make([]byte, size)
		_, err = f.ReadAt(m.data, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", name, err)
	}
	open.Add(1)
	if m.m != nil {
		mappedFiles.Add(1)
		mappings.Lock()
		mappedBytes.Add(size)
		mappings.files[m] = struct{}{}
		crowd()
		mappings.Unlock()
	}
	return m, nil
}

// Name returns the name the file was opened by.
func (f *File) Name() string { return f.name }

// Len returns the size of the file in bytes.
func (f *File) Len() int64 { return int64(len(f.data)) }

// Bytes returns the whole file. Neither the slice nor parts of it may be used after Close.
func (f *File) Bytes() []byte { return f.data }

// Slice returns n bytes from offset off, with no capacity beyond them. A
// range that is not inside the file is an *apierr.Corruption.
func (f *File) Slice(off, n int64) ([]byte, error) {
	if size := int64(len(f.data)); off < 0 || n < 0 || off > size || n > size-off {
		return nil, &apierr.Corruption{File: f.name, Offset: off,
			Reason: fmt.Sprintf("%d bytes expected, but the file has %d", n, size)}
	}
	return f.data[off : off+n : off+n], nil
}

// Advice tells the kernel how a range will be read.
type Advice int

const (
	Random Advice = iota
	Sequential
	WillNeed
	// DontNeed releases the range's pages. Reading it again is correct, but reads the file, or the system's cache of it. Pages of a
	// file opened by OpenPrivate stay, because writes to them are nowhere else.
	DontNeed
	// Normal takes Random and Sequential back.
	Normal
	// PageOut is DontNeed, and also evicts the pages from the system's cache of the file. Only Linux supports this advice.
	PageOut
)

// Advise gives advice on a range, widened to whole pages (narrowed for DontNeed and PageOut). The advice only affects speed, so there
// is no error to handle. Windows supports no such advice.
func (f *File) Advise(off, n int64, a Advice) {
	if f.m == nil || off < 0 || n <= 0 || off >= int64(len(f.data)) || (a == DontNeed || a == PageOut) && f.own {
		return
	}
	page := int64(os.Getpagesize())
	end := off + min(n, int64(len(f.data))-off)
	if a == DontNeed || a == PageOut {
		off = (off + page - 1) / page * page
		if end < int64(len(f.data)) {
			end = end / page * page
		}
	} else {
		off = off / page * page
	}
	if a == WillNeed {
		for ; end-off > mostNeeded; off += mostNeeded {
			advise(f.data[off:off+mostNeeded], a)
		}
	}
	if off < end {
		advise(f.data[off:end], a)
	}
}

// mostNeeded is how much of a file is requested at once. Linux cuts a request at the read-ahead size of the disk, which is seldom
// less, and ignores the rest.
const mostNeeded = 128 << 10

// Holds reports whether the page with a byte of the file is in memory, as far as the system reports this.
func (f *File) Holds(off int64) bool {
	if f.m == nil || off < 0 || off >= int64(len(f.data)) {
		return true
	}
	page := int64(os.Getpagesize())
	off = off / page * page
	in := residency(f.data[off:min(off+page, int64(len(f.data)))], int(page))
	return len(in) == 0 || in[0]&1 != 0
}

// Missing returns the parts of a range, widened to whole pages, that are not in memory, as far as the system reports this. They
// ascend.
func (f *File) Missing(off, n int64) []Part {
	if f.m == nil || off < 0 || n <= 0 || off >= int64(len(f.data)) {
		return nil
	}
	page := int64(os.Getpagesize())
	end := off + min(n, int64(len(f.data))-off)
	off = off / page * page
	var parts []Part
	for i, in := range residency(f.data[off:end], int(page)) {
		at := off + int64(i)*page
		switch last := len(parts) - 1; {
		case in&1 != 0:
		case last >= 0 && parts[last].At+parts[last].Length == at:
			parts[last].Length += page
		default:
			parts = append(parts, Part{at, page})
		}
	}
	return parts
}

// Close unmaps the file. It does not wait: the caller knows that no slice is used any more. A second Close is an error.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return fmt.Errorf("cannot close %s: %w", f.name, os.ErrClosed)
	}
	open.Add(-1)
	if f.m == nil {
		f.data = nil
		return nil
	}
	mappings.Lock()
	if f.cold {
		f.setCold(false)
	}
	delete(mappings.files, f)
	mappedFiles.Add(-1)
	mappedBytes.Add(-int64(len(f.data)))
	f.data = nil
	crowd()
	mappings.Unlock()
	if err := f.m.Unmap(); err != nil {
		return fmt.Errorf("cannot unmap %s: %w", f.name, err)
	}
	return nil
}
