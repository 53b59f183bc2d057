package segment

import (
	"errors"
	"fmt"
	"io"
	"path"

	"svc/internal/vfs"
)

// Extension ends the name of a segment file.
const Extension = ".seg"

// VerifyPath verifies the segment file called name, or all below the directory of that
// name: files that end in Extension and others that begin as a segment does.
// It prints a line for each and returns all damage found, joined.
func VerifyPath(w io.Writer, fs vfs.FS, name string) error {
	info, err := fs.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return verifyFile(w, fs, name)
	}
	names, err := fs.List(name)
	if err != nil {
		return err
	}
	var all []error
	for _, n := range names {
		n = path.Join(name, n)
		info, err := fs.Stat(n)
		switch {
		case err != nil:
			all = append(all, err)
		case info.IsDir():
			all = append(all, VerifyPath(w, fs, n))
		case path.Ext(n) == Extension || hasMagic(fs, n):
			all = append(all, verifyFile(w, fs, n))
		}
	}
	return errors.Join(all...)
}

func hasMagic(fs vfs.FS, name string) bool {
	f, err := fs.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var b [len(fileMagic)]byte
	_, err = io.ReadFull(f, b[:])
	return err == nil && string(b[:]) == fileMagic
}

func verifyFile(w io.Writer, fs vfs.FS, name string) error {
	r, err := Open(fs, name)
	if err == nil {
		err = r.Verify()
		if info := r.Info(); err == nil {
			_, err = fmt.Fprintf(w, "%s: sound, %d rows, %d bytes\n", name, info.Rows, info.Bytes)
		}
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		fmt.Fprintf(w, "%s: %v\n", name, err) // err is returned in any case
	}
	return err
}
