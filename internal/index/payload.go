package index

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// eachLine calls f for every non-empty line of r, without its newline and with its offset. name is for errors. line is
// valid only during the call, and may be mapped memory: see mapped.Guard.
func eachLine(fs vfs.FS, name string, r vfs.File, f func(offset int64, line []byte) error) error {
	info, err := r.Stat()
	if err != nil {
		return err
	}
	b := bufio.NewReaderSize(r, int(min(info.Size()+1, readAhead)))
	var file *mapped.File // once there is a line beyond largeBytes
	defer func() {
		if file != nil {
			_ = file.Close()
		}
	}()
	var long []byte // a line that does not fit the buffer
	for offset, size := int64(0), int64(0); ; {
		line, err := b.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			if size += int64(len(line)); size < largeBytes {
				long = append(long, line...)
			}
			continue
		}
		if err != nil && err != io.EOF {
			return err
		}
		switch size += int64(len(line)); {
		case size >= largeBytes && size > int64(len(line)):
			if file == nil {
				if file, err = mapped.Open(fs, name); err != nil {
					return err
				}
			}
			if line, err = file.Slice(offset, size); err != nil {
				return err
			}
			if line[len(line)-1] != '\n' {
				err = io.EOF
			}
		case len(long) > 0:
			long = append(long, line...)
			line = long
		}
		next := offset + size
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		if len(line) > 0 {
			if err := f(offset, line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		offset, size, long = next, 0, long[:0]
	}
}

// summedFile is a file with the checksum of what was read so far, from its beginning.
type summedFile struct {
	vfs.File
	sum *xxhash.Digest
}

func newSummedFile(f vfs.File) *summedFile { return &summedFile{f, xxhash.New()} }

func (f *summedFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	_, _ = f.sum.Write(b[:n])
	return n, err
}

// is reads the rest and reports whether the whole file has a checksum.
func (f *summedFile) is(sum uint64) (bool, error) {
	_, err := io.Copy(io.Discard, struct{ io.Reader }{f})
	return f.sum.Sum64() == sum, err
}

// payloadReader reads documents of payload files, one file at a time. It reads adjacent ones together, and maps large ones.
type payloadReader struct {
	fs     vfs.FS
	name   string
	file   vfs.File
	all    *mapped.File // nil while no large one was read
	buffer []byte       // of the file, from start
	start  int64
}

// read returns n bytes from offset, valid until the next call.
func (r *payloadReader) read(name string, offset int64, n int) ([]byte, error) {
	if r.file == nil || r.name != name {
		r.close()
		f, err := r.fs.Open(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read a payload: %w", err)
		}
		r.file, r.name, r.buffer, r.start = f, name, r.buffer[:0], 0
	}
	if n >= largeBytes {
		if r.all == nil {
			var err error
			if r.all, err = mapped.Open(r.fs, name); err != nil {
				r.all = nil
				return nil, fmt.Errorf("cannot read a payload: %w", err)
			}
		}
		doc, err := r.all.Slice(offset, int64(n))
		if err != nil {
			return nil, fmt.Errorf("cannot read a payload: %w", err)
		}
		return doc, nil
	}
	end := r.start + int64(len(r.buffer))
	if offset < r.start || offset+int64(n) > end {
		want := n
		if len(r.buffer) > 0 && offset >= r.start && offset <= end+1 { // the newline lies between
			want = max(n, readAhead)
		}
		if cap(r.buffer) < want {
			r.buffer = make([]byte, want)
		}
		got, err := r.file.ReadAt(r.buffer[:want], offset)
		r.buffer, r.start = r.buffer[:got], offset
		if got < n {
			if err == nil || errors.Is(err, io.EOF) {
				err = &apierr.Corruption{File: name, Offset: offset, Reason: fmt.Sprintf("%d bytes, want %d", got, n)}
			}
			return nil, fmt.Errorf("cannot read a payload: %w", err)
		}
	}
	from := int(offset - r.start)
	return r.buffer[from : from+n : from+n], nil
}

// close closes the open payload, if there is one. The reader can be used again.
func (r *payloadReader) close() {
	if r.all != nil {
		_ = r.all.Close()
		r.all = nil
	}
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}
