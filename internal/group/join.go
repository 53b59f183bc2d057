package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"

	"svc/internal/sealedjson"
	"svc/internal/standby"
	"svc/internal/vfs"
)

// stays are the names in a data directory that are not part of an image.
var stays = []string{"LOCK", "IMPORTING", IdentityFile, workDir, "analytics", "work"}

const (
	joinDir      = workDir + "/join"
	replaceFile  = workDir + "/replace"
	positionFile = workDir + "/position"

	replaceVersion = 1
)

// replacement says that the directory in joinDir is whole, and which names it gives the data directory.
type replacement struct {
	Position string   `json:"position"`
	Group    string   `json:"group"`
	Term     uint32   `json:"term"`
	Names    []string `json:"names"`
}

// stage builds a data directory in joinDir that has the log up to some entry, at least up to the position least. It is made of an
// image and the entries after it. stage fetches only files that neither this data directory nor an earlier attempt has. The data
// directory itself does not change: Replace moves the new one into place.
func (r *Reader) stage(ctx context.Context, least Position) error {
	r.note(func(s *progress) { s.state, s.copied, s.toCopy = StateCopies, 0, 0 })
	st, err := r.source.state(ctx, least)
	if err != nil {
		return err
	}
	if err := r.fill(ctx, st); err != nil {
		return fmt.Errorf("cannot copy the data of the writer: %w", err)
	}
	at, err := r.replay(ctx, st, least)
	if err != nil {
		return err
	}
	r.mu.Lock()
	id := r.id
	r.mu.Unlock()
	x := replacement{Position: at.String(), Group: id.Group, Term: at.Term}
	names, err := r.o.FS.List(r.path(joinDir))
	if err != nil {
		return err
	}
	x.Names = names
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return sealedjson.Write(r.o.FS, r.path(replaceFile), replaceVersion, b)
}

// staged returns what was staged, or nil.
func (r *Reader) staged() (*replacement, error) {
	b, err := sealedjson.Read(r.o.FS, r.path(replaceFile), replaceVersion)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	x := new(replacement)
	if err == nil {
		err = json.Unmarshal(b, x)
	}
	return x, err
}

func (r *Reader) path(name string) string { return path.Join(r.o.Dir, name) }

