package embed

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"svc/internal/apierr"
	"svc/internal/template"
)

// Input is what is embedded of a document. Equal inputs give equal vectors.
type Input struct {
	Text     string // the rendered document template, or the rendered fragment as JSON
	Fragment string // name of the indexing fragment; "" when the embedder has none
}

// Render makes the inputs of a document, a JSON object: one by the template, or one for each fragment that can be rendered, by name.
// searchable says whether a top-level field is searched. A template that does not fit the document is an *apierr.Error
// invalid_document_fields. With IgnoreTemplates it makes no input and no error. Errors that end work are returned, too.
func (e *Embedder) Render(work template.Work, doc []byte, searchable func(name string) bool) ([]Input, error) {
	h := e.indexing
	if h == nil {
		return nil, nil
	}
	if h.fragments {
		var inputs []Input
		for _, f := range h.indexing {
			switch rendered, err := f.value.RenderDocument(work, doc); {
			case err == nil:
				inputs = append(inputs, Input{string(rendered), f.name})
			case !errors.As(err, new(*template.RenderError)):
				return nil, err
			}
		}
		return inputs, nil
	}
	text, err := h.template.Render(work, doc, searchable, h.maxBytes)
	switch {
	case err == nil:
		return []Input{{Text: text}}, nil
	case !errors.As(err, new(*template.RenderError)):
		return nil, err
	case e.pool.o.Failures.IgnoreTemplates:
		e.pool.log.Warn("a document has no vector: its template cannot be rendered", slog.Any("error", err))
		return nil, nil
	}
	return nil, apierr.New("invalid_document_fields", "user error: the documentTemplate of an embedder cannot be rendered for a document: %v. Change the template, for example with `{%% if … %%}` around fields that may be missing.", err)
}

// InputsError is the failure of a call for some of the inputs.
type InputsError struct {
	From, To int // the inputs from the first up to the second, which is not one of them
	Err      error
}

func (e *InputsError) Error() string { return e.Err.Error() }
func (e *InputsError) Unwrap() error { return e.Err }

// EmbedDocuments returns the vector of each input. It makes calls in groups and concurrently, and counts them in stats (not nil).
// With IgnoreProviders, the inputs of a failed call have nil vectors. Otherwise the first failure, an *apierr.Error in an
// *InputsError, ends it. Errors of a cancelled ctx are returned unchanged.
func (e *Embedder) EmbedDocuments(ctx context.Context, inputs []Input, stats *Stats) ([][]float32, error) {
	vectors := make([][]float32, len(inputs))
	h := e.indexing
	if h == nil {
		return vectors, nil
	}
	slots := e.slots
	if h.source.local() {
		slots = e.pool.local
	}
	g, calls := errgroup.WithContext(ctx)
	g.SetLimit(cap(slots))
	for from := 0; from < len(inputs) && calls.Err() == nil; from += h.source.group() {
		to := min(from+h.source.group(), len(inputs))
		g.Go(func() error {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-calls.Done():
				return calls.Err()
			}
			texts := make([]string, to-from)
			for i := range texts {
				texts[i] = inputs[from+i].Text
			}
			made, err := h.call(calls, texts, e.dimensions, stats)
			if failed := new(callError); errors.As(err, &failed) && e.pool.o.Failures.IgnoreProviders {
				e.pool.log.Warn("documents have no vectors: the embedder failed", slog.Int("texts", len(texts)), slog.Any("error", err))
				return nil
			}
			if err != nil {
				return &InputsError{from, to, users(err)}
			}
			copy(vectors[from:to], made)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return vectors, ctx.Err()
}
