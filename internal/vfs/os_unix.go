//go:build unix

package vfs

import (
	"errors"
	"os"
)

func rename(oldname, newname string) error { return os.Rename(oldname, newname) }

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
