package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"svc/internal/dump"
	"svc/internal/index"
)

// importOptions say what a new data directory is filled from.
type importOptions struct {
	Dump                  string `name:"import-dump" placeholder:"FILE" help:"Fill a new data directory from this dump before serving."`
	IgnoreMissingDump     bool   `name:"ignore-missing-dump" help:"Start with an empty data directory when the dump of --import-dump is missing."`
	IgnoreDumpIfData      bool   `name:"ignore-dump-if-db-exists" help:"Start with the data directory there is, instead of --import-dump."`
	Snapshot              string `name:"import-snapshot" placeholder:"FILE" help:"Fill a new data directory from this snapshot before serving."`
	IgnoreMissingSnapshot bool   `name:"ignore-missing-snapshot" help:"Start with an empty data directory when the snapshot of --import-snapshot is missing."`
	IgnoreSnapshotIfData  bool   `name:"ignore-snapshot-if-db-exists" help:"Start with the data directory there is, instead of --import-snapshot."`
}

func (o *importOptions) validate() error {
	switch {
	case o.Dump != "" && o.Snapshot != "":
		return errors.New("--import-dump and --import-snapshot exclude each other: a data directory is filled from one file")
	case o.Dump == "" && (o.IgnoreMissingDump || o.IgnoreDumpIfData):
		return errors.New("--ignore-missing-dump and --ignore-dump-if-db-exists go with --import-dump only")
	case o.Snapshot == "" && (o.IgnoreMissingSnapshot || o.IgnoreSnapshotIfData):
		return errors.New("--ignore-missing-snapshot and --ignore-snapshot-if-db-exists go with --import-snapshot only")
	}
	return nil
}

// plan says which file the data directory is to be filled from, "" for none, and how.
func (o *importOptions) plan(ctx context.Context, dir string, place dump.Place, limits index.Options) (from string, fill func() error, err error) {
	kind, file := "dump", o.Dump
	missingIsFine, dataIsFine := o.IgnoreMissingDump, o.IgnoreDumpIfData
	fill = func() error {
		return dump.Import(ctx, dump.ImportOptions{FS: limits.FS, Place: place, File: file, Index: limits, Logger: limits.Logger, Now: limits.Now})
	}
	if o.Snapshot != "" {
		kind, file = "snapshot", o.Snapshot
		missingIsFine, dataIsFine = o.IgnoreMissingSnapshot, o.IgnoreSnapshotIfData
		fill = func() error {
			return dump.ImportSnapshot(ctx, dump.SnapshotImportOptions{FS: limits.FS, Dir: dir, File: file, Version: versionContent()})
		}
	}
	if file == "" {
		return "", nil, nil
	}
	state, err := checkDataDir(limits.FS, dir)
	if err != nil {
		return "", nil, err
	}
	_, err = limits.FS.Stat(file)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return "", nil, fmt.Errorf("cannot read the %s: %w", kind, err)
	case state == dataExists && !dataIsFine:
		return "", nil, fmt.Errorf("%s holds data already, and the %s %s is for an empty directory. Choose another one with --db-path, or start with what is there by --ignore-%[2]s-if-db-exists", dir, kind, file)
	case missing && !missingIsFine:
		return "", nil, fmt.Errorf("there is no %s %s. Name another file, or start without it by --ignore-missing-%[1]s", kind, file)
	case state == dataExists, missing:
		return "", nil, nil
	}
	return file, fill, nil
}

// everyDay is what --schedule-snapshot means without a value.
const everyDay = 24 * time.Hour

// schedule is a time between two snapshots, 0 for none: a flag that may have a value, in seconds.
type schedule time.Duration

// IsBool tells kong that the flag may stand alone.
func (*schedule) IsBool() bool { return true }

// Decode takes the value that follows the flag, if one does.
func (s *schedule) Decode(ctx *kong.DecodeContext) error {
	next := ctx.Scan.Peek()
	text, isText := next.Value.(string)
	switch {
	case next.Type == kong.FlagValueToken:
		ctx.Scan.Pop()
		if on, ok := next.Value.(bool); ok {
			text, isText = strconv.FormatBool(on), true
		}
		if !isText {
			return fmt.Errorf("%v is no number of seconds", next.Value)
		}
		return s.set(text)
	case isText && text != "" && strings.Trim(text, "0123456789") == "":
		ctx.Scan.Pop()
		return s.set(text)
	}
	*s = schedule(everyDay)
	return nil
}

func (s *schedule) set(text string) error {
	switch text {
	case "true":
		*s = schedule(everyDay)
		return nil
	case "false":
		*s = 0
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is no time between snapshots: write a number of seconds from 1, or no value for a day", text)
	}
	*s = schedule(time.Duration(n) * time.Second)
	return nil
}

// isSchedule reports whether a flag is of that type, which is a boolean that may be a number.
func isSchedule(flag *kong.Flag) bool { return flag.Target.Type() == reflect.TypeFor[schedule]() }
