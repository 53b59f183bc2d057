package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sync"
	"time"
)

// Feed lets the writer's process follow its own log, as a reader on another machine does. Files that entries name stay until Need
// releases them, those of an image until Release. Image and Release belong to one goroutine.
type Feed struct {
	w      *Writer
	log    *member
	image  *member // follows nothing: it holds the files of an image
	stop   chan struct{}
	done   sync.WaitGroup
	closed bool
}

// Feed begins one. It is closed before the writer.
func (w *Writer) Feed() *Feed {
	f := &Feed{w: w, log: &member{id: newID(), inside: true}, image: &member{id: newID(), inside: true}, stop: make(chan struct{})}
	w.mu.Lock()
	w.feeds = append(w.feeds, f.log, f.image)
	w.mu.Unlock()
	f.done.Go(f.watch)
	return f
}

// watch has files removed that were held for too long.
func (f *Feed) watch() {
	tick := time.NewTicker(releaseTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.w.release()
		case <-f.stop:
			return
		}
	}
}

// Reign returns 0: a directory has one writer.
func (f *Feed) Reign() uint64 { return 0 }

// Image takes an image of the directory; see Image. The checksums of all its files are known. Next continues from its position if
// that is after Run.Index. The files stay until Release, or until nothing was read for WriterOptions.HoldTime.
func (f *Feed) Image(ctx context.Context, stores Stores) (*Image, error) {
	st, err := f.w.take(f.image, stores)
	if err != nil {
		return nil, err
	}
	for i := range st.Files {
		x := &st.Files[i]
		if x.Known {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		file, err := f.w.sums.compute(x.At)
		if err != nil {
			return nil, fmt.Errorf("cannot take the state: %w", err)
		}
		x.Size, x.Sum, x.Known = file.Size, file.Sum, true
		f.Read()
	}
	return st, nil
}

// Release has the files of the image go.
func (f *Feed) Release() {
	f.w.move(f.image, Position{}, false)
	f.w.removeStateOnce(f.image)
	f.w.release()
}

// Read notes that files are being read: they stay for longer.
func (f *Feed) Read() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.log.moved = time.Now()
	f.image.moved = f.log.moved
}

// Need has files stay that entries behind a position name, and those go that only earlier ones name. It is called before the first Next,
// and then again and again: files stay for WriterOptions.HoldTime after the position has changed, or has been the last one.
func (f *Feed) Need(after Position) {
	f.w.move(f.log, after, false)
	f.w.release()
}

// Next returns the entries after a position. If there are none, it waits for some time and may return an empty batch. The error is
// ErrCut if the log does not continue from the position.
func (f *Feed) Next(ctx context.Context, after Position, wait time.Duration) (*Batch, error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	for waited := false; ; {
		t, appended, err := f.w.entries(after)
		if err != nil || waited || len(t.Entries) > 0 {
			return t, err
		}
		select {
		case <-appended:
		case <-end.C:
			waited = true
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Open opens a file that an image has, by ImageFile.At, or that an entry names.
func (f *Feed) Open(name string) (io.ReadCloser, error) {
	if own := path.Join(workDir, "state", f.image.id); !fetchable(name) && path.Dir(name) != own {
		return nil, fmt.Errorf("%q is not a file for readers", name)
	}
	return f.w.o.FS.Open(path.Join(f.w.o.Dir, name))
}

// Directory returns the identity of the directory: it is random, and stays as long as the directory.
func (f *Feed) Directory() string {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.w.id.Group
}

// KeepSums has the next run of the writer know the checksums of the files that are known now.
func (f *Feed) KeepSums() error { return f.w.sums.keep() }

// Close ends the feed: nothing is held for it.
func (f *Feed) Close() error {
	if f.closed {
		return errors.New("the feed is closed already")
	}
	f.closed = true
	close(f.stop)
	f.done.Wait()
	f.Release()
	f.w.mu.Lock()
	f.w.feeds = slices.DeleteFunc(f.w.feeds, func(m *member) bool { return m == f.log || m == f.image })
	f.w.mu.Unlock()
	f.w.release()
	return nil
}
