package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"svc/internal/apierr"
	"svc/internal/dump"
	"svc/internal/rule"
	"svc/internal/vfs"
)

// salvage writes a dump of a directory and prints what is missing in it. The exit code says whether something is.
func (c *dumpCommand) salvage(ctx context.Context, p program) error {
	out, err := filepath.Abs(c.Out)
	if err != nil {
		return err
	}
	from, err := filepath.Abs(c.From)
	if err != nil {
		return err
	}
	if strings.HasPrefix(out, from+string(filepath.Separator)) {
		return fmt.Errorf("%s is in the data directory, which svc only reads. Name a file elsewhere", c.Out)
	}
	missing, err := checkSalvageable(vfs.OS, c.From)
	if err != nil {
		return err
	}
	held, err := holdDataDir(c.From)
	if err != nil {
		return err
	}
	defer held.Close()
	place := dump.PlaceIn(c.From)
	if missing != nil {
		fmt.Fprintf(p.out, "missing: %v\n", missing)
	}
	report, err := dump.Salvage(ctx, dump.SalvageOptions{
		FS: vfs.OS, Place: place, File: out, Version: apiVersion, Program: svcVersion, Now: time.Now,
		Rules: func() ([][]byte, error) {
			rules, err := rule.Open(rule.Options{FS: vfs.OS, File: place.Rules, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return nil, err
			}
			return rules.Dump(), nil
		},
		Tell: tellMissing(p.out), Mended: tellMended(p.out),
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s: %d indexes, %d documents, %d keys, %d tasks\n", c.Out, report.Indexes, report.Documents, report.Keys, report.Tasks)
	return incomplete(report)
}

// tellMissing prints what cannot be read, a line each.
func tellMissing(w io.Writer) func(*dump.Missing) {
	return func(m *dump.Missing) {
		fmt.Fprintf(w, "missing: %v\n", m)
		if m.Documents != nil {
			fmt.Fprintf(w, "  documents: %s\n", strings.Join(m.Documents, ", "))
		}
	}
}

// tellMended prints where one wrong bit was turned back, a line each.
func tellMended(w io.Writer) func(*apierr.Corruption) {
	return func(damage *apierr.Corruption) { fmt.Fprintf(w, "repaired: %v: one bit was wrong\n", damage) }
}

func incomplete(r *dump.SalvageReport) error {
	if r.Places == 0 {
		return nil
	}
	return fmt.Errorf("%d places and %d known documents are missing. They are listed above, and are not in the file", r.Places, r.LostDocuments)
}

// checkSalvageable checks that a directory is one of svc, in a format that this program reads. missing describes the part of this
// that is unknown.
func checkSalvageable(fsys vfs.FS, dir string) (missing, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the data directory: %w", err)
	}
	state, err := checkDataDir(fsys, dir)
	switch {
	case err == nil && (state == dataExists || state == dataOlder):
		return nil, nil
	case err == nil && state == dataInterrupted:
		return fmt.Errorf("%s: an import into it was interrupted: the rest of the import", dir), nil
	case errors.As(err, new(*foreignError)):
		return nil, err
	case !slices.Contains(names, "indexes") && !slices.Contains(names, "tasks"):
		return nil, fmt.Errorf("%s is not a data directory of svc", dir)
	}
	return fmt.Errorf("%s: the version of its formats; the current version is assumed: %w", filepath.Join(dir, versionFile), err), nil
}

// holdDataDir keeps servers from opening a directory, and fails if one has it open. It changes nothing in it.
func holdDataDir(dir string) (io.Closer, error) {
	var held closers
	for _, name := range append([]string{lockFile}, boltStores...) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		lock, err := vfs.Hold(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, vfs.ErrLocked) {
			err = fmt.Errorf("a server is running on %s. Stop it, or create a dump on it", dir)
		}
		if err != nil {
			return nil, errors.Join(err, held.Close())
		}
		held = append(held, lock)
	}
	return held, nil
}

type closers []io.Closer

// Close closes all of them.
func (c closers) Close() error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// salvageCommand reads the remains of a segment file.
type salvageCommand struct {
	File string `arg:"" help:"Segment file. It may be damaged, and is not changed."`
	Out  string `placeholder:"FILE" help:"File to write to (default: standard output). It must not exist."`
}

// Run writes one document per line. What is missing goes to the standard error, and the exit code says whether something is.
func (c *salvageCommand) Run(p program) (err error) {
	to := p.out
	if c.Out != "" {
		f, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer closing(&err, c.Out, f)
		to = f
	}
	w := bufio.NewWriterSize(to, 1<<16)
	report, err := dump.SalvageDocuments(vfs.OS, c.File, w, tellMissing(p.err), tellMended(p.err))
	if err = errors.Join(err, w.Flush()); err != nil {
		return err
	}
	fmt.Fprintf(p.err, "%s: %d documents\n", c.File, report.Documents)
	return incomplete(report)
}
