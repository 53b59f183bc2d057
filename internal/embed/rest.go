package embed

import (
	"context"

	"svc/internal/jsontext"
	"svc/internal/restform"
	"svc/internal/settings"
)

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
