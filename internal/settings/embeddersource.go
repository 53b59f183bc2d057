package settings

import "slices"

// embedderSource is what settings know of a source of embeddings: a row of sources, in a file source_*.go of its own. The package embed
// has a row for each source that generates embeddings, too.
type embedderSource struct {
	name   string
	needs  []string // fields that an embedder of the source must have
	takes  []string // fields that it may have; binaryQuantized, halfPrecision and distribution are for all sources
	origin string   // the address that requests go to if no url is set

	provided  bool // vectors come with documents, and are not generated
	composite bool // other embedders generate the vectors

	// The rest may be nil.
	complete   func(e *Embedder)                                 // fills in the defaults
	modelFault func(model string, dimensions int) string         // the error of a model; "": none
	payload    func(v value, sent map[string]value) error        // checks a payload by itself
	valid      func(e *Embedder, path string) error              // checks an embedder after a merge
	work       func(was, is *Embedder) (w VectorWork, asks bool) // see EmbedderWork; nil: modelWork
}

// sources are in the order in which errors name them.
var sources = []*embedderSource{&openAISource, &huggingFaceSource, &ollamaSource, &userProvidedSource, &restSource, &compositeSource}

// sourceOf returns the row of a source, or nil.
func sourceOf(name string) *embedderSource {
	i := slices.IndexFunc(sources, func(s *embedderSource) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return sources[i]
}

// Sources returns the names of all sources.
func Sources() []string {
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.name
	}
	return names
}

// use says whether a source takes a field.
type use uint8

const (
	refused use = iota
	taken
	needed
)

// use returns how the source uses one of embedderFields.
func (s *embedderSource) use(field string) use {
	switch {
	case slices.Contains(s.needs, field):
		return needed
	case slices.Contains(s.takes, field):
		return taken
	}
	return refused
}

// whole reports whether an embedder of the source cannot be a part of a composite one.
func (s *embedderSource) whole() bool { return s.provided || s.composite }

// Generates reports whether vectors are generated. With the source userProvided, they only come with documents.
func (e *Embedder) Generates() bool { return !sourceOf(e.Source).provided }

// Composite reports whether other embedders generate the vectors: SearchEmbedder for queries, IndexingEmbedder for documents.
func (e *Embedder) Composite() bool { return sourceOf(e.Source).composite }

func (e *Embedder) hasFragments() bool { return len(e.IndexingFragments)+len(e.SearchFragments) > 0 }
