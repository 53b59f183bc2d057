package settings

import (
	"svc/internal/apierr"
)

// embeddingError is the code of errors that make an embedder unable to embed.
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

// openEmbedder refuses an embedder, as sent, with errors that no later merge can fix: features that are off, and fields that its
// source refuses or lacks.
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
	// A null removes fragments, and is also what an embedder without fragments shows.
	has := func(name string) bool { x, ok := sent[name]; return ok && !x.null() }
	if has("searchFragments") || has("indexingFragments") {
		if err := needs(f.Multimodal, "multimodal", "`"+v.path+"`, which has fragments,"); err != nil {
			return err
		}
	}
	check := checkRest // without a source, the embedder may have this one
	if source != "" {
		of := sourceOf(source)
		check = of.payload
		if of.modelFault != nil {
			if reason := of.modelFault(payloadModel(sent)); reason != "" {
				return v.fail("%s.", reason)
			}
		}
		for _, field := range embedderFields {
			got, ok := sent[field.name]
			switch use := of.use(field.name); {
			case use == refused && ok:
				return got.fail("cannot be set for the source %s.", source)
			case use == needed && (!ok || got.null()):
				return v.fail("needs `%s` for the source %s.", field.name, source)
			}
		}
	} else if r != alone {
		return v.fail("needs a `source`.")
	}
	if check != nil {
		if err := check(v, sent); err != nil {
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
		return apierr.New(code, "There would be %d embedders, but an index can have at most %d.", n, maxEmbedders)
	}
	for _, name := range sortedKeys(s.Embedders) {
		if err := validEmbedder(s.Embedders[name], ".embedders."+name, alone, code); err != nil {
			return err
		}
	}
	return nil
}

// validEmbedder checks an embedder after a merge, and the halves of a composite one.
func validEmbedder(e *Embedder, path string, r role, code apierr.Code) error {
	of := sourceOf(e.Source)
	for _, field := range embedderFields {
		switch use, set := of.use(field.name), field.set(e); {
		case use == refused && set:
			return apierr.New(code, "`%s.%s` cannot be set for the source %s.", path, field.name, e.Source)
		case use == needed && !set:
			return apierr.New(code, "`%s` needs `%s` for the source %s.", path, field.name, e.Source)
		}
	}
	if e.DocumentTemplateMaxBytes != nil && *e.DocumentTemplateMaxBytes == 0 {
		return apierr.New(code, "`%s.documentTemplateMaxBytes` cannot be 0: it is the maximum length of texts.", path)
	}
	if of.modelFault != nil {
		if reason := of.modelFault(e.Model, e.Dimensions); reason != "" {
			return apierr.New(code, "`%s` %s.", path, reason)
		}
	}
	if of.valid != nil {
		if err := of.valid(e, path); err != nil {
			return err
		}
	}
	if e.hasFragments() {
		switch {
		case r == alone && (len(e.IndexingFragments) == 0 || len(e.SearchFragments) == 0):
			return apierr.New(embeddingError, "`%s` needs both indexingFragments and searchFragments, or neither.", path)
		case e.Dimensions == 0:
			return apierr.New(embeddingError, "`%s` needs `dimensions`, because it has fragments.", path)
		}
	}
	for _, part := range []struct {
		name string
		is   *Embedder
		role role
	}{{"searchEmbedder", e.SearchEmbedder, forSearch}, {"indexingEmbedder", e.IndexingEmbedder, forIndexing}} {
		if part.is != nil {
			if err := validEmbedder(part.is, path+"."+part.name, part.role, code); err != nil {
				return err
			}
		}
	}
	return nil
}

// payloadModel reads the model and dimensions of a payload whose types were already checked.
func payloadModel(sent map[string]value) (model string, dimensions int) {
	if v, ok := sent["model"]; ok && !v.null() {
		model, _ = v.text()
	}
	if v, ok := sent["dimensions"]; ok && !v.null() {
		dimensions, _ = v.count()
	}
	return model, dimensions
}
