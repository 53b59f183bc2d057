package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"svc/internal/vfs"
)

// directory stores objects as files. After a crash there may be files whose names end with vfs.TempSuffix. They are not objects.
type directory struct {
	fs   vfs.FS
	root string
}

func (d *directory) String() string { return "file://" + d.root }

// place returns the file of an object.
func (d *directory) place(name string) (string, error) {
	if !fs.ValidPath(name) || name == "." || strings.HasSuffix(name, vfs.TempSuffix) {
		return "", fmt.Errorf("%q is not the name of an object", name)
	}
	return path.Join(d.root, name), nil
}

// write writes a temporary file in the directory of an object, and calls name to rename it.
func (d *directory) write(ctx context.Context, object string, content io.Reader, size int64, name func(temp, place string) error) error {
	place, err := d.place(object)
	if err != nil {
		return err
	}
	if err := vfs.MakeDir(d.fs, path.Dir(place)); err != nil {
		return err
	}
	temp := place + "." + rand.Text() + vfs.TempSuffix
	out, err := d.fs.Create(temp)
	if err != nil {
		return err
	}
	n, err := copyTo(out, &interrupted{ctx, content}, size)
	if err == nil && n != size {
		err = fmt.Errorf("the object %s was to have %d bytes, and has %d", object, size, n)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = name(temp, place)
	}
	if err != nil {
		_ = d.fs.Remove(temp) // it may have the place already
		return err
	}
	return d.fs.SyncDir(path.Dir(place))
}

// copyBytes are written at once: fewer pieces are less work. But with pieces of 1 MiB, a restore of 150 MB took 0.37 s of system time on a
// busy machine, and 0.14 s with these.
const copyBytes = 256 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copyBytes]byte) }}

func copyTo(out io.Writer, in io.Reader, size int64) (int64, error) {
	if size < copyBytes/8 {
		return io.Copy(out, in)
	}
	b := copyBuffers.Get().(*[copyBytes]byte)
	defer copyBuffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{out}, in, b[:]) // a file would take another buffer
}

func (d *directory) Put(ctx context.Context, name string, size int64, content io.Reader) error {
	return d.write(ctx, name, content, size, d.fs.Rename)
}

func (d *directory) Create(ctx context.Context, name string, content []byte) error {
	return d.write(ctx, name, strings.NewReader(string(content)), int64(len(content)), func(temp, place string) error {
		if err := d.fs.Link(temp, place); err != nil {
			return err
		}
		return d.fs.Remove(temp)
	})
}

func (d *directory) Open(ctx context.Context, name string, from int64) (io.ReadCloser, error) {
	place, err := d.place(name)
	if err != nil {
		return nil, err
	}
	f, err := d.fs.Open(place)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{&interrupted{ctx, io.NewSectionReader(f, from, max(info.Size()-from, 0))}, f}, nil
}

func (d *directory) List(ctx context.Context, prefix, after string, each func(Object) error) error {
	return d.walk(ctx, strings.TrimSuffix(prefix, "/"), after, each)
}

func (d *directory) walk(ctx context.Context, name, after string, each func(Object) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	below, err := d.fs.List(path.Join(d.root, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, base := range below {
		o := Object{Name: path.Join(name, base)}
		if strings.HasSuffix(base, vfs.TempSuffix) || o.Name+"0" <= after { // all that begins with the name and a slash is less, too
			continue
		}
		info, err := d.fs.Stat(path.Join(d.root, o.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			return err
		case info.IsDir():
			if err := d.walk(ctx, o.Name, after, each); err != nil {
				return err
			}
		case o.Name > after:
			o.Size, o.Modified = info.Size(), info.ModTime()
			if err := each(o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *directory) Remove(_ context.Context, name string) error {
	place, err := d.place(name)
	if err == nil {
		err = d.fs.Remove(place)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// interrupted is a reader that ends with its context.
type interrupted struct {
	ctx context.Context
	io.Reader
}

func (r *interrupted) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}
