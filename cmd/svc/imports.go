package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"svc/internal/dump"
	"svc/internal/index"
	"svc/internal/network"
)

// importOptions are the sources that a new data directory can be filled from.
type importOptions struct {
	Dump                  string `name:"import-dump" placeholder:"FILE" help:"Fill a new data directory from this dump before serving."`
	IgnoreMissingDump     bool   `name:"ignore-missing-dump" help:"Start with an empty data directory if the dump of --import-dump is missing."`
	IgnoreDumpIfData      bool   `name:"ignore-dump-if-db-exists" help:"If the data directory exists, start with it instead of --import-dump."`
	Snapshot              string `name:"import-snapshot" placeholder:"FILE" help:"Fill a new data directory from this snapshot before serving."`
	IgnoreMissingSnapshot bool   `name:"ignore-missing-snapshot" help:"Start with an empty data directory if the snapshot of --import-snapshot is missing."`
	IgnoreSnapshotIfData  bool   `name:"ignore-snapshot-if-db-exists" help:"If the data directory exists, start with it instead of --import-snapshot."`
}

func (o *importOptions) validate() error {
	switch {
	case o.Dump != "" && o.Snapshot != "":
		return errors.New("--import-dump and --import-snapshot exclude each other")
	case o.Dump == "" && (o.IgnoreMissingDump || o.IgnoreDumpIfData):
		return errors.New("--ignore-missing-dump and --ignore-dump-if-db-exists need --import-dump")
	case o.Snapshot == "" && (o.IgnoreMissingSnapshot || o.IgnoreSnapshotIfData):
		return errors.New("--ignore-missing-snapshot and --ignore-snapshot-if-db-exists need --import-snapshot")
	}
	return nil
}

// imports reports whether a data directory is to be filled.
func (o *importOptions) imports() bool { return o.Dump != "" || o.Snapshot != "" }

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
			limits.Logger.Info("importing a snapshot", "file", file)
			err := dump.ImportSnapshot(ctx, dump.SnapshotImportOptions{FS: limits.FS, Place: place, File: file, CheckVersion: checkVersion, Index: limits})
			if err != nil {
				return err
			}
			return network.SetBack(limits.FS, place.Network)
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
	case (state == dataExists || state == dataOlder) && !dataIsFine:
		return "", nil, fmt.Errorf("%s already holds data, and the %s %s needs an empty directory. Choose another directory with --db-path, or keep the existing data with --ignore-%[2]s-if-db-exists", dir, kind, file)
	case missing && !missingIsFine:
		return "", nil, fmt.Errorf("there is no %s %s. Name another file, or start without it with --ignore-missing-%[1]s", kind, file)
	case state == dataExists, state == dataOlder, missing:
		return "", nil, nil
	}
	return file, fill, nil
}
