package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCache makes the system drop its cached pages of a file.
func dropCache(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
