package embed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"svc/internal/jsontext"
	"svc/internal/settings"
)

var (
	ollamaOne  = form(`{"embedding": "{{embedding}}"}`)
	ollamaMany = form(`{"embeddings": ["{{embedding}}", "{{..}}"]}`)
)

// ollama is a runner of local models. Its newer API takes several texts a call.
type ollama struct {
	*endpoint
	model string
	many  bool
}

const defaultOllamaURL = "http://localhost:11434" + ollamaEmbeddings

// The ends of URLs of ollama: one text in a call, and several.
const (
	ollamaEmbeddings = "/api/embeddings"
	ollamaEmbed      = "/api/embed"
)

// OllamaURL reports whether embedders can call ollama at an address.
func OllamaURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") &&
		(strings.HasSuffix(address, ollamaEmbed) || strings.HasSuffix(address, ollamaEmbeddings))
}

// openOllama prepares calls. The end of the URL decides which of two forms requests have.
func (p *Pool) openOllama(cfg *settings.Embedder) (source, error) {
	address := cfg.URL
	if address == "" {
		address = p.o.OllamaURL
	}
	if address == "" {
		address = defaultOllamaURL
	}
	s := ollama{model: cfg.Model, many: strings.HasSuffix(address, ollamaEmbed)}
	if !s.many && !strings.HasSuffix(address, ollamaEmbeddings) {
		return nil, userError("the URL of an ollama embedder must end in /api/embed or /api/embeddings.")
	}
	var err error
	s.endpoint, err = p.caller.endpoint(address, cfg.APIKey, nil)
	return s, err
}

func (s ollama) local() bool { return false }

func (s ollama) group() int {
	if s.many {
		return textsInCall
	}
	return 1
}

func (s ollama) embed(ctx context.Context, inputs []string, stats *Stats) ([][]float32, error) {
	body := jsontext.AppendQuoted([]byte(`{"model":`), s.model)
	response := ollamaOne
	if s.many {
		response = ollamaMany
		body = jsontext.AppendStrings(append(body, `,"input":`...), inputs)
	} else {
		body = jsontext.AppendQuoted(append(body, `,"prompt":`...), inputs[0])
	}
	answer, err := s.post(ctx, append(body, '}'), stats)
	if failed := new(callError); errors.As(err, &failed) && failed.status == 404 {
		failed.reason = fmt.Sprintf("the model %q is not there: pull it with `ollama pull`. %s", s.model, failed.reason)
	}
	if err != nil {
		return nil, err
	}
	vectors, err := response.Vectors(answer, len(inputs))
	if err != nil {
		return nil, badAnswer(s.endpoint, err)
	}
	return vectors, nil
}
