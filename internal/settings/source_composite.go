package settings

// Composite is the source of an embedder that has another one for queries than for documents.
const Composite = "composite"

var compositeSource = embedderSource{
	name:      Composite,
	needs:     []string{"searchEmbedder", "indexingEmbedder"},
	composite: true,
}
