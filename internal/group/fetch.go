package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zeebo/xxh3"
)

const (
	fetchers = 8 // files that are fetched at once

	// resumes is how often a file is asked for again that the writer stopped sending, without a byte in between.
	resumes    = 4
	resumeTime = 100 * time.Millisecond // before the first one; the others wait longer
)

// stream reads a file of the writer. If the connection breaks, it continues on another one. At its end the file has the right size
// and checksum, or Read returns an error.
type stream struct {
	ctx  context.Context
	c    *client
	at   string // name to fetch it by
	key  string // as in client.file
	file File
	sum  *xxh3.Hasher
	pos  int64
	// unsummed leaves the checksum to the caller, because the stream does not start at the beginning.
	unsummed bool
	body     io.Reader
	end      func()
	idle     int // tries since the last byte
}

// open returns a stream of a file.
func (c *client) open(ctx context.Context, f File) io.ReadCloser {
	return &stream{ctx: ctx, c: c, at: f.Name, key: fileKey(f.Size, f.Sum), file: f, sum: xxh3.New()}
}

func (c *client) resume(ctx context.Context, f *ImageFile, from int64) io.ReadCloser {
	return &stream{ctx: ctx, c: c, at: f.At, file: f.File, sum: xxh3.New(), pos: from, unsummed: from > 0 || !f.Known}
}

// Read reads the file, and asks again from the last byte on if the connection breaks. At the end it compares
// the checksum.
func (s *stream) Read(p []byte) (int, error) {
	for {
		if s.pos == s.file.Size {
			if !s.unsummed && s.sum.Sum128() != s.file.Sum {
				return 0, fmt.Errorf("cannot fetch %s: %w", s.file.Name, errSum)
			}
			return 0, io.EOF
		}
		n, err := s.read(p)
		if n > 0 {
			s.idle = 0
			return n, nil
		}
		if err == nil {
			continue
		}
		s.hangUp()
		if away := new(awayError); !errors.As(err, &away) {
			return 0, err
		}
		if s.idle++; s.idle > resumes {
			return 0, err
		}
		select {
		case <-time.After(resumeTime << s.idle):
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
}

// read reads once. An *awayError has the caller try again.
func (s *stream) read(p []byte) (int, error) {
	if s.body == nil {
		body, size, end, err := s.c.file(s.ctx, s.at, s.key, s.pos)
		if err != nil {
			return 0, err
		}
		s.body, s.end = body, end
		if size != s.file.Size {
			return 0, fmt.Errorf("%s has %d bytes, and should have %d: %w", s.file.Name, size, s.file.Size, errSum)
		}
	}
	n, err := s.body.Read(p[:min(int64(len(p)), s.file.Size-s.pos)])
	_, _ = s.sum.Write(p[:n])
	s.pos += int64(n)
	if err == io.EOF && s.pos < s.file.Size {
		err = io.ErrUnexpectedEOF
	}
	if n > 0 || err == nil {
		return n, nil // an error comes again
	}
	return 0, &awayError{err: err}
}

func (s *stream) hangUp() {
	if s.end != nil {
		s.end()
		s.body, s.end = nil, nil
	}
}

// Close ends the request.
func (s *stream) Close() error {
	s.hangUp()
	return nil
}
