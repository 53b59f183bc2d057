package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/zeebo/xxh3"
)

// Upstream is an alternative source of the writer's directory for a reader: a place that the writer publishes to. Its errors are
// ErrCut, fs.ErrNotExist for a file that is gone, and *RefusedError. After any other error the reader retries.
//
// Only one goroutine uses it, except for Open.
type Upstream interface {
	// Directory returns the identity of the published directory; see Feed.Directory.
	Directory(ctx context.Context) (string, error)
	// Image returns an image with the checksums of all of its files, from which entries lead to a position that is not before least.
	Image(ctx context.Context, least Position) (*Image, error)
	// Next returns the entries after a position. If there are none, it waits for some time and may return an empty batch.
	Next(ctx context.Context, after Position, wait time.Duration) (*Batch, error)
	// Open opens a file of an image or an entry. A read fails unless the file has its size and checksum. If it never will, the error is
	// ErrCut.
	Open(ctx context.Context, f File) (io.ReadCloser, error)
	// String returns its address, without secrets.
	String() string
}

// source is where a reader gets the directory of its writer from.
type source interface {
	state(ctx context.Context, least Position) (*Image, error)
	log(ctx context.Context, after Position, wait time.Duration) (*Batch, error)
	// sum asks for the size and the checksum of a file.
	sum(ctx context.Context, name string) (size int64, sum xxh3.Uint128, err error)
	// open opens a file of an entry.
	open(ctx context.Context, f File) io.ReadCloser
	// resume opens a file of an image from an offset on. Its checksum is checked if the offset is 0 and the sum is known.
	resume(ctx context.Context, f *ImageFile, from int64) io.ReadCloser
	// next switches to another address. told is true for the address of a leader that another member named.
	next() (told bool)
	address() string
	close()
}

// published is the source of a reader that has an upstream.
type published struct {
	Upstream
	format string
	heard  func(directory string) error
}

// failed returns an error of the upstream in the terms of a source.
func (p *published) failed(err error) error {
	refused, newer := new(RefusedError), new(newerError)
	switch {
	case err == nil || errors.Is(err, ErrCut) || errors.As(err, &refused) || errors.As(err, &newer):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return &awayError{err: err}
}

// begin makes sure that the upstream has the directory that this one follows.
func (p *published) begin(ctx context.Context) error {
	directory, err := p.Directory(ctx)
	if err != nil {
		return p.failed(err)
	}
	return p.heard(directory)
}

// state returns an image from which entries lead to a position that is not before least. It refuses data of
// another format.
func (p *published) state(ctx context.Context, least Position) (*Image, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	st, err := p.Image(ctx, least)
	if err != nil {
		return nil, p.failed(err)
	}
	for _, c := range st.Contents {
		if words := strings.Fields(string(c.Data)); c.Name == "VERSION" && (len(words) < 2 || words[1] != p.format) {
			return nil, &RefusedError{refusedFormat, fmt.Sprintf("%s has data that say %q, and this svc reads version %s: run the same svc on both", p, strings.Join(words, " "), p.format)}
		}
	}
	return st, nil
}

// log returns the entries after a position. It waits up to wait if there are none.
func (p *published) log(ctx context.Context, after Position, wait time.Duration) (*Batch, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	t, err := p.Next(ctx, after, wait)
	return t, p.failed(err)
}

// sum is not asked for: images have all checksums.
func (p *published) sum(_ context.Context, name string) (int64, xxh3.Uint128, error) {
	return 0, xxh3.Uint128{}, fmt.Errorf("%s does not say what the checksum of %s is", p, name)
}

func (p *published) open(ctx context.Context, f File) io.ReadCloser {
	return &download{ctx: ctx, p: p, file: f}
}

func (p *published) resume(ctx context.Context, f *ImageFile, from int64) io.ReadCloser {
	return &download{ctx: ctx, p: p, file: f.File, skip: from}
}

func (p *published) next() bool      { return false }
func (p *published) address() string { return p.String() }
func (p *published) close()          {}

// download reads a file of an upstream, which it opens with the first byte.
type download struct {
	ctx  context.Context
	p    *published
	file File
	skip int64 // bytes that the reader has
	in   io.ReadCloser
}

func (d *download) Read(b []byte) (int, error) {
	if d.in == nil {
		in, err := d.p.Open(d.ctx, d.file)
		if err != nil {
			return 0, d.p.failed(err)
		}
		d.in = in
		if _, err := io.CopyN(io.Discard, in, d.skip); err != nil {
			return 0, d.p.failed(err)
		}
	}
	n, err := d.in.Read(b)
	if err != io.EOF {
		err = d.p.failed(err)
	}
	return n, err
}

func (d *download) Close() error {
	if d.in == nil {
		return nil
	}
	return d.in.Close()
}
