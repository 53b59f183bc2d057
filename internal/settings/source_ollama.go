package settings

import (
	"strings"

	"svc/internal/apierr"
)

// Ollama is the source of a server that runs models.
const Ollama = "ollama"

var ollamaSource = embedderSource{
	name:  Ollama,
	needs: []string{"model"},
	takes: []string{"dimensions", "apiKey", "url", "documentTemplate", "documentTemplateMaxBytes"},
	valid: func(e *Embedder, path string) error {
		if e.URL != "" && !strings.HasSuffix(e.URL, "/api/embed") && !strings.HasSuffix(e.URL, "/api/embeddings") {
			return apierr.New(embeddingError, "`%s.url` must end in /api/embed or /api/embeddings.", path)
		}
		return nil
	},
}
