// Package bucket stores objects under names: in a directory, or in a store that supports S3. An object never changes, so the package
// needs only create-if-absent besides put, get and list. Create-if-absent detects a second program that writes to the same place.
// Probe checks whether a store supports it.
package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"svc/internal/vfs"
)

// Store keeps objects. Their names satisfy fs.ValidPath. It is safe for concurrent use.
//
// After an error other than those named here it is unknown whether the store has done what it was asked.
type Store interface {
	// Put makes an object of size bytes, durably. It replaces an object of the same name.
	Put(ctx context.Context, name string, size int64, content io.Reader) error
	// Create creates an object, durably. If the name exists, the error is fs.ErrExist.
	Create(ctx context.Context, name string, content []byte) error
	// Open reads an object from a byte on, which is not behind its end. A missing one is fs.ErrNotExist. A read fails when the object ends
	// before its size.
	Open(ctx context.Context, name string, from int64) (io.ReadCloser, error)
	// List calls each for the objects whose names begin with prefix, which is empty or ends with a slash, and are greater than after,
	// in any order. An error of each ends it.
	List(ctx context.Context, prefix, after string, each func(Object) error) error
	// Remove removes an object. A missing one is no error.
	Remove(ctx context.Context, name string) error
	// Sweep removes the unfinished objects whose names begin with prefix, as for List, and that were last written before a moment. Programs
	// that are killed leave them. In a store that speaks S3, an unfinished object counts from the beginning of its upload. All of them
	// stay if that store does not list them to this key.
	Sweep(ctx context.Context, prefix string, before time.Time) error
	// String returns the address of the store, without secrets.
	String() string
}

// Object describes an object.
type Object struct {
	Name     string
	Size     int64 // bytes
	Modified time.Time
}

// Options say where a store is.
type Options struct {
	URL string // file:///directory, or s3://bucket/prefix

	// Of a store that speaks S3.
	Endpoint  string // its URL
	Region    string
	AccessKey string
	SecretKey string
	Transport http.RoundTripper // nil: that of the client of S3

	FS vfs.FS // of a directory; nil: vfs.OS
}

// Open returns a store. It does not ask the store for anything.
func Open(o Options) (Store, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the URL of a bucket is of the form s3://bucket/prefix or file:///directory")
	}
	switch {
	case u.Scheme == "file" && u.Host == "" && path.IsAbs(u.Path):
		if o.FS == nil {
			o.FS = vfs.OS
		}
		return &directory{fs: o.FS, root: path.Clean(u.Path)}, nil
	case u.Scheme == "s3" && u.Host != "":
		return openS3(&o, u.Host, strings.Trim(path.Clean("/"+u.Path), "/"))
	}
	return nil, fmt.Errorf("%q is not the URL of a bucket: use s3://bucket/prefix or file:///directory", o.URL)
}

// removeTime is the time limit for removing the objects of Probe, if its context has ended.
const removeTime = 2 * time.Second

// Probe checks that a store can be written and read, and that Create creates an object only once. It removes its objects.
func Probe(ctx context.Context, s Store) error {
	name := "probes/" + strings.ToLower(rand.Text())
	fail := func(what string, err error) error {
		return fmt.Errorf("%s cannot be used: cannot %s an object: %w", s, what, err)
	}
	remove := func() error {
		err := s.Remove(ctx, name)
		if ctx.Err() == nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
		defer cancel()
		return s.Remove(ctx, name)
	}
	if err := s.Create(ctx, name, []byte("one")); err != nil {
		if ctx.Err() != nil { // the store may have it
			_ = remove()
		}
		return fail("create", err)
	}
	again := s.Create(ctx, name, []byte("two"))
	got, err := read(ctx, s, name, 16)
	if e := remove(); e != nil {
		return fail("remove", e)
	}
	switch {
	case err != nil:
		return fail("read", err)
	case again == nil || string(got) != "one":
		return fmt.Errorf("%s cannot be used: it ignores \"If-None-Match: *\" and replaces an object that exists. Choose a store that honours it", s)
	case !errors.Is(again, fs.ErrExist):
		return fail("create", again)
	}
	return nil
}

// read reads an object of at most limit bytes.
func read(ctx context.Context, s Store, name string, limit int64) ([]byte, error) {
	in, err := s.Open(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("the object %s has more than %d bytes", name, limit)
	}
	return b, err
}
