package embed

import (
	"svc/internal/settings"
)

type models struct{ pool *Pool }

func (m *models) close() error { return nil }

func (p *Pool) openHuggingFace(cfg *settings.Embedder) (source, error) {
	return nil, userError("the model %q is not there.", cfg.Model)
}
