package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"svc/internal/client"
	"svc/internal/dump"
	"svc/internal/index"
	"svc/internal/publish"
	"svc/internal/vfs"
)

// restoreIndexOptions are the options for restoring one index into a running server.
type restoreIndexOptions struct {
	Index   string `name:"index" placeholder:"NAME" help:"Restore this index alone, into a running server, which stays in service (see --url and --key)."`
	As      string `name:"as" placeholder:"NAME" help:"Name of that index in the server (default: the name of --index)."`
	Replace bool   `name:"replace" help:"If the server has an index of that name, replace it once the restored one is complete."`
}

// indexRestore is a restore of one index.
type indexRestore struct {
	*restoreCommand
	p    program
	to   *client.Client
	as   string
	temp string // name of the index until it is complete
	made bool   // the server was asked to make it
}

// leaveTime is the time limit of a request to delete an index, and how long a stopped restore waits for its running task.
const leaveTime = 30 * time.Second

// restoreIndex restores an index into a running server. The server indexes its documents under a random name that does not begin with
// that of the index, so that keys and searches for names such as products* do not see an incomplete index. At the end the index gets
// its name, or is swapped with the index of that name.
func (c *restoreCommand) restoreIndex(ctx context.Context, p program, archive *publish.Archive, target publish.Target) (err error) {
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	to.Patience = importPatience
	r := &indexRestore{restoreCommand: c, p: p, to: to, as: c.As}
	if r.as == "" {
		r.as = c.Index
	}
	r.temp = "restore-" + strings.ToLower(rand.Text()[:8])
	switch {
	case !index.ValidUID(c.Index):
		return fmt.Errorf("--index: %q is not the name of an index", c.Index)
	case !index.ValidUID(r.as):
		return fmt.Errorf("--as: %q is not a name for an index, or it is too long", r.as)
	}
	there, err := r.exists(ctx)
	if err != nil {
		return err
	}
	if there && !c.Replace {
		return fmt.Errorf("%s has an index %s. Choose another name with --as, or replace it with --replace", to.Host(), r.as)
	}
	dir, err := os.MkdirTemp(c.To, "svc-restore-")
	if err != nil {
		return fmt.Errorf("cannot make a directory for the files of the index: %w; name one with --to", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	data := filepath.Join(dir, "data")
	made, err := archive.Restore(ctx, publish.RestoreOptions{FS: vfs.OS, Dir: data, Target: target, Index: c.Index, Logger: slog.New(slog.NewTextHandler(p.err, nil))})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.err, "%s: fetched %d files of %d bytes\n", c.Index, made.Files, made.Bytes)
	n, err := r.fill(ctx, data)
	if err != nil {
		return r.undo(ctx, err)
	}
	if err := r.name(ctx, there); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "index %s of %s has the %d documents and the settings that %s had at %s, position %v\n",
		r.as, to.Host(), n, c.Index, made.At.UTC().Format(time.RFC3339Nano), made.Position)
	return err
}

// exists reports whether the server has an index of the name.
func (r *indexRestore) exists(ctx context.Context) (bool, error) {
	var ix struct{ UID string }
	err := r.to.Call(ctx, http.MethodGet, "/indexes/"+url.PathEscape(r.as), nil, &ix)
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return false, nil
	case err != nil:
		return false, err
	case ix.UID != r.as:
		return false, fmt.Errorf("%s is an alias of the index %s. Choose another name with --as", r.as, ix.UID)
	}
	return true, nil
}

