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
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
)

// Dumps and snapshots are files with all documents and the secrets of the instance: keys of remotes, of embedders and of webhooks. So
// only the master key lists and reads them. For keys with every action, some of these secrets are masked elsewhere.

// copyView is a dump or a snapshot in a list.
type copyView struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	CreatedAt string `json:"createdAt"`
}

type copiesView struct {
	Results []copyView `json:"results"`
}

const (
	dumpEnding      = ".dump"
	longestFileName = 255 // bytes: file systems have no longer names
)

// pathDownloads is where dumps and snapshots are listed and downloaded.
const pathDownloads = "/downloads/"

// ownCopies refuses callers that may not list or read dumps and snapshots. Without a master key, any web page could read them through
// the browser of a user who reaches the server, because answers allow all origins.
func (s *Server) ownCopies(ctx *fasthttp.RequestCtx) error {
	if caller(ctx) != nil {
		return auth.Refuse("Only the master key lists and downloads dumps and snapshots: they contain all documents, and secrets of the instance.")
	}
	header := headerOrigin
	switch {
	case s.rebound(ctx):
		header = headerHost
	case s.keys.Protected() || !hasHeader(&ctx.Request.Header, headerOrigin):
		return nil
	}
	return refuseCopies(ctx, header)
}

// refuseCopies returns the error of a request that, by one of its headers, may come from a page of another site.
func refuseCopies(ctx *fasthttp.RequestCtx, header requestHeader) error {
	e := apierr.New("bad_request", "The header `%s` is %q. Without a master key, pages of other servers cannot list or download dumps and snapshots.", header, shorten(header.in(&ctx.Request.Header)))
	e.HTTP = fasthttp.StatusForbidden
	return e
}

// listDumps lists the dumps in the directory of dumps, the newest first.
func (s *Server) listDumps(ctx *fasthttp.RequestCtx) error {
	return s.listCopies(ctx, s.dumpDir, func(name string) bool { return strings.HasSuffix(name, dumpEnding) })
}

// listSnapshots lists the snapshot, if there is one in a directory of this machine.
func (s *Server) listSnapshots(ctx *fasthttp.RequestCtx) error {
	dir, file := s.snapshotPlace()
	return s.listCopies(ctx, dir, func(name string) bool { return name == file })
}

// snapshotPlace returns the directory of snapshots and the name of the file there, or "" for snapshots in a bucket.
func (s *Server) snapshotPlace() (dir, file string) {
	if !filepath.IsAbs(s.snapshotFile) {
		return "", ""
	}
	return filepath.Dir(s.snapshotFile), filepath.Base(s.snapshotFile)
}

// listCopies lists the files of a directory that satisfy listed, newest first. A missing directory has none.
func (s *Server) listCopies(ctx *fasthttp.RequestCtx, dir string, listed func(name string) bool) error {
	if err := s.ownCopies(ctx); err != nil {
		return err
	}
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
	if err := s.ownCopies(ctx); err != nil {
		return err
	}
	name := pathValue(ctx, "dump")
	if s.dumpDir == "" || !strings.HasSuffix(name, dumpEnding) {
		return noCopy("dump", name)
	}
	return sendCopy(ctx, "dump", s.dumpDir, name)
}

// getSnapshot sends the snapshot.
func (s *Server) getSnapshot(ctx *fasthttp.RequestCtx) error {
	if err := s.ownCopies(ctx); err != nil {
		return err
	}
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

// sendCopy streams a regular file of a directory, or the requested range of it. Its ETag tells a client that resumes a download
// whether the file is still the same.
func sendCopy(ctx *fasthttp.RequestCtx, kind, dir, name string) error {
	if !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\\x00") || len(name) > longestFileName {
		return noCopy(kind, name)
	}
	failed := func(err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return noCopy(kind, name)
		}
		return fmt.Errorf("%s %s: %w", kind, name, err)
	}
	root, err := os.OpenRoot(dir) // follows no link out of the directory
	if err != nil {
		return failed(err)
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err != nil {
		return failed(err)
	}
	if !info.Mode().IsRegular() { // a pipe would be waited for
		return noCopy(kind, name)
	}
	f, err := root.Open(name)
	if err != nil {
		return failed(err)
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return failed(err)
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
		start, end, ok := byteRange(string(wanted), size)
		switch {
		case ok && start > end:
			f.Close()
			h.Set(fasthttp.HeaderContentRange, fmt.Sprintf("bytes */%d", size))
			ctx.SetStatusCode(fasthttp.StatusRequestedRangeNotSatisfiable)
			return nil
		case ok:
			from, to = start, end
			h.SetContentRange(int(from), int(to), int(size))
			ctx.SetStatusCode(fasthttp.StatusPartialContent)
		}
	}
	ctx.SetContentType("application/octet-stream")
	ctx.SetBodyStream(&copyPart{io.NewSectionReader(f, from, to-from+1), f}, int(to-from+1))
	return nil
}

// byteRange parses the header Range for a file, by section 14 of RFC 9110. first > last means that no byte of the file is in the
// range. ok is false if the header has to be ignored: another unit, several ranges, or an invalid one.
func byteRange(header string, size int64) (first, last int64, ok bool) {
	unit, spec, _ := strings.Cut(header, "=")
	from, to, isRange := strings.Cut(strings.Trim(spec, " \t"), "-")
	if !strings.EqualFold(unit, "bytes") || !isRange || from == "" && to == "" {
		return 0, 0, false
	}
	// number parses digits. Numbers that are too large become the largest one.
	number := func(digits string) (int64, bool) {
		n, err := strconv.ParseUint(digits, 10, 63)
		return int64(n), err == nil || errors.Is(err, strconv.ErrRange)
	}
	switch start, valid := number(from); {
	case from == "":
		suffix, valid := number(to)
		return max(0, size-suffix), size - 1, valid && (size > 0 || suffix == 0)
	case !valid:
		return 0, 0, false
	case to == "":
		return start, size - 1, true
	default:
		end, valid := number(to)
		return start, min(end, size-1), valid && start <= end
	}
}

// copyPart is a part of a file. It closes the file when the answer is sent or abandoned.
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
