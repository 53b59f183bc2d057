// Package embed turns texts into vectors. It renders documents by their templates and asks the source of an embedder: a
// provider over HTTP, or a model that runs here.
//
// A Pool belongs to the process: it has the connections, the loaded models and the cache of query vectors. An Embedder
// is opened from the settings of an index. A composite embedder has two halves, one for documents and one for queries;
// both must make vectors of the same length. source.go has a row for each kind of source.
//
// # Failures
//
// Failed calls that may succeed later are retried up to ten times, with waits that double up to a minute, plus or minus a random
// part. Stats counts the calls, and tells the queue when an embedder fails or is slow, so that other indexes continue. Errors quote
// only a short part of a response. An error that the user can resolve is an *apierr.Error.
//
// # Caveats
//
//   - Addresses come from users: every connection goes through package outbound, and redirects are not followed.
//   - Local models process at most as many texts at a time as half of the processors (Pool.local), for all callers together.
//   - A query vector is cached under the identity of its half, which depends on all settings that change vectors.
package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"svc/internal/apierr"
	"svc/internal/outbound"
	"svc/internal/settings"
	"svc/internal/template"
)

// failure is the code of errors that keep an embedder from embedding.
const failure apierr.Code = "vector_embedding_error"

// Options are the options of a Pool.
type Options struct {
	Policy       outbound.Policy // which addresses providers may have
	Logger       *slog.Logger    // nil: nothing is logged
	Timeout      time.Duration   // of one call to a provider; 30 s when 0
	MaxRetry     time.Duration   // longest wait before a retry, without its random part; 0: 60 s
	Failures     FailureModes    // which failures documents survive
	CacheEntries int             // query vectors remembered; none when 0
	ModelsDir    string          // directory of local models; "": none
	OllamaURL    string          // where ollama embedders without a URL go; the local default when ""
	OpenAIKey    string          // API key of openAi embedders without one, for their own host
	OpenAIHosts  []string        // other hosts that OpenAIKey goes to, "host" or "host:port"
}

// Pool opens embedders. There is one per process: it owns the connections to providers, loaded models and the cache of query vectors.
// It is safe for concurrent use.
type Pool struct {
	o      Options
	log    *slog.Logger
	caller *caller
	local  chan struct{} // one slot for each text that a local model works on
	cache  *cache
	models *models
}

// New makes a pool.
func New(o Options) *Pool {
	p := &Pool{o: o, log: o.Logger, caller: newCaller(&o), cache: newCache(o.CacheEntries)}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.local = make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1))
	p.models = newModels(&o)
	return p
}

// Close releases connections and models. No embedder of the pool may be in use, or be used later.
func (p *Pool) Close() error {
	p.caller.client.CloseIdleConnections()
	p.models.client.CloseIdleConnections()
	return nil
}

// Open opens the embedder of a configuration. dimensions is the length of its vectors from an earlier call of Dimensions; then Open
// calls nothing. With 0, Open asks the provider for what the configuration leaves open, and compares the halves of a composite
// embedder; stats (which may be nil) counts these calls. Errors are *apierr.Error, except those of ctx.
func (p *Pool) Open(ctx context.Context, cfg *settings.Embedder, dimensions int, stats *Stats) (*Embedder, error) {
	e := &Embedder{pool: p, dimensions: dimensions, slots: make(chan struct{}, parallel)}
	if !cfg.Generates() {
		if dimensions == 0 {
			e.dimensions = cfg.Dimensions
		}
		e.distribution, e.shifted = distributionOf(cfg)
		return e, nil
	}
	indexing, search := cfg, cfg
	if cfg.Composite() {
		indexing, search = cfg.IndexingEmbedder, cfg.SearchEmbedder
	}
	var err error
	if e.indexing, err = p.openHalf(indexing, dimensions); err != nil {
		return nil, err
	}
	e.search = e.indexing
	if cfg.Composite() {
		if e.search, err = p.openHalf(search, dimensions); err != nil {
			return nil, err
		}
	}
	for _, c := range []*settings.Embedder{cfg, search, indexing} {
		if !e.shifted {
			e.distribution, e.shifted = distributionOf(c)
		}
	}
	if dimensions > 0 {
		return e, nil
	}
	if err := e.indexing.infer(ctx, stats); err != nil {
		return nil, users(err)
	}
	e.dimensions = e.indexing.dimensions
	if cfg.Composite() {
		if err := e.search.infer(ctx, stats); err != nil {
			return nil, users(err)
		}
		if err := compare(ctx, e.indexing, e.search, stats); err != nil {
			return nil, users(err)
		}
	}
	return e, nil
}

