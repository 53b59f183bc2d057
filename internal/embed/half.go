package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"svc/internal/apierr"
	"svc/internal/jsontext"
	"svc/internal/settings"
	"svc/internal/template"
)

// half embeds documents or queries; most embedders are the same for both.
type half struct {
	source     source
	dimensions int // 0 until they are inferred
	identity   string
	template   *template.Template // nil where there are fragments
	maxBytes   int
	indexing   []fragment // by name
	search     []fragment // by name
	fragments  bool
}

type fragment struct {
	name  string
	value *template.JSON
}

// openHalf opens one of the two embedders of a composite one, or the only one.
func (p *Pool) openHalf(cfg *settings.Embedder, dimensions int) (*half, error) {
	cfg = cfg.Complete()
	h := &half{dimensions: dimensions, fragments: len(cfg.IndexingFragments)+len(cfg.SearchFragments) > 0}
	of, ok := generators[cfg.Source]
	if !ok {
		return nil, apierr.New(failure, "bug: an embedder of the source %q cannot compute vectors.", cfg.Source)
	}
	var err error
	if h.source, err = of.open(p, cfg); err != nil {
		return nil, err
	}
	if dimensions == 0 {
		if h.dimensions = cfg.Dimensions; h.dimensions == 0 && of.dimensions != nil {
			h.dimensions = of.dimensions(cfg)
		}
	}
	if h.identity, err = identify(cfg); err != nil {
		return nil, err
	}
	if h.fragments {
		if h.indexing, err = readFragments(cfg.IndexingFragments); err == nil {
			h.search, err = readFragments(cfg.SearchFragments)
		}
		return h, err
	}
	if h.template, err = template.Parse(template.Work{}, *cfg.DocumentTemplate); err != nil {
		return nil, userError("the `documentTemplate` of the embedder is not a template: %v.", err)
	}
	if cfg.DocumentTemplateMaxBytes != nil {
		h.maxBytes = *cfg.DocumentTemplateMaxBytes
	}
	return h, nil
}

// identify returns a text that two configurations share only if they make the same vectors of the same queries.
func identify(cfg *settings.Embedder) (string, error) {
	c := *cfg
	c.Distribution, c.BinaryQuantized, c.HalfPrecision = nil, nil, nil
	c.DocumentTemplate, c.DocumentTemplateMaxBytes, c.IndexingFragments = nil, nil, nil
	b, err := json.Marshal(&c)
	if err != nil {
		return "", fmt.Errorf("cannot identify an embedder: %w", err)
	}
	return string(b), nil
}

