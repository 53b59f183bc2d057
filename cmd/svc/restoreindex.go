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

// restoreIndexOptions say how one index comes into a running server.
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

// leaveTime is how long a request to delete an index may take.
const leaveTime = 30 * time.Second

// restoreIndex restores an index into a running server. The server indexes its documents under another name, so that nobody sees a part of
// them. In the end the index gets its name, or changes places with the one that has it.
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
	r.temp = r.as + "-restore-" + strings.ToLower(rand.Text()[:8])
	switch {
	case !index.ValidUID(c.Index):
		return fmt.Errorf("--index: %q is not the name of an index", c.Index)
	case !index.ValidUID(r.as) || !index.ValidUID(r.temp):
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
	if err == nil {
		err = r.name(ctx, there)
	}
	if err != nil && r.made {
		err = errors.Join(err, r.leave())
	}
	if ctx.Err() != nil {
		return errors.Join(errors.New("stopped: the server has no other indexes than before"), err)
	}
	if err != nil {
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
	documents, err := client.Open(in, client.NDJSON)
	if err != nil {
		return err
	}
	display := newProgress(r.p.err, r.as, 0, func(now client.Progress) float64 { return float64(now.Read) / float64(v.Documents()) })
	o := client.Import{Index: r.temp, PrimaryKey: v.PrimaryKey, BatchBytes: 24 << 20, MaxTasks: 16, Progress: display.tell}
	last, err := o.Run(ctx, r.to, documents, client.Checkpoint{})
	display.end(last, err)
	return err
}

// name gives the complete index its name.
func (r *indexRestore) name(ctx context.Context, there bool) error {
	if !there {
		_, err := r.to.Do(ctx, http.MethodPatch, "/indexes/"+r.temp, map[string]any{"uid": r.as})
		return err
	}
	if _, err := r.to.Do(ctx, http.MethodPost, "/swap-indexes", []any{map[string]any{"indexes": []string{r.temp, r.as}}}); err != nil {
		return err
	}
	return r.leave() // what it replaced
}

// leave has the server delete what has the first name of the index. It does not wait for that: tasks with documents may be before it.
func (r *indexRestore) leave() error {
	ctx, stop := context.WithTimeout(context.Background(), leaveTime)
	defer stop()
	if err := r.to.Call(ctx, http.MethodDelete, "/indexes/"+r.temp, nil, nil); err != nil {
		return fmt.Errorf("the index %s is left on %s, delete it: %w", r.temp, r.to.Host(), err)
	}
	return nil
}
