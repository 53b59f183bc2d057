// Package embed turns texts into vectors: it renders documents by their
// templates, asks the source that an embedder is configured with (a provider
// over HTTP, or a model in a local directory), tries again what may pass, and
// remembers the vectors of recent queries.
package embed

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"svc/internal/apierr"
	"svc/internal/outbound"
	"svc/internal/settings"
)

// failure is the code of what keeps an embedder from embedding.
const failure apierr.Code = "vector_embedding_error"

// Options are those of a process.
type Options struct {
	Policy       outbound.Policy // which addresses providers may have
	Logger       *slog.Logger    // nil: nothing is logged
	Timeout      time.Duration   // of one call to a provider; 30 s when 0
	MaxRetry     time.Duration   // the longest wait before a call is tried again; 60 s when 0
	Failures     FailureModes    // which failures documents survive
	CacheEntries int             // query vectors remembered; none when 0
	ModelsDir    string          // directory of local models, one directory a model; "" when there is none
	OllamaURL    string          // where ollama embedders without a URL go; the local default when ""
	OpenAIKey    string          // API key of openAi embedders without one
}

// Pool opens embedders. There is one in a process: it owns the connections to
// providers, loaded models and the cache of query vectors. Its methods may be
// called from several goroutines.
type Pool struct {
	o Options
}

// New makes a pool.
func New(o Options) *Pool { return &Pool{o: o} }

// Close gives up connections and models. No embedder of the pool may be in use, or be used later.
func (p *Pool) Close() error { return nil }

// Open makes the embedder of a configuration. dimensions is the length of its
// vectors as an earlier Dimensions said; then nothing is called. With 0, what
// the configuration leaves open is asked of the provider, and the halves of a
// composite embedder are compared. Errors are *apierr.Error, but for those of ctx.
func (p *Pool) Open(ctx context.Context, cfg *settings.Embedder, dimensions int) (*Embedder, error) {
	return nil, apierr.New(failure, "error: the source %s cannot embed yet.", cfg.Source)
}

// Embedder embeds documents and queries as one configuration says. Its methods
// may be called from several goroutines.
type Embedder struct {
	dimensions int
}

// Dimensions is the length of its vectors.
func (e *Embedder) Dimensions() int { return e.dimensions }

// Generates reports whether it makes vectors of documents at all: those of the source userProvided only come with them.
func (e *Embedder) Generates() bool { return false }

// Input is what is embedded of a document. An embedder makes the same vector of equal inputs.
type Input struct {
	Text     string // the rendered document template, or the rendered fragment as JSON
	Fragment string // name of the indexing fragment; "" when the embedder has none
}

// Render makes the inputs of a document, a JSON object: one by the template,
// or one for each fragment that can be rendered, by name. searchable says
// whether a top-level field is searched. A template that does not fit the
// document is an *apierr.Error invalid_document_fields; with
// IgnoreTemplates it makes no input and no error.
func (e *Embedder) Render(doc []byte, searchable func(name string) bool) ([]Input, error) {
	return nil, nil
}

// EmbedDocuments returns the vector of each input. Calls are made in groups
// and side by side, and counted in stats (not nil). With IgnoreProviders the inputs of a
// failed call have nil vectors; otherwise the first failure, an *apierr.Error, ends it.
func (e *Embedder) EmbedDocuments(ctx context.Context, inputs []Input, stats *Stats) ([][]float32, error) {
	return make([][]float32, len(inputs)), nil
}

// Query is what a search asks for.
type Query struct {
	Q     *string         // nil when the search has none
	Media json.RawMessage // an object, or nil
}

// EmbedQuery returns the vector of a query, which the caller must not change.
// It ends with ctx, at the latest; the error then says so, as an *apierr.Error too.
func (e *Embedder) EmbedQuery(ctx context.Context, q Query) ([]float32, error) {
	return nil, apierr.New(failure, "error: nothing can be embedded yet.")
}

// Distribution returns how its similarities are shifted: as configured, or as is usual for
// the model. ok is false when they are not.
func (e *Embedder) Distribution() (mean, sigma float32, ok bool) { return 0, 0, false }

// Stats counts calls to providers. The zero Stats is ready; it may be used from several goroutines.
type Stats struct {
	mu            sync.Mutex
	total, failed uint64
	last          string
}

// Counts returns the calls made and those of them that failed, also if a later try did not, and
// the error of the last one that failed, "" when there is none.
func (s *Stats) Counts() (total, failed uint64, lastError string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total, s.failed, s.last
}