// fill makes the index under its first name from a directory, and returns the number of its documents.
func (r *indexRestore) fill(ctx context.Context, dir string) (n int, err error) {
	catalog, err := index.OpenCatalog(filepath.ToSlash(filepath.Join(dir, "indexes")), index.Options{FS: vfs.OS, Follow: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	defer closing(&err, "the restored files", catalog)
	frozen, err := catalog.Freeze()
	if err != nil {
		return 0, err
	}
	defer frozen.Release()
	v, err := frozen.ReadView(0)
	if err != nil {
		return 0, err
	}
	var features json.RawMessage
	if err := r.to.Call(ctx, http.MethodGet, "/experimental-features", nil, &features); err != nil {
		return 0, fmt.Errorf("cannot see which features the server has: %w", err)
	}
	settings, err := dump.SettingsFor(v, features)
	if err != nil {
		return 0, err
	}
	body := map[string]any{"uid": r.temp}
	if v.PrimaryKey != "" {
		body["primaryKey"] = v.PrimaryKey
	}
	r.made = true
	if _, err := r.to.Do(ctx, http.MethodPost, "/indexes", body); err != nil {
		return 0, err
	}
	if _, err := r.to.Do(ctx, http.MethodPatch, "/indexes/"+r.temp+"/settings", settings); err != nil {
		return 0, fmt.Errorf("the settings: %w", err)
	}
	if v.Documents() == 0 {
		return 0, nil
	}
	return v.Documents(), r.send(ctx, v)
}

// send sends the documents of the index.
func (r *indexRestore) send(ctx context.Context, v *index.View) error {
	in, out := io.Pipe()
	read, unfit := make(chan struct{}), 0
	go func() {
		defer close(read)
		w := bufio.NewWriterSize(out, 1<<20)
		n, err := dump.EachFitting(v, nil, func(doc []byte) error {
			_, err := w.Write(append(doc, '\n'))
			return err
		})
		unfit = n
		_ = out.CloseWithError(errors.Join(err, w.Flush()))
	}()
	defer func() {
		_ = in.Close() // ends the goroutine
		<-read
		if unfit > 0 {
			fmt.Fprintf(r.p.err, "%s: %d documents have vectors that do not fit their embedder, which are left out\n", r.as, unfit)
		}
	}()
	documents, err := client.Open(in, client.NDJSON, "")
	if err != nil {
		return err
	}
	display := newProgress(r.p.err, r.as, 0, func(now client.Progress) float64 { return float64(now.Read) / float64(v.Documents()) })
	o := client.Import{Index: r.temp, PrimaryKey: v.PrimaryKey, BatchBytes: 24 << 20, MaxTasks: 16, Progress: display.tell}
	last, err := o.Run(ctx, r.to, documents, client.Checkpoint{})
	display.end(last, err)
	return err
}

// name gives the complete index its final name. If the server refuses, name undoes the restore. If the server may still do it, name
// deletes nothing: after a swap, the first name is that of the former index.
func (r *indexRestore) name(ctx context.Context, there bool) error {
	if err := ctx.Err(); err != nil {
		return r.undo(ctx, err)
	}
	method, path, body := http.MethodPatch, "/indexes/"+r.temp, any(map[string]any{"uid": r.as})
	if there {
		method, path, body = http.MethodPost, "/swap-indexes", []any{map[string]any{"indexes": []string{r.temp, r.as}}}
	}
	var made client.Enqueued
	if err := r.to.CallOnce(ctx, method, path, body, &made); err != nil {
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status/100 == 4 { // there is no task
			return r.undo(ctx, err)
		}
		return r.unsure(there, err)
	}
	if made.EnqueuedAt == "" {
		return r.unsure(there, errors.New("its answer names no task"))
	}
	ended, err := r.to.Wait(ctx, made.TaskUID)
	if err != nil { // the task runs on
		late, stop := context.WithTimeout(context.Background(), leaveTime)
		ended, err = r.to.Wait(late, made.TaskUID)
		stop()
	}
	switch {
	case err != nil:
		return r.unsure(there, err)
	case ended.Error != nil && ended.Error.Code == "internal": // such as a crash in the middle of it
		return r.unsure(there, ended.Err())
	case ended.Err() != nil:
		return r.undo(ctx, ended.Err())
	case !there:
		return nil
	}
	if err := r.leave(); err != nil {
		return fmt.Errorf("the restored index is %s, but the former one remains: %w", r.as, err)
	}
	return nil
}

// unsure is the error of a restore that may have been the last step from its end.
func (r *indexRestore) unsure(there bool, err error) error {
	if there {
		return fmt.Errorf("it is unknown whether %s took the place of %s on %s: %w. One of the two is the restored index and one the former index. Compare them, and delete the one that you do not need", r.temp, r.as, r.to.Host(), err)
	}
	return fmt.Errorf("it is unknown whether %s was renamed to %s on %s: %w. The index is complete, and has one of these names", r.temp, r.as, r.to.Host(), err)
}

// undo deletes on the server what was sent, and returns err.
func (r *indexRestore) undo(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = fmt.Errorf("stopped before the index had its name: %w", err)
	}
	if !r.made {
		return err
	}
	return errors.Join(err, r.leave())
}

// leave deletes the index with the temporary name. It does not wait for that, because tasks with documents may run first.
func (r *indexRestore) leave() error {
	ctx, stop := context.WithTimeout(context.Background(), leaveTime)
	defer stop()
	if err := r.to.Call(ctx, http.MethodDelete, "/indexes/"+r.temp, nil, nil); err != nil {
		return fmt.Errorf("the index %s is left on %s, delete it: %w", r.temp, r.to.Host(), err)
	}
	return nil
}
