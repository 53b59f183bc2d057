package settings

import (
	"fmt"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/restform"
	"svc/internal/template"
)

// embeddingError is the code of what makes an embedder unable to embed.
const embeddingError apierr.Code = "vector_embedding_error"

// openEmbedders checks a payload by itself: features, and the fields of each embedder that names its source.
func openEmbedders(v value, f Features) error {
	members, err := v.members()
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.null() {
			continue
		}
		if err := openEmbedder(m.value, f, alone); err != nil {
			return err
		}
	}
	return nil
}

func openEmbedder(v value, f Features, r role) error {
	members, err := v.members()
	if err != nil {
		return err
	}
	sent := make(map[string]value, len(members))
	for _, m := range members {
		sent[m.key] = m.value
	}
	source := ""
	if s, ok := sent["source"]; ok {
		source = OpenAI
		if !s.null() {
			source, _ = s.text()
		}
	}
	_, search := sent["searchEmbedder"]
	_, indexing := sent["indexingEmbedder"]
	if source == Composite || search || indexing {
		if err := needs(f.CompositeEmbedders, "compositeEmbedders", "`"+v.path+"`, a composite embedder,"); err != nil {
			return err
		}
	}
	// A null takes fragments away, and is what an embedder without any shows.
	has := func(name string) bool { x, ok := sent[name]; return ok && !x.null() }
	if has("searchFragments") || has("indexingFragments") {
		if err := needs(f.Multimodal, "multimodal", "`"+v.path+"`, which has fragments,"); err != nil {
			return err
		}
	}
	if source == OpenAI {
		if reason := openAIModelFault(payloadModel(sent)); reason != "" {
			return v.fail("%s.", reason)
		}
	}
	if source != "" {
		for _, field := range embedderFields {
			got, ok := sent[field.name]
			switch use := field.use[slices.Index(sources, source)]; {
			case use == '-' && ok:
				return got.fail("cannot be set for the source %s.", source)
			case use == 'M' && (!ok || got.null()):
				return v.fail("needs `%s` for the source %s.", field.name, source)
			}
		}
	} else if r != alone {
		return v.fail("needs a `source`.")
	}
	if source == Rest || source == "" {
		if err := checkRest(v, sent); err != nil {
			return err
		}
	}
	for name, part := range map[string]role{"searchEmbedder": forSearch, "indexingEmbedder": forIndexing} {
		if nested, ok := sent[name]; ok && !nested.null() {
			if err := openEmbedder(nested, f, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// validEmbedders checks all embedders after a merge.
func validEmbedders(s *Settings, code apierr.Code) error {
	if n := len(s.Embedders); n > maxEmbedders {
		return apierr.New(code, "There would be %d embedders: an index can have %d.", n, maxEmbedders)
	}
	for _, name := range sortedKeys(s.Embedders) {
		if err := validEmbedder(s.Embedders[name], ".embedders."+name, alone, code); err != nil {
			return err
		}
	}
	return nil
}

func validEmbedder(e *Embedder, path string, r role, code apierr.Code) error {
	n := slices.Index(sources, e.Source)
	for _, field := range embedderFields {
		switch set := field.set(e); {
		case field.use[n] == '-' && set:
			return apierr.New(code, "`%s.%s` cannot be set for the source %s.", path, field.name, e.Source)
		case field.use[n] == 'M' && !set:
			return apierr.New(code, "`%s` needs `%s` for the source %s.", path, field.name, e.Source)
		}
	}
	if e.DocumentTemplateMaxBytes != nil && *e.DocumentTemplateMaxBytes == 0 {
		return apierr.New(code, "`%s.documentTemplateMaxBytes` cannot be 0: it is the length at which texts are cut.", path)
	}
	if e.Source == OpenAI {
		if reason := openAIModelFault(e.Model, e.Dimensions); reason != "" {
			return apierr.New(code, "`%s` %s.", path, reason)
		}
	}
	if e.Source == Ollama && e.URL != "" && !strings.HasSuffix(e.URL, "/api/embed") && !strings.HasSuffix(e.URL, "/api/embeddings") {
		return apierr.New(embeddingError, "`%s.url` must end in /api/embed or /api/embeddings.", path)
	}
	fragments := len(e.IndexingFragments)+len(e.SearchFragments) > 0
	if e.Source == Rest {
		placeholder := restform.Text
		if fragments {
			placeholder = restform.Fragment
		}
		request, err := restform.ParseRequest(e.Request, placeholder)
		if err != nil {
			return apierr.New(embeddingError, "`%s.request` %v.", path, err)
		}
		response, err := restform.ParseResponse(e.Response)
		if err != nil {
			return apierr.New(embeddingError, "`%s.response` %v.", path, err)
		}
		if request.Batch() != response.Batch() {
			return apierr.New(embeddingError, "`%s` must repeat an item with %q in both request and response, or in neither.", path, restform.Repeat)
		}
	}
	if fragments {
		switch {
		case r == alone && (len(e.IndexingFragments) == 0 || len(e.SearchFragments) == 0):
			return apierr.New(embeddingError, "`%s` needs both indexingFragments and searchFragments, or neither.", path)
		case e.Dimensions == 0:
			return apierr.New(embeddingError, "`%s` needs `dimensions`, because it has fragments.", path)
		}
	}
	if e.Source == Composite {
		if err := validEmbedder(e.SearchEmbedder, path+".searchEmbedder", forSearch, code); err != nil {
			return err
		}
		return validEmbedder(e.IndexingEmbedder, path+".indexingEmbedder", forIndexing, code)
	}
	return nil
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

// openAIModelFault says what is wrong with a model ("" for the default) at a number of dimensions (0 for its own).
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

// payloadModel reads the model and dimensions of a payload whose types were checked.
func payloadModel(sent map[string]value) (model string, dimensions int) {
	if v, ok := sent["model"]; ok && !v.null() {
		model, _ = v.text()
	}
	if v, ok := sent["dimensions"]; ok && !v.null() {
		dimensions, _ = v.count()
	}
	return model, dimensions
}

// checkRest checks the templates in the payload of a rest embedder.
func checkRest(v value, sent map[string]value) error {
	var fragments, templated bool
	for _, name := range []string{"indexingFragments", "searchFragments"} {
		list, ok := sent[name]
		if !ok || list.null() {
			continue
		}
		fragments = true
		members, err := list.members()
		if err != nil {
			return err
		}
		for _, m := range members {
			if _, err := template.ParseJSON(template.Work{}, m.raw); err != nil {
				m.code = embeddingError
				return m.fail("is not a template: %v.", err)
			}
		}
	}
	if t, ok := sent["documentTemplate"]; ok {
		templated = !t.null()
	}
	if fragments && templated {
		v.code = embeddingError
		return v.fail("cannot have both a documentTemplate and fragments.")
	}
	request, requestOK := sent["request"]
	requestOK = requestOK && !request.null()
	response, responseOK := sent["response"]
	responseOK = responseOK && !response.null()
	var batches [2]bool
	if requestOK {
		placeholder := restform.Text
		if fragments {
			placeholder = restform.Fragment
		}
		r, err := restform.ParseRequest(request.raw, placeholder)
		if err != nil && !fragments {
			// The embedder may have fragments already: that is seen on the merged settings.
			if other, ok := restform.ParseRequest(request.raw, restform.Fragment); ok == nil {
				r, err = other, nil
			}
		}
		if err != nil {
			request.code = embeddingError
			return request.fail("%v.", err)
		}
		batches[0] = r.Batch()
	}
	if responseOK {
		r, err := restform.ParseResponse(response.raw)
		if err != nil {
			response.code = embeddingError
			return response.fail("%v.", err)
		}
		batches[1] = r.Batch()
	}
	if requestOK && responseOK && batches[0] != batches[1] {
		v.code = embeddingError
		return v.fail("must repeat an item with %q in both request and response, or in neither.", restform.Repeat)
	}
	return nil
}
