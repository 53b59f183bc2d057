package settings

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// VectorWork says what a change of settings does to the vectors that an embedder has made. Vectors that came with documents and are
// not regenerated always stay.
type VectorWork uint8

const (
	KeepVectors   VectorWork = iota
	RenderVectors            // vectors of documents whose rendered text changes are regenerated
	RemakeVectors            // all are
)

// EmbedderWork compares two configurations of an embedder. asks says that earlier answers of the provider (the length of vectors, the
// agreement of the halves of a composite embedder) may no longer hold.
func EmbedderWork(was, is *Embedder) (work VectorWork, asks bool) {
	was, is = was.Complete(), is.Complete()
	if was.Source != is.Source {
		return RemakeVectors, true
	}
	if was.Composite() {
		work, asks = EmbedderWork(was.IndexingEmbedder, is.IndexingEmbedder)
		searchWork, searchAsks := EmbedderWork(was.SearchEmbedder, is.SearchEmbedder)
		// Queries alone are embedded otherwise: documents stay, but both halves must still agree.
		return work, asks || searchAsks || searchWork == RemakeVectors
	}
	if of := sourceOf(was.Source); of.work != nil {
		return of.work(was, is)
	}
	return modelWork(was, is)
}

// modelWork is EmbedderWork for sources where every option that affects the generation of vectors counts.
func modelWork(was, is *Embedder) (work VectorWork, asks bool) {
	if was.Model != is.Model || was.Revision != is.Revision || was.Pooling != is.Pooling || was.URL != is.URL ||
		!sameJSON(was.Request, is.Request) || !sameJSON(was.Response, is.Response) ||
		(len(was.IndexingFragments) > 0) != (len(is.IndexingFragments) > 0) {
		return RemakeVectors, true
	}
	return textWork(was, is), was.Dimensions != is.Dimensions
}

// textWork is the part of EmbedderWork that depends on what is embedded of a document.
func textWork(was, is *Embedder) VectorWork {
	if !same(was.DocumentTemplate, is.DocumentTemplate) || !same(was.DocumentTemplateMaxBytes, is.DocumentTemplateMaxBytes) ||
		!maps.EqualFunc(was.IndexingFragments, is.IndexingFragments, sameJSON) {
		return RenderVectors
	}
	return KeepVectors
}

func same[T comparable](a, b *T) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// sameJSON compares values, not how they are spaced or their members ordered.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Equal reports whether two configurations are the same.
func (e *Embedder) Equal(other *Embedder) bool {
	return e == other || bytes.Equal(encode(e), encode(other))
}

// IsBinary reports whether only bits are kept of the vectors.
func (e *Embedder) IsBinary() bool { return isTrue(e.BinaryQuantized) }

// IsHalf reports whether the vectors are stored in half precision. binaryQuantized takes precedence.
func (e *Embedder) IsHalf() bool { return isTrue(e.HalfPrecision) && !e.IsBinary() }

// FragmentNames returns the names of the indexing fragments, sorted. For a composite embedder, they are those of the indexing half.
func (e *Embedder) FragmentNames() []string {
	if e.IndexingEmbedder != nil {
		e = e.IndexingEmbedder
	}
	return sortedKeys(e.IndexingFragments)
}

// SameSearchable reports whether two settings search the same attributes, regardless of order and groups.
func SameSearchable(a, b *Settings) bool {
	return (a.SearchableAttributes == nil) == (b.SearchableAttributes == nil) &&
		slices.Equal(sortedSet(searchableNames(a.SearchableAttributes)), sortedSet(searchableNames(b.SearchableAttributes)))
}

// SearchesWhole reports whether searchableAttributes contains a field by its own name, or all fields. It does not if only parents or
// nested fields are listed. Templates use it for top-level fields.
func (s *Settings) SearchesWhole(name string) bool {
	return s.SearchableAttributes == nil ||
		slices.ContainsFunc(s.SearchableAttributes, func(entry SearchableEntry) bool { return slices.Contains(entry.Names, name) })
}
