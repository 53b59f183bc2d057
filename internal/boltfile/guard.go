package boltfile

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

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
		if f, ok := p.(failure); ok {
			err = f.err
			return
		}
		if !inFile(p) {
			panic(p)
		}
		err = &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("a page has changed since the file was opened: %v", p)}
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

// RootLost is the error of a file whose newest root was damaged after it was opened.
func RootLost(name string) error {
	return &apierr.Corruption{File: name, Section: "roots", Offset: -1, Reason: "the newest one is corrupted, and the older one is not used. Restart, or restore the file from a snapshot"}
}
