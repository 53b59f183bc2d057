package fastapi

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
)

// Dumps and snapshots are files that hold all documents, so only the master key and keys with every action (actionAll) on all indexes list
// and read them: a key that may create a dump must not read everything by that.

// copyView is a dump or a snapshot in a list.
type copyView struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	CreatedAt string `json:"createdAt"`
}

type copiesView struct {
	Results []copyView `json:"results"`
}

const dumpEnding = ".dump"

// listDumps lists the dumps in the directory of dumps, the newest first.
func (s *Server) listDumps(ctx *fasthttp.RequestCtx) error {
	return listCopies(ctx, s.dumpDir, func(name string) bool { return strings.HasSuffix(name, dumpEnding) })
}

// listSnapshots lists the snapshot, if there is one in a directory of this machine.
func (s *Server) listSnapshots(ctx *fasthttp.RequestCtx) error {
	dir, file := s.snapshotPlace()
	return listCopies(ctx, dir, func(name string) bool { return name == file })
}

// snapshotPlace is the directory of snapshots and the name of the file there; "" for snapshots that go to a bucket.
func (s *Server) snapshotPlace() (dir, file string) {
	if !filepath.IsAbs(s.snapshotFile) {
		return "", ""
	}
	return filepath.Dir(s.snapshotFile), filepath.Base(s.snapshotFile)
}

func listCopies(ctx *fasthttp.RequestCtx, dir string, listed func(name string) bool) error {
	view := copiesView{Results: []copyView{}}
	if dir == "" {
		return answer(ctx, view)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if !listed(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		} else if err != nil {
			return err
		}
		files = append(files, info)
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, f := range files {
		view.Results = append(view.Results, copyView{f.Name(), f.Size(), rfc3339(f.ModTime())})
	}
	return answer(ctx, view)
}

// getDump sends a dump.
func (s *Server) getDump(ctx *fasthttp.RequestCtx) error {
	name := pathValue(ctx, "dump")
	if s.dumpDir == "" || !strings.HasSuffix(name, dumpEnding) {
		return noCopy("dump", name)
	}
	return sendCopy(ctx, "dump", s.dumpDir, name)
}

// getSnapshot sends the snapshot.
func (s *Server) getSnapshot(ctx *fasthttp.RequestCtx) error {
	name := pathValue(ctx, "snapshot")
	dir, file := s.snapshotPlace()
	if dir == "" || name != file {
		return noCopy("snapshot", name)
	}
	return sendCopy(ctx, "snapshot", dir, name)
}

func noCopy(kind, name string) error {
	return apierr.New("dump_not_found", "There is no %s `%s` here.", kind, shorten([]byte(name)))
}

// sendCopy streams a regular file of a directory, or the range of it that is asked for. Its ETag tells an interrupted client whether the
// rest belongs to what it has.
func sendCopy(ctx *fasthttp.RequestCtx, kind, dir, name string) error {
	if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
		return noCopy(kind, name)
	}
	root, err := os.OpenRoot(dir) // follows no link out of the directory
	if err != nil {
		return noCopy(kind, name)
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() { // a pipe would be waited for
		return noCopy(kind, name)
	}
	f, err := root.Open(name)
	if err != nil {
		return noCopy(kind, name)
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return fmt.Errorf("%s %s: %w", kind, name, err)
	}
	size, from, to := info.Size(), int64(0), info.Size()-1
	tag := fmt.Sprintf(`"%x-%x"`, size, info.ModTime().UnixNano())
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderETag, tag)
	h.Set(fasthttp.HeaderAcceptRanges, "bytes")
	h.Set(fasthttp.HeaderCacheControl, "no-store")
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	h.Set(fasthttp.HeaderContentDisposition, `attachment; filename="`+strings.Map(inFileName, name)+`"`)
	wanted := headerRange.in(&ctx.Request.Header)
	if only := headerIfRange.in(&ctx.Request.Header); len(only) > 0 && string(only) != tag {
		wanted = nil
	}
	if len(wanted) > 0 {
		start, end, err := fasthttp.ParseByteRange(wanted, int(size))
		if err != nil {
			f.Close()
			h.Set(fasthttp.HeaderContentRange, fmt.Sprintf("bytes */%d", size))
			ctx.SetStatusCode(fasthttp.StatusRequestedRangeNotSatisfiable)
			return nil
		}
		from, to = int64(start), int64(end)
		h.SetContentRange(start, end, int(size))
		ctx.SetStatusCode(fasthttp.StatusPartialContent)
	}
	ctx.SetContentType("application/octet-stream")
	ctx.SetBodyStream(&copyPart{io.NewSectionReader(f, from, to-from+1), f}, int(to-from+1))
	return nil
}

// copyPart is a part of a file, which it closes when the answer is sent or given up.
type copyPart struct {
	*io.SectionReader
	file *os.File
}

func (p *copyPart) Close() error { return p.file.Close() }

// inFileName replaces what would end the name of a file in a header.
func inFileName(r rune) rune {
	if r < ' ' || r > '~' || r == '"' || r == '\\' {
		return '_'
	}
	return r
}