// readFragments parses the templates of fragments, in the order of names.
func readFragments(values map[string]json.RawMessage) ([]fragment, error) {
	var list []fragment
	for name, raw := range values {
		var content struct{ Value json.RawMessage }
		err := json.Unmarshal(raw, &content)
		f := fragment{name: name}
		if err == nil {
			f.value, err = template.ParseJSON(template.Work{}, content.Value)
		}
		if err != nil {
			return nil, userError("the fragment `%s` of the embedder is not a template: %v.", name, err)
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b fragment) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return list, nil
}

// call embeds at most a group of inputs, and checks the vectors.
func (h *half) call(ctx context.Context, inputs []string, dimensions int, stats *Stats) ([][]float32, error) {
	vectors, err := h.source.embed(ctx, inputs, stats)
	if err != nil {
		return nil, err
	}
	for _, v := range vectors {
		if dimensions > 0 && len(v) != dimensions {
			return nil, &callError{final: true, party: userFault,
				reason: fmt.Sprintf("the source returned a vector of %d dimensions, but the embedder has %d: set its `dimensions` to %d, or choose another model.", len(v), dimensions, len(v))}
		}
	}
	return vectors, nil
}

// infer finds out the dimensions.
func (h *half) infer(ctx context.Context, stats *Stats) error {
	if h.dimensions > 0 {
		return nil
	}
	vectors, err := h.call(ctx, []string{"test"}, 0, stats)
	if err != nil {
		if failed, ok := err.(*callError); ok {
			failed.reason = "cannot determine the dimensions of the embedder: " + failed.reason
		}
		return err
	}
	if h.dimensions = len(vectors[0]); h.dimensions == 0 {
		return &callError{party: runtimeFault, reason: "cannot determine the dimensions of the embedder: the source returned an empty vector."}
	}
	return nil
}

// probes are texts that the halves of a composite embedder must embed alike.
var probes = []string{"test", "a brave dog", "This is a sample text. It is meant to compare similarity."}

// maxDistance is the maximum distance, as (1 − cosine)/2, of the two vectors of a probe.
const maxDistance = 0.01

// compare checks that the halves of a composite embedder make vectors of the same kind.
func compare(ctx context.Context, a, b *half, stats *Stats) error {
	if a.dimensions != b.dimensions {
		return &callError{party: userFault, reason: fmt.Sprintf(
			"indexingEmbedder has vectors of %d dimensions, but searchEmbedder of %d: they must use the same model.", a.dimensions, b.dimensions)}
	}
	if a.fragments || b.fragments {
		return nil // they need not take plain texts
	}
	var vectors [2][][]float32
	for i, h := range []*half{a, b} {
		for chunk := range slices.Chunk(probes, h.source.group()) {
			made, err := h.call(ctx, chunk, h.dimensions, stats)
			if err != nil {
				return err
			}
			vectors[i] = append(vectors[i], made...)
		}
	}
	for i, text := range probes {
		if d := distance(vectors[0][i], vectors[1][i]); d > maxDistance {
			return &callError{party: userFault, reason: fmt.Sprintf(
				"indexingEmbedder and searchEmbedder must use the same model, but their vectors of %q differ: their distance is %.4f, and may be %g.", text, d, maxDistance)}
		}
	}
	return nil
}

// distance is half of one minus the cosine: 0 for the same direction, 1 for the opposite one.
func distance(a, b []float32) float64 {
	var dot, x, y float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		x += float64(a[i]) * float64(a[i])
		y += float64(b[i]) * float64(b[i])
	}
	if x*y == 0 {
		return 0
	}
	return (1 - dot/math.Sqrt(x*y)) / 2
}

// queryInput returns the input of a query. The error is an *apierr.Error, or the one that ended work.
func (h *half) queryInput(work template.Work, q Query) (string, error) {
	if !h.fragments {
		switch {
		case q.Media != nil:
			return "", userError("the embedder has no searchFragments, so it cannot use `media`.")
		case q.Q == nil:
			return "", userError("there is no `q` to embed.")
		}
		return *q.Q, nil
	}
	var variables []template.Variable
	if q.Q != nil {
		variables = append(variables, template.Variable{Name: "q", Value: jsontext.AppendQuoted(nil, *q.Q)})
	}
	if q.Media != nil {
		var compact bytes.Buffer
		if err := json.Compact(&compact, q.Media); err != nil {
			return "", userError("`media` is not JSON: %v.", err)
		}
		variables = append(variables, template.Variable{Name: "media", Value: compact.Bytes()})
	}
	matched, input, reason := "", "", ""
	for _, f := range h.search {
		rendered, err := f.value.Render(work, variables...)
		switch {
		case err != nil && !errors.As(err, new(*template.RenderError)):
			return "", err
		case err != nil && reason == "":
			reason = fmt.Sprintf(": `%s` does not, because %v", f.name, err)
		case err != nil:
		case matched != "":
			return "", userError("the query fits more than one of the searchFragments of the embedder, such as `%s` and `%s`: it must fit exactly one.", matched, f.name)
		default:
			matched, input = f.name, string(rendered)
		}
	}
	if matched == "" {
		return "", userError("none of the searchFragments of the embedder fits the query%s.", reason)
	}
	return input, nil
}