// Embedder embeds documents and queries according to one configuration. It is safe for concurrent use.
type Embedder struct {
	pool         *Pool
	dimensions   int
	indexing     *half         // nil for userProvided, as is search
	search       *half         // the same as indexing unless the embedder is composite
	slots        chan struct{} // one for each call of documents in flight: no embedder waits for another one's provider
	distribution [2]float32
	shifted      bool
}

// Dimensions is the length of its vectors.
func (e *Embedder) Dimensions() int { return e.dimensions }

// Generates reports whether the embedder makes vectors of documents. With the source userProvided, vectors only come with documents.
func (e *Embedder) Generates() bool { return e.indexing != nil }

// Distribution returns how its similarities are shifted: as configured, or as is usual for
// the model. ok is false when they are not.
func (e *Embedder) Distribution() (mean, sigma float32, ok bool) {
	return e.distribution[0], e.distribution[1], e.shifted
}

// distributionOf returns mean and deviation of the similarities, from the settings or known for the model.
func distributionOf(cfg *settings.Embedder) (d [2]float32, ok bool) {
	if cfg.Distribution != nil {
		for i, n := range []json.Number{cfg.Distribution.Mean, cfg.Distribution.Sigma} {
			x, err := strconv.ParseFloat(n.String(), 32)
			if err != nil {
				return d, false
			}
			d[i] = float32(x)
		}
		return d, true
	}
	if usual := generators[cfg.Source].distribution; usual != nil {
		return usual(cfg.Complete())
	}
	return d, false
}

// Query is what a search asks for.
type Query struct {
	Q     *string         // nil when the search has none
	Media json.RawMessage // an object, or nil
}

// QueryInput is the input of a query.
type QueryInput struct {
	text  string
	media bool
}

// QueryInput renders the input of a query. The error is an *apierr.Error, or the one that ended work.
func (e *Embedder) QueryInput(work template.Work, q Query) (QueryInput, error) {
	if e.search == nil {
		return QueryInput{}, userError("this embedder does not compute vectors: send the `vector` of the query.")
	}
	text, err := e.search.queryInput(work, q)
	return QueryInput{text, q.Media != nil}, err
}

// EmbedQuery returns the vector of a QueryInput, which the caller must not modify. It returns at the latest when ctx ends. Errors are
// *apierr.Error, except that of a cancelled ctx.
func (e *Embedder) EmbedQuery(ctx context.Context, in QueryInput) ([]float32, error) {
	key := ""
	if !in.media {
		key = e.pool.cache.key(e.search.identity, in.text)
	}
	if v, ok := e.pool.cache.get(key); ok {
		return v, nil
	}
	if e.search.source.local() {
		// The computation of a local model continues; its callers do not have to wait for it.
		select {
		case e.pool.local <- struct{}{}:
			defer func() { <-e.pool.local }()
		case <-ctx.Done():
			return nil, users(timeOver(ctx.Err()))
		}
	}
	vectors, err := e.search.call(ctx, []string{in.text}, e.dimensions, nil)
	if err != nil {
		return nil, users(err)
	}
	e.pool.cache.put(key, vectors[0])
	return vectors[0], nil
}

// timeOver makes an error of that of a context.
func timeOver(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &callError{party: runtimeFault, reason: "the deadline of the embedding passed before there was a vector."}
	}
	return err
}

// users makes an error for users of what calls return.
func users(err error) error {
	var failed *callError
	if errors.As(err, &failed) {
		return failed.user()
	}
	return err
}

func userError(format string, args ...any) error {
	return apierr.New(failure, "%s: %s", userFault, fmt.Sprintf(format, args...))
}
