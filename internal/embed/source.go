package embed

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"svc/internal/jsontext"
	"svc/internal/restform"
	"svc/internal/settings"
)

// source makes vectors.
type source interface {
	// group is how many inputs one call of embed takes.
	group() int
	// local reports whether embed computes here, instead of waiting for others.
	local() bool
	// embed returns the vectors of inputs, between 1 and group of them: texts, or JSON values where the embedder
	// has fragments. The error is a *callError, or that of ctx if it was cancelled.
	embed(ctx context.Context, inputs []string, stats *Stats) ([][]float32, error)
}

// textsInCall is how many inputs a call carries where the provider takes several.
const textsInCall = 10

// badAnswer is the error of an answer that was understood, but is not what was asked for. Asking again would not change it.
func badAnswer(e *endpoint, err error) *callError {
	return &callError{final: true, party: runtimeFault, reason: fmt.Sprintf("the answer of %s cannot be used: %s.", e.name(), e.redact(err.Error())), brief: unusable}
}

// rest is a provider that the user describes.
type rest struct {
	*endpoint
	request   *restform.Request
	response  *restform.Response
	fragments bool
}

func (p *Pool) openRest(cfg *settings.Embedder) (source, error) {
	s := rest{fragments: len(cfg.IndexingFragments)+len(cfg.SearchFragments) > 0}
	placeholder := restform.Text
	if s.fragments {
		placeholder = restform.Fragment
	}
	var err error
	if s.request, err = restform.ParseRequest(cfg.Request, placeholder); err != nil {
		return nil, userError("the `request` of the embedder %v.", err)
	}
	if s.response, err = restform.ParseResponse(cfg.Response); err != nil {
		return nil, userError("the `response` of the embedder %v.", err)
	}
	s.endpoint, err = p.caller.endpoint(cfg.URL, cfg.APIKey, cfg.Headers)
	return s, err
}

func (s rest) local() bool { return false }

func (s rest) group() int {
	if s.request.Batch() {
		return textsInCall
	}
	return 1
}

func (s rest) embed(ctx context.Context, inputs []string, stats *Stats) ([][]float32, error) {
	values := make([][]byte, len(inputs))
	for i, input := range inputs {
		if s.fragments {
			values[i] = []byte(input)
		} else {
			values[i] = jsontext.AppendQuoted(nil, input)
		}
	}
	answer, err := s.post(ctx, s.request.Body(values...), stats)
	if err != nil {
		return nil, err
	}
	vectors, err := s.response.Vectors(answer, len(inputs))
	if err != nil {
		return nil, badAnswer(s.endpoint, err)
	}
	return vectors, nil
}

// form is the form of an API that is known beforehand.
func form(template string) *restform.Response {
	r, err := restform.ParseResponse([]byte(template))
	if err != nil {
		panic("embed: " + err.Error())
	}
	return r
}

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

const defaultOllamaURL = "http://localhost:11434/api/embeddings"

func (p *Pool) openOllama(cfg *settings.Embedder) (source, error) {
	address := cfg.URL
	if address == "" {
		address = p.o.OllamaURL
	}
	if address == "" {
		address = defaultOllamaURL
	}
	s := ollama{model: cfg.Model, many: strings.HasSuffix(address, "/api/embed")}
	if !s.many && !strings.HasSuffix(address, "/api/embeddings") {
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
