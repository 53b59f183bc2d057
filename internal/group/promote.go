package group

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"time"

	"svc/internal/vfs"
)

// Promote turns the data directory of a reader into that of the writer, with a new term. The directory must not be open. former has
// the addresses of the former writer. It is told as soon as it can be reached, and then writes nothing more.
func Promote(fsys vfs.FS, dir string, former []string) (*Identity, error) {
	dir = path.Clean(filepath.ToSlash(dir))
	id, err := ReadIdentity(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("cannot promote %s: %w", dir, err)
	}
	switch id.Role {
	case RoleReader:
		if id.Voters {
			return nil, fmt.Errorf("cannot promote %s: it belongs to a reader of voters, and voters elect their leader. If a majority of them was lost for good, see svc group recover", dir)
		}
	case RoleVoter:
		return nil, fmt.Errorf("cannot promote %s: it belongs to a voter, and voters elect their leader. If a majority of them was lost for good, see svc group recover", dir)
	default:
		return nil, fmt.Errorf("cannot promote %s: it belongs to a writer already", dir)
	}
	r := &Reader{o: ReaderOptions{FS: fsys, Dir: dir}, id: *id, changed: make(chan struct{})}
	r.position = positions{fs: fsys, name: r.path(positionFile)}
	if err := r.Replace(); err != nil {
		return nil, err
	}
	at, ok, err := r.position.read()
	if ok {
		r.reach(at)
	}
	if err == nil {
		id, err = r.Become(former)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot promote %s: %w", dir, err)
	}
	return id, nil
}

const (
	tellTime    = 5 * time.Second // between two tries to tell former writers
	tellTimeout = dialTime + helloTime
)

// tellFormer notifies former writers that this one has replaced them, until all know.
func (s *serving) tellFormer() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.wait.Go(func() {
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	})
	tick := time.NewTicker(tellTime)
	defer tick.Stop()
	for {
		s.w.mu.Lock()
		former := slices.Clone(s.w.id.Former)
		s.w.mu.Unlock()
		if len(former) == 0 {
			return
		}
		for _, addr := range former {
			if s.tell(ctx, addr) {
				s.w.told(addr)
			}
		}
		select {
		case <-tick.C:
		case <-s.done:
			return
		}
	}
}

// tell notifies a member of the term of this writer, and reports whether the member knows it.
func (s *serving) tell(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	c := newClient([]string{addr}, s.w.own, s.w.key, func() *hello {
		h := s.w.hello()
		return &h
	}, func(*hello) {})
	defer c.close()
	conn, err := c.dial(ctx, addr, forGroup)
	if err == nil {
		return conn.Close() != nil // it is the writer of this term: the address is our own, or was given to another member
	}
	refused := new(RefusedError)
	return errors.As(err, &refused) && refused.Code == refusedTerm
}

// told records that a former writer knows of the term.
func (w *Writer) told(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.o.Logger.Info("the former writer of the group was notified that another one has replaced it", "address", addr, "term", w.id.Term)
	id := w.id
	id.Former = slices.DeleteFunc(slices.Clone(id.Former), func(a string) bool { return a == addr })
	if err := id.write(w.o.FS, w.o.Dir); err != nil {
		w.o.Logger.Warn("cannot record that the former writer was notified", "error", err)
	}
	w.id = id
}
