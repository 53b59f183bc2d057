package index

import (
	"sync"

	"svc/internal/apierr"
)

// Views holds a view of every index that one request has to do with, so that all of the request sees one
// state of each. The goroutines of the request share it.
type Views struct {
	catalog *Catalog
	stored  bool // include expired documents

	mu   sync.Mutex
	held map[string]*View // nil: there is no such index, or it cannot be opened
	errs map[string]error // why it cannot
}

// Views returns an empty set; the caller releases it.
func (c *Catalog) Views() *Views {
	return &Views{catalog: c, held: make(map[string]*View), errs: make(map[string]error)}
}

// storedViews is Views for writers: they include expired documents that are still stored.
func (c *Catalog) storedViews() *Views {
	vs := c.Views()
	vs.stored = true
	return vs
}

// Get returns the view of an index to search, or nil if there is no such index. It is valid until Release.
func (vs *Views) Get(uid string) *View {
	v := vs.Plain(uid)
	if v != nil && v.cold.Load() {
		v.readAhead()
	}
	return v
}

// Plain is Get for readers that do not search: it reads nothing ahead.
func (vs *Views) Plain(uid string) *View {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v, asked := vs.held[uid]
	if asked {
		return v
	}
	if ix := vs.catalog.Get(uid); ix != nil {
		var err error
		take := ix.ReadView
		if vs.stored {
			take = ix.PlainView
		}
		if v, err = take(); err != nil {
			vs.errs[uid] = err
		}
	}
	vs.held[uid] = v
	return v
}

// Find returns the view of an index without read-ahead. It distinguishes an index that does not exist (nil) from one that
// cannot be opened (an error).
func (vs *Views) Find(uid string) (*View, error) {
	if v := vs.Plain(uid); v != nil {
		return v, nil
	}
	vs.mu.Lock()
	err := vs.errs[uid]
	vs.mu.Unlock()
	if err == nil && vs.catalog.Damaged(uid) {
		err = vs.catalog.Missing(uid)
	}
	return nil, err
}

// Missing returns the error of an index that Get does not give: see Catalog.Missing.
func (vs *Views) Missing(uid string) *apierr.Error {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if err := vs.errs[uid]; err != nil {
		return apierr.From(err)
	}
	return vs.catalog.Missing(uid)
}

// Release gives all views back.
func (vs *Views) Release() {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for _, v := range vs.held {
		if v != nil {
			v.Release()
		}
	}
	clear(vs.held)
	clear(vs.errs)
}
