package embed

import (
	"context"
	"fmt"

	"svc/internal/restform"
	"svc/internal/settings"
)

// generator describes a source of embeddings: a row of generators. The code of the source is in its own file. The package settings
// has a row for it, too.
type generator struct {
	open func(p *Pool, cfg *settings.Embedder) (source, error) // cfg is complete

	// The rest may be nil. They get complete configurations.
	dimensions   func(cfg *settings.Embedder) int                     // of vectors; 0: the provider has to be asked
	distribution func(cfg *settings.Embedder) (d [2]float32, ok bool) // how similarities usually spread: mean and sigma
}

// generators has a row for each source of the settings that generates embeddings.
var generators = map[string]generator{
	settings.OpenAI:      {open: (*Pool).openOpenAI, dimensions: openAIDimensions, distribution: openAIDistribution},
	settings.HuggingFace: {open: (*Pool).openHuggingFace, distribution: huggingFaceDistribution},
	settings.Ollama:      {open: (*Pool).openOllama},
	settings.Rest:        {open: (*Pool).openRest},
}

// source makes vectors.
type source interface {
	// group is how many inputs one call of embed takes.
	group() int
	// local reports whether embed computes here, instead of waiting for others.
	local() bool
	// embed returns the vectors of at least one and at most group inputs: texts, or JSON values if the embedder has fragments. The
	// error is a *callError, or that of ctx if it was cancelled.
	embed(ctx context.Context, inputs []string, stats *Stats) ([][]float32, error)
}

// textsInCall is how many inputs a call has if the provider accepts several.
const textsInCall = 10

// badAnswer returns the error of a response that could be read but does not fit the request. A retry would not change it.
func badAnswer(e *endpoint, err error) *callError {
	return &callError{final: true, party: runtimeFault, reason: fmt.Sprintf("the answer of %s cannot be used: %s.", e.name(), e.redact(err.Error())), brief: unusable}
}

// form is the form of an API that is known beforehand.
func form(template string) *restform.Response {
	r, err := restform.ParseResponse([]byte(template))
	if err != nil {
		panic("embed: " + err.Error())
	}
	return r
}
