package search

import (
	"fmt"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/selection"
	"svc/segment"
)

// Foreign gives a request access to the indexes that foreign keys lead to. It must be held until the response is written.
type Foreign struct {
	Views   *index.Views
	MayRead func(uid string) bool // says which indexes the caller may read; nil: all
}

// Release gives the views back. A nil Foreign has none.
func (f *Foreign) Release() {
	if f != nil {
		f.Views.Release()
	}
}

// readable reports whether the caller may read an index, and know whether it exists.
func (f *Foreign) readable(uid string) bool { return f.MayRead == nil || f.MayRead(uid) }

// view returns the view of an index that a foreign key of v leads to. It returns nil if there is no such index, and an error if the
// index cannot be opened.
func (f *Foreign) view(v *index.View, uid string) (*index.View, error) {
	if uid == v.UID {
		return v, nil
	}
	return f.Views.Find(uid)
}

// open lets filters on v use foreign indexes, unless f is nil. An index that the caller may not read looks like a missing one.
func (f *Foreign) open(env *filter.Env, v *index.View) {
	if f == nil {
		return
	}
	env.ForeignKeys = v.Settings.ForeignKeys
	env.Foreign = func(uid string) (*filter.Foreign, error) {
		if !f.readable(uid) {
			return nil, nil
		}
		target, err := f.view(v, uid)
		if target == nil || err != nil {
			return nil, err
		}
		return &filter.Foreign{Fields: target.Fields, Segments: target.Segments, Embedders: target.FilterEmbedders()}, nil
	}
}

// hydration puts foreign documents in the place of their ids.
type hydration struct {
	keys []hydratedKey
	at   map[string]*foreignDocuments // by path, the same as keys

	meter budget.Meter // of the answer into which documents are inserted
}

// hydratedKey is a path, or its rest further down in a document.
type hydratedKey struct {
	path string
	docs *foreignDocuments
}

// foreignDocuments are the documents of one foreign index as hits show them.
type foreignDocuments struct {
	view  *index.View
	shown selection.Selection
	known map[string][]byte // by id; hits of a page name few documents many times
	doc   []byte
	meter *budget.Meter

	leaves bool            // ids are left: another instance inserts documents
	asked  map[string]bool // ids are recorded here, and left; nil: they are not recorded
	only   bool            // known has everything that can be shown
}

// hydration returns nil if there is nothing to do: f is nil, or no foreign key leads to an index that the caller may read. A foreign
// index that is missing (index_not_found) or cannot be opened is an error, whatever the search finds.
func (f *Foreign) hydration(v *index.View) (*hydration, error) {
	if f == nil || len(v.Settings.ForeignKeys) == 0 {
		return nil, nil
	}
	h := &hydration{at: make(map[string]*foreignDocuments)}
	indexes := make(map[string]*foreignDocuments)
	for _, key := range v.Settings.ForeignKeys {
		uid := key.ForeignIndexUID
		if !f.readable(uid) || h.at[key.FieldName] != nil {
			continue
		}
		if indexes[uid] == nil {
			target, err := f.view(v, uid)
			if err != nil {
				return nil, fmt.Errorf("cannot read the foreign index %s: %w", uid, err)
			}
			if target == nil {
				return nil, apierr.New("index_not_found", "There is no index `%s`, the target of the foreign key `%s` of the index `%s`. Create the index, or change foreignKeys.",
					uid, key.FieldName, v.UID)
			}
			indexes[uid] = &foreignDocuments{view: target, meter: &h.meter, shown: selection.Of(target.Settings.DisplayedAttributes), known: make(map[string][]byte)}
		}
		h.at[key.FieldName] = indexes[uid]
		h.keys = append(h.keys, hydratedKey{key.FieldName, indexes[uid]})
	}
	if len(h.keys) == 0 {
		return nil, nil
	}
	return h, nil
}

// appendObject appends a compact JSON object with the ids in foreign fields replaced. Everything else is copied.
func (h *hydration) appendObject(dst, object []byte) ([]byte, error) {
	return appendHydrated(dst, object, h.keys)
}

// appendHydrated replaces the ids at the ends of keys, paths that start in the object. It follows a path through objects and through
// each element of arrays. An object at the end of a path is not an id and is left alone.
func appendHydrated(dst, object []byte, keys []hydratedKey) ([]byte, error) {
	var buf [64]byte
	dst = append(dst, '{')
	first := true
	err := jsontext.EachMember(object, func(key, value []byte) error {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(dst, key...), ':')
		here, below := keysBelow(keys, jsontext.AppendUnquoted(buf[:0], key))
		var err error
		dst, err = appendHydratedValue(dst, value, here, below)
		return err
	})
	return append(dst, '}'), err
}

// appendHydratedValue appends a value, with documents of another index instead of ids. here has those for the value itself, below
// those for its members.
func appendHydratedValue(dst, value []byte, here *foreignDocuments, below []hydratedKey) ([]byte, error) {
	switch {
	case here == nil && len(below) == 0:
	case value[0] == '{':
		if len(below) > 0 {
			return appendHydrated(dst, value, below)
		}
	case value[0] == '[':
		return jsontext.AppendElements(dst, value, func(dst, element []byte) ([]byte, error) {
			return appendHydratedValue(dst, element, here, below)
		})
	case here != nil:
		if dst, found, err := here.append(dst, value); found || err != nil {
			return dst, err
		}
	}
	return append(dst, value...), nil
}

// keysBelow returns the rests of the keys below the member name, and the documents of the key that is the member itself.
func keysBelow(keys []hydratedKey, name []byte) (here *foreignDocuments, below []hydratedKey) {
	for _, k := range keys {
		n := len(name)
		switch {
		case len(k.path) < n || k.path[:n] != string(name):
		case len(k.path) == n:
			here = k.docs
		case k.path[n] == '.':
			below = append(below, hydratedKey{k.path[n+1:], k.docs})
		}
	}
	return here, below
}

// appendValueAt appends the foreign document that a scalar at a path names. found is false if it names none.
func (h *hydration) appendValueAt(dst, path, value []byte) (_ []byte, found bool, _ error) {
	docs := h.at[string(path)]
	if docs == nil {
		return dst, false, nil
	}
	return docs.append(dst, value)
}

// append appends the document that a scalar names, or {} if the index has none with this id. found is false if the scalar is not an
// id.
func (d *foreignDocuments) append(dst, scalar []byte) (_ []byte, found bool, _ error) {
	id, ok := document.ValueID(scalar)
	if !ok {
		return dst, false, nil
	}
	switch {
	case d.leaves:
		return append(dst, scalar...), true, nil
	case d.asked != nil:
		d.asked[string(id)] = true
		return dst, false, nil
	}
	shown, known := d.known[string(id)]
	if !known && d.only {
		return dst, false, nil
	}
	if !known {
		var err error
		if shown, err = d.read(id); err != nil {
			return dst, false, err
		}
		d.known[string(id)] = shown
	}
	dst = append(dst, shown...)
	return dst, true, d.meter.Grown(len(dst))
}

// read returns the displayed part of a document, or {} if there is none.
func (d *foreignDocuments) read(id []byte) ([]byte, error) {
	seg, row, ok := d.view.Find(id)
	if !ok {
		return []byte("{}"), nil
	}
	var err error
	if d.doc, err = d.view.Segments[seg].AppendMembers(d.doc[:0], row, segment.Wanted{}, d.meter); err != nil {
		return nil, err
	}
	// It is kept, as many of them as there are.
	if err := d.meter.Hold(len(d.doc)); err != nil {
		return nil, err
	}
	return d.shown.Append(nil, d.doc)
}
