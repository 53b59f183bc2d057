package main

import (
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"svc/internal/embed"
)

// embedderOptions are those of what turns texts into vectors.
type embedderOptions struct {
	ModelsDir    string             `name:"models-dir" placeholder:"DIR" help:"Directory of the models of huggingFace embedders (default: models in the data directory)."`
	OllamaURL    string             `name:"ollama-url" placeholder:"URL" help:"Where ollama embedders without a url go (default: http://localhost:11434/api/embeddings)."`
	OpenAIKey    string             `name:"openai-api-key" placeholder:"KEY" help:"API key of openAi embedders without one, sent to api.openai.com alone (default: OPENAI_API_KEY of the environment)."`
	OpenAIHosts  []string           `name:"openai-api-hosts" placeholder:"HOSTS" help:"Other hosts, with commas between them, that the API key of the command line is sent to where an openAi embedder has one of them in its url (default: none)."`
	CacheEntries int                `name:"experimental-embedding-cache-entries" default:"0" placeholder:"N" help:"Vectors of search queries to remember, over all embedders (default: none)."`
	Timeout      int                `name:"experimental-rest-embedder-timeout-seconds" default:"30" placeholder:"SECONDS" help:"How long a call to an embedder may take (default: ${default})."`
	MaxRetry     int                `name:"experimental-rest-embedder-max-retry-duration-seconds" default:"60" placeholder:"SECONDS" help:"How long to wait, at most, before a call to an embedder is tried again (default: ${default})."`
	Failures     embed.FailureModes `name:"experimental-config-embedder-failure-modes" placeholder:"MODES" help:"Failures that leave documents without vectors instead of failing their task: ignore_document_template_failures, ignore_embedder_failures, or both with a comma between them (default: none)."`
}

func (o *embedderOptions) validate() error {
	switch {
	case o.CacheEntries < 0:
		return errors.New("--experimental-embedding-cache-entries must be 0 or more")
	case o.Timeout < 1 || o.Timeout > maxSeconds:
		return errors.New("--experimental-rest-embedder-timeout-seconds must be from 1 to 86400, which is a day")
	case o.MaxRetry < 1 || o.MaxRetry > maxSeconds:
		return errors.New("--experimental-rest-embedder-max-retry-duration-seconds must be from 1 to 86400, which is a day")
	}
	return nil
}

const maxSeconds = 24 * 60 * 60

// pool makes what opens embedders.
func (o *options) pool(p program, log *slog.Logger) *embed.Pool {
	e := &o.Embedders
	eo := embed.Options{
		Policy: o.AllowedNetworks, Logger: log, Failures: e.Failures, CacheEntries: e.CacheEntries,
		Timeout: time.Duration(e.Timeout) * time.Second, MaxRetry: time.Duration(e.MaxRetry) * time.Second,
		ModelsDir: e.ModelsDir, OllamaURL: e.OllamaURL, OpenAIKey: e.OpenAIKey, OpenAIHosts: e.OpenAIHosts,
	}
	if eo.ModelsDir == "" {
		eo.ModelsDir = filepath.Join(o.DBPath, "models")
	}
	if eo.OpenAIKey == "" {
		eo.OpenAIKey, _ = p.getenv("OPENAI_API_KEY")
	}
	return embed.New(eo)
}
