package settings

// HuggingFace is the source of models that run in this process.
const HuggingFace = "huggingFace"

const (
	defaultHuggingFaceModel    = "BAAI/bge-base-en-v1.5"
	defaultHuggingFaceRevision = "617ca489d9e86b49b8167676d8220688b99db36e"
)

var huggingFaceSource = embedderSource{
	name:  HuggingFace,
	takes: []string{"model", "revision", "pooling", "documentTemplate", "documentTemplateMaxBytes"},
	complete: func(e *Embedder) {
		if e.Model == "" {
			e.Model = defaultHuggingFaceModel
			if e.Revision == "" {
				e.Revision = defaultHuggingFaceRevision
			}
		}
		if e.Pooling == "" {
			e.Pooling = poolings[0]
		}
	},
}
