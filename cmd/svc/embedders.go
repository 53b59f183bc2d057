package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"svc/internal/embed"
)

// embedderOptions are the options of embedders.
type embedderOptions struct {
	ModelsDir    string             `name:"models-dir" placeholder:"DIR" help:"Directory of the models of huggingFace embedders (default: models in the data directory)."`
	OllamaURL    string             `name:"ollama-url" placeholder:"URL" help:"URL of ollama embedders without their own (default: http://localhost:11434/api/embeddings)."`
	OpenAIKey    string             `name:"openai-api-key" placeholder:"KEY" help:"API key of openAi embedders without their own, sent only to api.openai.com (default: the environment variable OPENAI_API_KEY)."`
	OpenAIHosts  []string           `name:"openai-api-hosts" placeholder:"HOSTS" help:"Other hosts, separated by commas, that may receive --openai-api-key if an openAi embedder has them in its url (default: none)."`
	CacheEntries int                `name:"experimental-embedding-cache-entries" default:"0" placeholder:"N" help:"Number of query vectors to cache, over all embedders (default: none)."`
	Timeout      int                `name:"experimental-rest-embedder-timeout-seconds" default:"30" placeholder:"SECONDS" help:"Timeout of a call to an embedder (default: ${default})."`
	MaxRetry     int                `name:"experimental-rest-embedder-max-retry-duration-seconds" default:"60" placeholder:"SECONDS" help:"Maximum wait before a call to an embedder is retried (default: ${default})."`
	Failures     embed.FailureModes `name:"experimental-config-embedder-failure-modes" placeholder:"MODES" help:"Failures that leave documents without vectors instead of failing their task: ignore_document_template_failures, ignore_embedder_failures, or both, separated by a comma (default: none)."`
}

func (o *embedderOptions) validate() error {
	switch {
	case o.CacheEntries < 0:
		return errors.New("--experimental-embedding-cache-entries must be 0 or more")
	case o.Timeout < 1 || o.Timeout > maxSeconds:
		return errors.New("--experimental-rest-embedder-timeout-seconds must be from 1 to 86400 seconds, a day")
	case o.MaxRetry < 1 || o.MaxRetry > maxSeconds:
		return errors.New("--experimental-rest-embedder-max-retry-duration-seconds must be from 1 to 86400 seconds, a day")
	case o.OllamaURL != "" && !embed.OllamaURL(o.OllamaURL):
		return fmt.Errorf("--ollama-url: %q is not the URL of ollama: use one such as http://localhost:11434/api/embeddings, or one that ends in /api/embed", o.OllamaURL)
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
