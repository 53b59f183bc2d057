// Package sealedjson keeps a small value in a file that people can read and that detects corruption. The file is one JSON object:
//
//	{"version":1,"xxhash64":"0123456789abcdef","content":…}
//
// with the checksum of the bytes of content. A change replaces the file.
package sealedjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
	"svc/internal/commit"
	"svc/internal/vfs"
)

type envelope struct {
	Version int             `json:"version"`
	Sum     string          `json:"xxhash64"`
	Content json.RawMessage `json:"content"`
}

func sum(content []byte) string { return fmt.Sprintf("%016x", xxhash.Sum64(content)) }

// Write replaces the content of a file by content, a JSON value, durably, or leaves the file as it was. version is the version of the
// content's format.
func Write(fsys vfs.FS, name string, version int, content []byte) error {
	var compact bytes.Buffer // as the encoder below would make it
	err := json.Compact(&compact, content)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	// Not by json.Marshal, which escapes some characters of the content.
	b := fmt.Appendf(nil, "{\"version\":%d,\"xxhash64\":%q,\"content\":%s}\n", version, sum(compact.Bytes()), compact.Bytes())
	return commit.Do(fsys, func() (commit.Change, error) {
		return commit.Change{Kind: commit.Sealed, Name: name, Data: b}, nil
	}, func() error { return replace(fsys, name, b) })
}

// replace makes b the bytes of a file, durably, or leaves it as it was.
func replace(fsys vfs.FS, name string, b []byte) error {
	// What the file has now, for after a change that fails late. Where even that fails the next write ends the doubt: it is whole, too.
	before, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return create(fsys, name, b)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	_, err = vfs.Change(fsys, name, b, func() ([]byte, error) { return before, nil })
	return err
}

// create makes a file that is not there, durably, or leaves none.
func create(fsys vfs.FS, name string, b []byte) error {
	renamed, err := vfs.Replace(fsys, name, b)
	if err != nil && renamed {
		e := fsys.Remove(name)
		if e == nil {
			e = fsys.SyncDir(path.Dir(name))
		}
		err = errors.Join(err, e)
	}
	return err
}

// Read returns the content of a file. A missing one gives an error that is fs.ErrNotExist, a damaged one an
// *apierr.Corruption; one of none of the versions says so.
func Read(fsys vfs.FS, name string, versions ...int) ([]byte, error) {
	b, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	return decode(name, versions, b)
}

func decode(name string, versions []int, b []byte) ([]byte, error) {
	damaged := func(reason string) error { return &apierr.Corruption{File: name, Offset: -1, Reason: reason} }
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var e envelope
	if err := d.Decode(&e); err != nil {
		return nil, damaged(err.Error())
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, damaged("it has trailing text")
	}
	switch got := sum(e.Content); {
	case e.Content == nil || got != e.Sum:
		return nil, damaged(fmt.Sprintf("checksum %s of the content, want %s", got, e.Sum))
	case !slices.Contains(versions, e.Version):
		return nil, fmt.Errorf("cannot read %s: it has format version %d, and this svc reads version %d: start the svc that wrote it, make a dump and import that", name, e.Version, slices.Max(versions))
	}
	return e.Content, nil
}
