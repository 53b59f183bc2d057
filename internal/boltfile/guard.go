package boltfile

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"go.etcd.io/bbolt"

	"svc/internal/apierr"
	"svc/internal/mapped"
)

// Guard calls f, which reads or changes a file of bbolt. That a file was sound when it was opened does not last: where one of
// its pages becomes another later, or cannot be read, bbolt panics, which becomes an *apierr.Corruption. It hands on other panics.
func Guard(name string, f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		p := recover()
		if p == nil {
			return
		}
		if !inFile(p) {
			panic(p)
		}
		err = &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("a page is no longer what it was when the file was opened: %v", p)}
	}()
	return f()
}

// inFile reports whether a panic that is being recovered is about bytes of a file of bbolt: a fault of memory that is mapped from no other
// file, or bbolt's own.
func inFile(p any) bool {
	var fault interface {
		runtime.Error
		Addr() uintptr
	}
	if err, ok := p.(error); ok && errors.As(err, &fault) {
		return mapped.Damage(p) == nil
	}
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for panicked := false; ; {
		f, more := frames.Next()
		of := strings.HasPrefix(f.Function, "runtime.")
		if panicked && !of {
			return strings.HasPrefix(f.Function, "go.etcd.io/bbolt")
		}
		panicked = panicked || of
		if !more {
			return false
		}
	}
}

// Begin begins a change of a file whose last one was the transaction numbered last. When its root has been damaged since, bbolt would
// go on from the older one, and the last change would be undone: that is an *apierr.Corruption.
func Begin(db *bbolt.DB, last int) (*bbolt.Tx, error) {
	tx, err := db.Begin(true)
	if err != nil {
		return nil, err
	}
	if tx.ID() != last+1 {
		name := db.Path()
		if err := tx.Rollback(); err != nil {
			return nil, err
		}
		return nil, RootLost(name)
	}
	return tx, nil
}

// RootLost is the error of a file whose newest root was damaged after it was opened.
func RootLost(name string) error {
	return &apierr.Corruption{File: name, Section: "roots", Offset: -1, Reason: "the newest one is no longer what was written: nothing is read or changed as the older one has it. Start again, or bring the file back from a snapshot"}
}