// fill makes joinDir what the image says, durably.
func (r *Reader) fill(ctx context.Context, st *Image) error {
	wanted, dirs := map[string]bool{}, map[string]bool{joinDir: true}
	add := func(name string) error {
		if top, _, _ := strings.Cut(name, "/"); slices.Contains(stays, top) || strings.HasSuffix(name, vfs.TempSuffix) {
			return fmt.Errorf("the writer sends the file %q, which no state has", name)
		}
		wanted[name] = true
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			dirs[path.Join(joinDir, dir)] = true
			if dir == "." {
				return nil
			}
		}
	}
	total := int64(0)
	for i := range st.Files {
		if err := add(st.Files[i].Name); err != nil {
			return err
		}
		total += st.Files[i].Size
	}
	for i := range st.Contents {
		if err := add(st.Contents[i].Name); err != nil {
			return err
		}
	}
	dirs[path.Join(joinDir, "tasks/payloads")] = true // svc makes it with the queue
	r.note(func(s *progress) { s.toCopy = total })
	if r.unsynced.Load() {
		if err := r.o.FS.RemoveAll(r.path(joinDir)); err != nil {
			return err
		}
		r.unsynced.Store(false)
	}
	if err := r.removeUnwanted("", wanted, dirs); err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := vfs.MakeDir(r.o.FS, r.path(dir)); err != nil {
			r.unsynced.Store(true)
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fetchers)
	for i := range st.Files {
		if ctx.Err() != nil {
			break
		}
		f := &st.Files[i]
		g.Go(func() error { return r.get(ctx, f) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i := range st.Contents {
		c := &st.Contents[i]
		if err := vfs.WriteFile(r.o.FS, r.path(path.Join(joinDir, c.Name)), c.Data); err != nil {
			return err
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := r.o.FS.SyncDir(r.path(dir)); err != nil {
			return errors.Join(err, r.disbelieve(r.path(joinDir)))
		}
	}
	return nil
}

// disbelieve removes data that could not be synced. Otherwise another try would regard its bytes and names as durable, because a
// repeated sync succeeds. If this fails, too, the next try starts with an empty directory.
func (r *Reader) disbelieve(name string) error {
	err := r.o.FS.RemoveAll(name)
	if err != nil {
		r.unsynced.Store(true)
	}
	return err
}

// removeUnwanted removes what an earlier try left in joinDir, and the image does not have. A file that was not copied to its end stays.
func (r *Reader) removeUnwanted(dir string, wanted, dirs map[string]bool) error {
	names, err := r.o.FS.List(r.path(path.Join(joinDir, dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		name = path.Join(dir, name)
		switch whole := strings.TrimSuffix(name, vfs.TempSuffix); {
		case dirs[path.Join(joinDir, name)]:
			err = r.removeUnwanted(name, wanted, dirs)
		case !wanted[whole]:
			err = r.o.FS.RemoveAll(r.path(path.Join(joinDir, name)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// get makes a file of joinDir equal to the writer's file of that name. If there is already a file with the same size and checksum, it
// uses that.
func (r *Reader) get(ctx context.Context, f *ImageFile) error {
	to := r.path(path.Join(joinDir, f.Name))
	wanted := func() (xxh3.Uint128, error) {
		if f.Known {
			return f.Sum, nil
		}
		size, sum, err := r.source.sum(ctx, f.At)
		if err == nil && size != f.Size {
			err = errGone // it has become another
		}
		if err == nil {
			f.Sum, f.Known = sum, true
		}
		return f.Sum, err
	}
	is := func(name string) (bool, error) {
		info, err := r.o.FS.Stat(name)
		if err != nil || info.Size() != f.Size {
			return false, nil
		}
		sum, err := wanted()
		if err != nil {
			return false, err
		}
		own, err := SumOf(r.o.FS, name)
		return own == sum, err
	}
	there, err := is(to)
	if err != nil {
		return err
	}
	if there {
		r.copied(f.Size)
		return nil
	}
	// A copy of a bbolt file differs from the file that it is a copy of.
	if f.At == f.Name && !(isPayload(f.Name) && f.Size <= maxInlineFile) { // such a payload may not be durable here: see Voter.Keep
		own := r.path(f.Name)
		if there, err = is(own); err != nil {
			return err
		}
		if there && r.take(own, to) == nil {
			r.copied(f.Size)
			return nil
		}
	}
	checked, err := r.fetch(ctx, f, to+vfs.TempSuffix)
	if err != nil {
		return err
	}
	if !checked {
		sum, err := wanted()
		if err != nil {
			return err
		}
		if own, err := SumOf(r.o.FS, to+vfs.TempSuffix); err != nil || own != sum {
			return errors.Join(err, fmt.Errorf("cannot fetch %s: %w", f.Name, errSum), r.o.FS.Remove(to+vfs.TempSuffix))
		}
	}
	return r.o.FS.Rename(to+vfs.TempSuffix, to)
}

// take gives a file a second name, or copies it where that cannot be done.
func (r *Reader) take(from, to string) error {
	_ = r.o.FS.Remove(to) // it is another file
	if err := r.o.FS.Link(from, to); err == nil {
		return nil
	}
	in, err := r.o.FS.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := r.o.FS.Create(to)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, r.disbelieve(to))
	}
	return nil
}

// fetch fetches a file, from where an earlier try ended. Its bytes are durable when it returns no error. checked reports whether they have
// the checksum of the file.
func (r *Reader) fetch(ctx context.Context, f *ImageFile, to string) (checked bool, err error) {
	from := int64(0)
	if info, err := r.o.FS.Stat(to); err == nil {
		if from = info.Size(); from > f.Size || f.At != f.Name { // a file generated for each image is never the same
			if err := r.o.FS.Remove(to); err != nil {
				return false, err
			}
			from = 0
		}
	}
	r.copied(from)
	out, err := r.o.FS.Append(to)
	if err != nil {
		return false, err
	}
	checked = from == 0 && f.Known
	in := r.source.resume(ctx, f, from)
	defer in.Close()
	b := make([]byte, min(copyBytes, f.Size-from+1))
	for {
		n, e := in.Read(b)
		if n > 0 {
			if _, err = out.Write(b[:n]); err != nil {
				break
			}
			r.copied(int64(n))
		}
		if e != nil {
			if e != io.EOF {
				err = e
			}
			break
		}
	}
	if err == nil {
		if err = out.Sync(); err != nil {
			return false, errors.Join(fmt.Errorf("cannot copy %s: %w", f.Name, err), out.Close(), r.disbelieve(to))
		}
	}
	if err = errors.Join(err, out.Close()); err != nil {
		if checked && (errors.Is(err, errSum) || errors.Is(err, ErrCut)) {
			err = errors.Join(err, r.o.FS.Remove(to)) // the next attempt must not continue after wrong bytes
		}
		return false, fmt.Errorf("cannot copy %s: %w", f.Name, err)
	}
	return checked, nil
}

func (r *Reader) copied(n int64) { r.note(func(s *progress) { s.copied += n }) }

// SumOf computes the checksum of a file.
func SumOf(fsys vfs.FS, name string) (sum xxh3.Uint128, err error) {
	in, err := fsys.Open(name)
	if err != nil {
		return sum, err
	}
	defer in.Close()
	h := xxh3.New()
	_, err = io.CopyBuffer(writerOnly{h}, readerOnly{in}, make([]byte, copyBytes))
	return h.Sum128(), err
}

// replay applies the entries after an image in joinDir, until joinDir equals the writer's directory at the least position or later,
// and returns that position. Combined entries arrive together, and all of them are applied.
func (r *Reader) replay(ctx context.Context, st *Image, least Position) (Position, error) {
	d := standby.Open(standby.Options{FS: r.o.FS, Dir: r.path(joinDir), Logger: r.o.Logger})
	at := st.Run
	err := func() error {
		for wait := time.Duration(0); at.Index < st.Whole || at.Compare(least) < 0; wait = pollTime {
			t, err := r.source.log(ctx, at, wait)
			if err != nil {
				return err
			}
			for _, b := range t.Entries {
				if err := r.apply(ctx, d, r.path(joinDir), b); err != nil {
					return err
				}
				at.Index++
			}
		}
		return nil
	}()
	return at, errors.Join(err, d.Close())
}

// Replace replaces the content of the data directory with a staged directory, if there is one. An earlier call may have been
// interrupted at any point. All stores of the directory must be closed.
func (r *Reader) Replace() error {
	x, err := r.staged()
	if x == nil && err == nil {
		return nil
	}
	var at Position
	if err == nil {
		at, err = ParsePosition(x.Position)
	}
	if err == nil {
		err = r.exchange(x, at)
	}
	if err != nil {
		return fmt.Errorf("cannot replace the data of %s by those of the writer: %w", r.o.Dir, err)
	}
	return nil
}

// exchange moves the staged directory into place, name by name. If it is interrupted, it can be called again: a name that is in place
// has left joinDir. The note in replaceFile is removed last, so the next start continues until all names are in place.
func (r *Reader) exchange(x *replacement, at Position) error {
	fsys := r.o.FS
	here, err := fsys.List(r.o.Dir)
	if err != nil {
		return err
	}
	for _, name := range here {
		if !slices.Contains(stays, name) && !slices.Contains(x.Names, name) {
			if err := fsys.RemoveAll(r.path(name)); err != nil {
				return err
			}
		}
	}
	for _, name := range x.Names {
		from := r.path(path.Join(joinDir, name))
		if _, err := fsys.Stat(from); errors.Is(err, fs.ErrNotExist) {
			continue // it is in place already
		}
		if err := fsys.RemoveAll(r.path(name)); err != nil {
			return err
		}
		if err := fsys.Rename(from, r.path(name)); err != nil {
			return err
		}
	}
	r.mu.Lock()
	id := r.id
	r.mu.Unlock()
	id.Group, id.Term, id.Rejoins = x.Group, max(id.Term, x.Term), false
	if err := id.write(fsys, r.o.Dir); err != nil { // it syncs the directory, and so the names that were exchanged
		return err
	}
	if err := r.position.restart(at); err != nil {
		return err
	}
	for _, name := range []string{joinDir, unsettledFile} {
		if err := fsys.RemoveAll(r.path(name)); err != nil {
			return err
		}
	}
	if err := fsys.Remove(r.path(replaceFile)); err != nil {
		return err
	}
	if err := fsys.SyncDir(r.path(workDir)); err != nil {
		return err
	}
	r.mu.Lock()
	r.id = id
	r.mu.Unlock()
	r.reach(at)
	return nil
}
