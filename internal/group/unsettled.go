package group

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"svc/internal/vfs"
)

// unsettledFile has the last position up to which entries were combined that a reader has started to make: see Combine. The file is a
// record of positions. It counts for as long as the reader has not reached that position.
const unsettledFile = workDir + "/unsettled"

// settling notes, durably, that a directory has a state that the writer never had until it has the log up to a position.
func (r *Reader) settling(until Position) error {
	_, err := vfs.Replace(r.o.FS, r.path(unsettledFile), encodePosition(until))
	return err
}

// settled returns an error if a position is not consistent: the directory has a state that the writer never had.
func (r *Reader) settled(at Position) error {
	b, err := vfs.ReadFile(r.o.FS, path.Join(r.o.Dir, unsettledFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if until, ok := lastPosition(b); ok && until.SameLog(at) && until.Index > at.Index {
		return fmt.Errorf("the reader stopped at %v, inside changes that were combined up to %v. Start it with --follow until it reaches %[2]v, or restore from the bucket", at, until)
	}
	return nil
}
