package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"svc/internal/vfs"
	"svc/segment"
	"svc/segment/synonym"
)

type inspectCommand struct {
	File string `arg:"" help:"Segment file, columns file, or file of settings."`

	Bytes bool `name:"bytes" help:"Also print the meaning of every byte."`
}

func (c *inspectCommand) Run(p program) error {
	if info, err := os.Stat(c.File); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory: name one of the %s, %s or %s files below it", c.File, segmentSuffix, columnsSuffix, settingsSuffix)
	}
	summarize, inspect := segment.Summarize, segment.Inspect
	if isSettings(c.File) {
		summarize, inspect = synonym.Summarize, synonym.Inspect
	}
	err := summarize(p.out, vfs.OS, c.File)
	if !c.Bytes {
		return err
	}
	fmt.Fprintln(p.out)
	return inspect(p.out, vfs.OS, c.File)
}

type verifyCommand struct {
	Path string `arg:"" help:"Segment file, columns file, file of settings, or a directory with such files."`
}

const (
	segmentSuffix  = ".seg" // ends the names of segment files,
	columnsSuffix  = ".col" // of columns beside a segment,
	settingsSuffix = ".set" // and of settings
)

func isSettings(name string) bool { return filepath.Ext(name) == settingsSuffix }

// isSegment reports whether a file has the form of a segment file.
func isSegment(name string) bool {
	suffix := filepath.Ext(name)
	return suffix == segmentSuffix || suffix == columnsSuffix
}

// Run verifies a file, or all files below a directory, and returns the errors of all damaged ones.
func (c *verifyCommand) Run(p program) error {
	var bad []error
	checked, root := 0, c.Path
	if info, err := os.Stat(root); err == nil && info.IsDir() {
		root += string(filepath.Separator) // WalkDir would not follow a symbolic link
	}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		// A running server removes merged segments: a file that was listed and no longer exists is not damage.
		gone := func(err error) bool { return name != root && errors.Is(err, fs.ErrNotExist) }
		if err != nil {
			if gone(err) {
				return nil
			}
			return err
		}
		if d.IsDir() || name != root && !isSegment(name) && !isSettings(name) {
			return nil
		}
		verify := segment.VerifyFile
		if isSettings(name) {
			verify = synonym.VerifyFile
		}
		err = verify(vfs.OS, name)
		if gone(err) {
			return nil
		}
		checked++
		if err != nil {
			bad = append(bad, err)
			fmt.Fprintf(p.out, "%s: DAMAGED\n", name)
			return nil
		}
		fmt.Fprintf(p.out, "%s: ok\n", name)
		return nil
	})
	if checked == 0 && err == nil {
		if _, e := os.Stat(filepath.Join(c.Path, versionFile)); e != nil {
			err = fmt.Errorf("there is no segment file below %s, and it is not a data directory", c.Path)
		}
	}
	if checked > 0 || err == nil {
		fmt.Fprintf(p.out, "%d checked, %d damaged\n", checked, len(bad))
	}
	return errors.Join(append(bad, err)...)
}
