package embed

import (
	"testing"

	"svc/internal/settings"
)

// TestEverySourceHasAGenerator checks that exactly the sources that generate embeddings have a generator.
func TestEverySourceHasAGenerator(t *testing.T) {
	for _, name := range settings.Sources() {
		e := settings.Embedder{Source: name}
		g, ok := generators[name]
		if generates := e.Generates() && !e.Composite(); ok != generates || ok && g.open == nil {
			t.Errorf("%s: has a generator: %v, generates embeddings by its settings: %v", name, ok, generates)
		}
	}
	if len(generators) >= len(settings.Sources()) {
		t.Errorf("%d generators of %d sources", len(generators), len(settings.Sources()))
	}
}
