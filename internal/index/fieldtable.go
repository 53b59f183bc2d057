package index

import (
	"sync"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/settings"
	"svc/segment"
)

// fieldTable numbers the new fields of a batch, after those of the index. The workers of the batch share it, and cache
// look-ups.
type fieldTable struct {
	base *settings.Fields

	mu struct {
		sync.Mutex
		ids   map[string]segment.FieldID // of the new ones
		names []string                   // of the new ones, in order
		bytes int                        // of all names, those of base included; 0: not counted yet
	}
}

func newFieldTable(base *settings.Fields) *fieldTable {
	t := &fieldTable{base: base}
	t.mu.ids = make(map[string]segment.FieldID)
	return t
}

// id returns the number of a path, giving it one when it is new.
func (t *fieldTable) id(name string) (segment.FieldID, error) {
	if id, ok := t.base.ID(name); ok {
		return id, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, ok := t.mu.ids[name]; ok {
		return id, nil
	}
	n := t.base.Len() + len(t.mu.names)
	if t.mu.bytes == 0 {
		for id := range t.base.Len() {
			t.mu.bytes += len(t.base.Info(segment.FieldID(id)).Name)
		}
	}
	const code = "max_fields_limit_exceeded"
	switch {
	case n >= maxFields:
		return 0, apierr.New(code,
			"The documents have more than %d different fields, nested ones included, the maximum of an index. Use fewer field names: move the varying part into values.", maxFields)
	case len(name) > maxPathBytes:
		return 0, apierr.New(code, "A field has a name of %d bytes, with those of the objects around it; the maximum is %d. It begins with `%s`. Use shorter names.",
			len(name), maxPathBytes, document.Excerpt([]byte(name)))
	case t.mu.bytes+len(name) > maxNamesBytes:
		return 0, apierr.New(code, "The names of all fields of the index have more than %d bytes, with those of the objects around them, the maximum. Use fewer or shorter field names.",
			maxNamesBytes)
	}
	id := segment.FieldID(n)
	t.mu.ids[name] = id
	t.mu.names = append(t.mu.names, name)
	t.mu.bytes += len(name)
	return id, nil
}

// infix reports whether the column of a field gets an infix index.
func (t *fieldTable) infix(id segment.FieldID) bool {
	if n := int(id) - t.base.Len(); n >= 0 {
		info := t.base.InfoOf(t.names()[n])
		return info.Infix
	}
	return t.base.Info(id).Infix
}

// names returns the new paths.
func (t *fieldTable) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.names
}
