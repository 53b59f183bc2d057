package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/zeebo/xxh3"

	"svc/internal/vfs"
)

// positions is the file with the last entry that a data directory has of the log. It is a list of records, the last of which counts.
// A position is durable, here or in the log of a voter, before the change after the next one is made. So at most one change is made
// twice.
type positions struct {
	fs   vfs.FS
	name string
	file vfs.File // nil: the next record begins the file
	size int
	last Position // of the last record
	// unsynced: last may not be durable, even if the file is closed.
	unsynced bool
}

// A record is u32 term, u32 run, u64 index and u64 XXH3-64 of these, little-endian.
const positionBytes = 24

const maxPositions = 1 << 20 // bytes; then the file is rewritten

func encodePosition(p Position) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, positionBytes), p.Term)
	b = binary.LittleEndian.AppendUint32(b, p.Run)
	b = binary.LittleEndian.AppendUint64(b, p.Index)
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

// lastPosition returns what the last whole record says.
func lastPosition(b []byte) (p Position, ok bool) {
	for ; len(b) >= positionBytes; b = b[positionBytes:] {
		if xxh3.Hash(b[:16]) != binary.LittleEndian.Uint64(b[16:]) {
			break
		}
		p, ok = Position{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:])}, true
	}
	return p, ok
}

// read returns the position. ok is false if there is none, and an image is needed.
func (p *positions) read() (at Position, ok bool, err error) {
	b, err := vfs.ReadFile(p.fs, p.name)
	if errors.Is(err, fs.ErrNotExist) {
		return at, false, nil
	}
	if err != nil {
		return at, false, err
	}
	at, ok = lastPosition(b)
	return at, ok, nil
}

// restart begins the file with a position, durably.
func (p *positions) restart(at Position) error {
	if err := p.close(); err != nil {
		return err
	}
	if _, err := vfs.Replace(p.fs, p.name, encodePosition(at)); err != nil {
		return err
	}
	p.last, p.unsynced = at, false
	f, err := p.fs.Append(p.name)
	if err != nil {
		return err
	}
	p.file, p.size = f, positionBytes
	return nil
}

// add adds a position, durably.
func (p *positions) add(at Position) error {
	if err := p.write(at); err != nil {
		return err
	}
	return p.sync()
}

// write adds a position, which a crash of the system may undo until sync returns.
func (p *positions) write(at Position) error {
	if p.file == nil || p.size >= maxPositions {
		return p.restart(at)
	}
	if _, err := p.file.Write(encodePosition(at)); err != nil {
		return p.giveUp(err)
	}
	p.size, p.last, p.unsynced = p.size+positionBytes, at, true
	return nil
}

// sync makes the last record durable. After an error the next call rewrites the file: the system may have dropped what it could not
// write, and would sync the rest without an error.
func (p *positions) sync() error {
	if !p.unsynced {
		return nil
	}
	if p.file == nil {
		return p.restart(p.last)
	}
	if err := p.file.Sync(); err != nil {
		return p.giveUp(err)
	}
	p.unsynced = false
	return nil
}

// giveUp closes the file, whose content is unknown.
func (p *positions) giveUp(err error) error {
	return errors.Join(fmt.Errorf("cannot note the position of the log: %w", err), p.close())
}

// settle makes the current file durable, because a killed program may have written records without a sync.
func (p *positions) settle() error {
	f, err := p.fs.Append(p.name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// close closes the file, synced or not. The next write or sync rewrites it.
func (p *positions) close() error {
	f := p.file
	p.file = nil
	if f == nil {
		return nil
	}
	return f.Close()
}
