package embed

import (
	"testing"

	"svc/internal/settings"
)

// TestEverySourceHasAGenerator: a source of the settings that generates embeddings has a row here, and no other has.
func TestEverySourceHasAGenerator(t *testing.T) {
	for _, name := range settings.Sources() {
		e := settings.Embedder{Source: name}
		g, ok := generators[name]
		if generates := e.Generates() && !e.Composite(); ok != generates || ok && g.open == nil {
			t.Errorf("%s: generators has a row: %v; the settings say that it generates embeddings: %v", name, ok, generates)
		}
	}
	if len(generators) >= len(settings.Sources()) {
		t.Errorf("%d generators of %d sources", len(generators), len(settings.Sources()))
	}
}
