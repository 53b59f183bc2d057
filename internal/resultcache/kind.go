package resultcache

import "math"

// Kind is a kind of cached result. V is the type of its values. A package declares each of its kinds once, as a variable:
//
//	var phraseRows = resultcache.NewKind[*PhraseSegment]("rows of a phrase")
//
// Results of different kinds never share an entry, whatever their keys are, so a key only has to identify a result within its kind.
// The table in docs/architecture/caching.md has a row for each kind. A test of internal/lint names those without one.
type Kind[V any] struct{ number uint8 }

// names has the names of all kinds, by number.
var names []string

// NewKind adds a kind. It is called while packages are initialized, so numbers differ from build to build; nothing outlives the process.
func NewKind[V any](name string) Kind[V] {
	for _, n := range names {
		if n == name {
			panic("resultcache: two kinds are named " + name)
		}
	}
	if len(names) > math.MaxUint8 {
		panic("resultcache: there are more kinds than numbers for them")
	}
	names = append(names, name)
	return Kind[V]{uint8(len(names) - 1)}
}

// Get returns the value of a key. ok is false if there is none.
func (k Kind[V]) Get(f *Scope, key []byte) (value V, ok bool) {
	value, ok = f.get(k.number, key).(V)
	return value, ok
}

// Put caches a value and replaces the previous one of the key. bytes estimates its size on the heap. The value must not be modified
// afterwards.
func (k Kind[V]) Put(f *Scope, key []byte, value V, bytes int) {
	f.put(k.number, key, value, bytes, false)
}

// PutSpare is Put for a value that is quickly computed again from other cached values. All such values together take at most a quarter of
// the budget. The least recently used ones are evicted first.
func (k Kind[V]) PutSpare(f *Scope, key []byte, value V, bytes int) {
	f.put(k.number, key, value, bytes, true)
}

// Admit implements second-hit admission: it reports whether it was called with the same key recently. A search that can do without an
// expensive value computes it only if Admit returns true.
func (k Kind[V]) Admit(f *Scope, key []byte) bool { return f.admit(k.number, key) }
