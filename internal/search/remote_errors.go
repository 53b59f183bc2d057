package search

import (
	"maps"
	"slices"
	"sync"

	"svc/internal/apierr"
	"svc/internal/jsontext"
)

// RemoteErrors are the errors of instances that a request read from, by name. It is safe for concurrent use. A nil one has none.
type RemoteErrors struct {
	mu     sync.Mutex
	byName map[string]*apierr.Error
}

// Add records why an instance did not answer. The first error of an instance stays.
func (e *RemoteErrors) Add(name string, err *apierr.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byName == nil {
		e.byName = map[string]*apierr.Error{}
	}
	if e.byName[name] == nil {
		e.byName[name] = err
	}
}

// None reports whether no instance failed.
func (e *RemoteErrors) None() bool { return len(e.all()) == 0 }

// First returns the error of the first instance by name, nil for none.
func (e *RemoteErrors) First() *apierr.Error {
	all := e.all()
	if len(all) == 0 {
		return nil
	}
	return all[slices.Min(slices.Collect(maps.Keys(all)))]
}

// AppendJSON appends the object of all errors.
func (e *RemoteErrors) AppendJSON(dst []byte) []byte { return appendErrors(dst, e.all()) }

// appendErrors appends an object of errors by remote, in the order of names.
func appendErrors(dst []byte, all map[string]*apierr.Error) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = all[name].AppendJSON(append(jsontext.AppendQuoted(dst, name), ':'))
	}
	return append(dst, '}')
}

// all returns a copy.
func (e *RemoteErrors) all() map[string]*apierr.Error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.byName)
}
