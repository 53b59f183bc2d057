package boltfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/bbolt"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// Options of a file.
type Options struct {
	Format  byte     // version of the content of the buckets
	Buckets [][]byte // of a new file, beside that with the format
	Logger  *slog.Logger
	MapSize int     // bytes of address space mapped from the start
	Step    int     // bytes that the file grows by; 0: bbolt's
	NoSync  bool    // the file need not outlive a power failure
	Fill    float64 // how full pages of copies become: a share; 0: bbolt's
	// Lacking, if not nil, is called if one of the two roots is damaged, so that the last change may be missing.
	Lacking func()
}

var (
	metaBucket = []byte("meta") // "format" → Options.Format
	formatKey  = []byte("format")
)

// NewSuffix ends the name under which a file is created or rebuilt.
const NewSuffix = ".new"

// lockTimeout is how long another process may take to close the file.
const lockTimeout = time.Second

// ErrUsed is the error of a file that another process, or another DB, has open.
var ErrUsed = errors.New("another process uses it")

// Open opens a file, or makes it, durably. A damaged one gives an *apierr.Corruption; all errors name the file.
func Open(name string, o Options) (*DB, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = create(name, &o)
	case err == nil && info.Size() == 0:
		// A file gets its name when it is whole: this one was more once.
		err = &apierr.Corruption{File: name, Offset: 0, Reason: "it is empty"}
	}
	if c := new(apierr.Corruption); errors.As(err, &c) {
		return nil, c // it names the file
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", name, err)
	}
	db, err := open(name, &o)
	if err == nil {
		if err = checkFormat(db, &o); err != nil {
			err = errors.Join(err, db.Close())
		}
	}
	if c := new(apierr.Corruption); errors.As(err, &c) {
		return nil, c
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", name, err)
	}
	return db, nil
}

// open opens an existing file if it is undamaged.
func open(name string, o *Options) (*DB, error) {
	var file *os.File
	var checked *checker
	options := bbolt.Options{
		Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType, InitialMmapSize: AddressSpace(o.MapSize), NoSync: o.NoSync, NoGrowSync: o.NoSync,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, mode)
			if err != nil || file != nil { // bbolt opens it, and other names, again for copies
				return f, err
			}
			file = f
			if err = lock(f); err == nil {
				checked, err = check(f, o)
			}
			if err != nil {
				return nil, errors.Join(err, f.Close())
			}
			return f, nil
		},
	}
	bolt, err := bbolt.Open(name, 0o600, &options)
	if err != nil {
		return nil, err
	}
	if o.Step > 0 {
		bolt.AllocSize = o.Step
	}
	db, err := newDB(bolt, file, checked)
	if err != nil {
		return nil, errors.Join(err, bolt.Close())
	}
	return db, nil
}

// AddressSpace returns how many bytes bbolt should map from the start to get n. It is 0 on Windows, where bbolt makes the file as
// long as its mapping.
func AddressSpace(n int) int {
	if runtime.GOOS == "windows" {
		return 0
	}
	return n
}

// lock takes a lock before bbolt takes its own, which is the same one on Unix: the file must not change while it is checked.
func lock(f *os.File) error {
	for end := time.Now().Add(lockTimeout); ; time.Sleep(lockTimeout / 20) {
		err := vfs.LockFile(f)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, vfs.ErrLocked):
			return fmt.Errorf("cannot lock it: %w", err)
		case time.Now().After(end):
			return ErrUsed
		}
	}
}

// create makes a file with its buckets.
func create(name string, o *Options) error {
	temp := name + NewSuffix
	if err := vfs.OS.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := bbolt.Open(temp, 0o600, &bbolt.Options{NoSync: o.NoSync, NoGrowSync: o.NoSync})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, bucket := range o.Buckets {
			if _, err := tx.CreateBucket(bucket); err != nil {
				return err
			}
		}
		meta, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}
		return meta.Put(formatKey, []byte{o.Format})
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return errors.Join(err, vfs.OS.Remove(temp))
	}
	if o.NoSync {
		return vfs.OS.Rename(temp, name)
	}
	// bbolt has synced the file, but never its directory.
	renamed, err := vfs.Move(vfs.OS, temp, name)
	if err != nil && renamed { // a later sync of the directory would say nothing about this name
		err = errors.Join(err, vfs.OS.Remove(name))
	}
	return err
}

// checkFormat refuses a file of another format, or without a bucket that it must have.
func checkFormat(db *DB, o *Options) error {
	return db.View(func(tx *Tx) error {
		meta := tx.Bucket(metaBucket)
		if meta == nil {
			return &apierr.Corruption{File: db.Path(), Section: "meta", Offset: -1, Reason: "there is no such bucket"}
		}
		v, err := meta.Get(formatKey)
		if err != nil {
			return err
		}
		if v == nil {
			return &apierr.Corruption{File: db.Path(), Section: "meta", Offset: -1, Reason: "there is no format version"}
		}
		if len(v) != 1 || v[0] != o.Format {
			return fmt.Errorf("it has format version %d, and this svc reads version %d: start the svc that wrote it, make a dump and import that", v, o.Format)
		}
		for _, bucket := range o.Buckets {
			if tx.Bucket(bucket) == nil {
				return &apierr.Corruption{File: db.Path(), Section: string(bucket), Offset: -1, Reason: "there is no such bucket"}
			}
		}
		return nil
	})
}

// SumBytes is the length of the checksum after a value.
const SumBytes = 4

// errSum is the error of a value that differs from what was stored, or is under another key.
var errSum = errors.New("its checksum does not fit")

// Put stores a value, followed by a checksum of the key and the value. Both are bbolt's until the transaction ends.
func Put(b *Bucket, key, value []byte) error {
	return PutOwned(b, key, append(make([]byte, 0, len(value)+SumBytes), value...))
}

// PutOwned is Put for a value whose spare capacity it may use.
func PutOwned(b *Bucket, key, value []byte) error {
	return b.put(key, binary.LittleEndian.AppendUint32(value, sum(key, value)))
}

// Get returns the value that Put stored, or nil if there is none.
func Get(b *Bucket, key []byte) ([]byte, error) {
	sealed, err := b.Get(key)
	if sealed == nil || err != nil {
		return nil, err
	}
	return Value(key, sealed)
}

// Value returns the value in the stored bytes of a key, as cursors return them.
func Value(key, sealed []byte) ([]byte, error) {
	n := len(sealed) - SumBytes
	if n < 0 || binary.LittleEndian.Uint32(sealed[n:]) != sum(key, sealed[:n]) {
		return nil, errSum
	}
	return sealed[:n:n], nil
}

func sum(key, value []byte) uint32 {
	d := xxhash.NewWithSeed(uint64(len(key)))
	_, _ = d.Write(key)
	_, _ = d.Write(value)
	return uint32(d.Sum64())
}
