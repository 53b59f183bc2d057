package settings

import (
	"fmt"
	"slices"
	"strings"
)

// OpenAI is the source of an API that others imitate.
const OpenAI = "openAi"

const defaultOpenAIModel = "text-embedding-3-small"

var openAISource = embedderSource{
	name:   OpenAI,
	takes:  []string{"model", "dimensions", "apiKey", "url", "documentTemplate", "documentTemplateMaxBytes"},
	origin: OpenAIURL,
	complete: func(e *Embedder) {
		if e.Model == "" {
			e.Model = defaultOpenAIModel
		}
	},
	modelFault: openAIModelFault,
	work: func(was, is *Embedder) (VectorWork, bool) {
		// The URL is where the same model is reached.
		if was.Model != is.Model || was.Dimensions != is.Dimensions {
			return RemakeVectors, true
		}
		return textWork(was, is), false
	},
}

// OpenAIModel is a model that the source openAi knows.
type OpenAIModel struct {
	Name       string
	Dimensions int  // of its vectors
	Fewer      bool // fewer dimensions may be asked for
	// Its similarities are spread like this.
	Mean, Sigma float32
}

var openAIModels = []OpenAIModel{
	{"text-embedding-3-small", 1536, true, .75, .10},
	{"text-embedding-3-large", 3072, true, .70, .10},
	{"text-embedding-ada-002", 1536, false, .90, .08},
}

// FindOpenAIModel returns a model by its name.
func FindOpenAIModel(name string) (OpenAIModel, bool) {
	i := slices.IndexFunc(openAIModels, func(m OpenAIModel) bool { return m.Name == name })
	if i < 0 {
		return OpenAIModel{}, false
	}
	return openAIModels[i], true
}

// openAIModelFault returns the error of a model ("": the default) with a number of dimensions (0: its own).
func openAIModelFault(model string, dimensions int) string {
	if model == "" {
		model = defaultOpenAIModel
	}
	var names []string
	for _, m := range openAIModels {
		names = append(names, m.Name)
		switch {
		case m.Name != model || dimensions == 0 || dimensions == m.Dimensions:
		case !m.Fewer:
			return fmt.Sprintf("cannot have %d dimensions: the model %s always has %d", dimensions, model, m.Dimensions)
		case dimensions > m.Dimensions:
			return fmt.Sprintf("cannot have %d dimensions: the model %s has at most %d", dimensions, model, m.Dimensions)
		}
	}
	if !slices.Contains(names, model) {
		return fmt.Sprintf("cannot use the model %q: the source openAi knows %s", model, strings.Join(names, ", "))
	}
	return ""
}
