package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"time"

	"svc/internal/index"
	"svc/internal/outbound"
	"svc/internal/rerank"
	"svc/internal/webhook"
)

// options are the options of the server.
type options struct {
	DBPath               string        `group:"Server:" name:"db-path" default:"./data.svc" placeholder:"DIR" help:"Directory of all data (default: ${default})."`
	HTTPAddr             string        `group:"Server:" name:"http-addr" default:"localhost:7700" placeholder:"HOST:PORT" help:"Address to listen on (default: ${default})."`
	MasterKey            string        `group:"Server:" name:"master-key" placeholder:"KEY" help:"Key with full access. Without one, every client has full access."`
	Env                  string        `group:"Server:" name:"env" default:"development" enum:"development,production" placeholder:"ENV" help:"development or production (default: ${default}). Production requires a master key, and serves the page on / to browsers only."`
	HTTPPayloadSizeLimit size          `group:"Server:" name:"http-payload-size-limit" default:"100 MB" placeholder:"SIZE" help:"Largest request body, decompressed (default: ${default})."`
	MaxIndexingMemory    size          `group:"Indexing and tasks:" name:"max-indexing-memory" default:"0" placeholder:"SIZE" help:"Memory for indexing (default: two thirds of the machine's)."`
	SearchCacheMemory    size          `group:"Searches:" name:"search-cache-memory" default:"128 MiB" placeholder:"SIZE" help:"Memory for cached results of searches, for all indexes together (default: ${default})."`
	MaxIndexingThreads   threads       `group:"Indexing and tasks:" name:"max-indexing-threads" default:"" placeholder:"N" help:"Threads for indexing, or unlimited (default: all cores, and half of them while somebody searches)."`
	InspectionInterval   time.Duration `group:"Indexing and tasks:" name:"inspection-interval" default:"24h" placeholder:"TIME" help:"Time between inspections, which read all segments to find damage; 0 inspects only once, after the start (default: ${default})."`
	DumpDir              string        `group:"Dumps and snapshots:" name:"dump-dir" default:"dumps/" placeholder:"DIR" help:"Directory of dumps (default: ${default})."`
	TaskWebhookURL       string        `group:"Outbound requests:" name:"task-webhook-url" placeholder:"URL" help:"URL that receives finished tasks, in addition to the webhooks of the API."`
	TaskWebhookHeader    string        `group:"Outbound requests:" name:"task-webhook-authorization-header" placeholder:"VALUE" help:"Authorization header for --task-webhook-url."`
	LogLevel             logLevel      `group:"Logs and profiles:" name:"log-level" default:"INFO" placeholder:"LEVEL" help:"OFF, ERROR, WARN, INFO, DEBUG or TRACE (default: ${default})."`
	APIVersion           string        `group:"Server:" name:"api-version" default:"1.42" enum:"1.42,1.54" placeholder:"VERSION" help:"API version that decides where 1.42 and 1.54 differ (default: ${default})."`
	NoDashboard          bool          `group:"Server:" name:"no-dashboard" help:"Do not serve the dashboard on /."`
	Demo                 bool          `group:"Server:" name:"demo" help:"Serve a page on /demo that searches an index with InstantSearch."`
	NoAnalytics          bool          `group:"Server:" name:"no-analytics" help:"No effect: svc sends no usage data."`
	ConfigFilePath       string        `group:"Server:" name:"config-file-path" placeholder:"FILE" help:"TOML file with options (default: ./config.toml, if it exists)."`
	Pprof                bool          `group:"Logs and profiles:" name:"pprof" help:"Serve profiles under /debug/pprof."`

	SlowSearchMs int `group:"Logs and profiles:" name:"slow-search-ms" default:"0" placeholder:"MS" help:"Log searches that take at least this many milliseconds, with query and filter; 0 logs none (default: ${default})."`

	AuditLog string `group:"Logs and profiles:" name:"audit-log" placeholder:"FILE" help:"File for the audit log: a line of JSON for each change of keys, settings, indexes, rules, webhooks, chats, the network and features, and for each copy of all data."`

	Analytics days `group:"Logs and profiles:" name:"analytics-retention" default:"0d" placeholder:"TIME" help:"Count searches by query and filter, and keep the counts this long, such as 30d; 0d counts none (default: ${default})."`

	MetricsPrefix string `group:"Logs and profiles:" name:"metrics-prefix" default:"svc_" placeholder:"TEXT" help:"Prefix of the series in /metrics (default: ${default}); meilisearch_ fits dashboards made for Meilisearch."`

	Traces    traceOptions    `embed:"" group:"Logs and profiles:"`
	Costs     costOptions     `embed:"" group:"Limits of requests:"`
	Rules     ruleOptions     `embed:"" group:"Search rules:"`
	TLS       tlsOptions      `embed:"" group:"HTTPS:"`
	Imports   importOptions   `embed:"" group:"Dumps and snapshots:"`
	Snapshots snapshotOptions `embed:"" group:"Dumps and snapshots:"`
	Publish   publishOptions  `embed:"" group:"Publication:"`

	Embedders embedderOptions `embed:"" group:"Embedders:"`

	Group groupOptions `embed:"" group:"Groups:"`

	ContainsFilter      bool            `group:"Experimental features:" name:"experimental-contains-filter" help:"Allow CONTAINS in filters."`
	EnableMetrics       bool            `group:"Experimental features:" name:"experimental-enable-metrics" help:"Enable the feature metrics."`
	EnableLogsRoute     bool            `group:"Experimental features:" name:"experimental-enable-logs-route" help:"Enable the feature logsRoute."`
	SearchQueueSize     int             `group:"Searches:" name:"experimental-search-queue-size" default:"1000" placeholder:"N" help:"Maximum number of waiting searches (default: ${default})."`
	DropSearchAfter     int             `group:"Searches:" name:"experimental-drop-search-after" default:"60" placeholder:"SECONDS" help:"Maximum waiting time of a search (default: ${default})."`
	SearchesPerCore     int             `group:"Searches:" name:"experimental-nb-searches-per-core" default:"4" placeholder:"N" help:"Searches that run at once, per core (default: ${default})."`
	LogsMode            logsMode        `group:"Logs and profiles:" name:"experimental-logs-mode" default:"HUMAN" placeholder:"MODE" help:"HUMAN or JSON (default: ${default})."`
	BatchedTasks        *int            `group:"Indexing and tasks:" name:"experimental-max-number-of-batched-tasks" placeholder:"N" help:"Maximum number of tasks in a batch; 0 stops processing (default: unlimited)."`
	ConcurrentIndexes   int             `group:"Indexing and tasks:" name:"experimental-concurrent-indexes" default:"1" placeholder:"N" help:"Batches that run at once, each of different indexes, at most 64; they share the indexing memory (default: ${default})."`
	Replication         bool            `group:"Indexing and tasks:" name:"experimental-replication-parameters" help:"Accept the headers TaskId and DryRun, which choose or check the uid of a task. svc then never deletes old tasks itself."`
	RemoteSearchTimeout int             `group:"Network:" name:"experimental-remote-search-timeout-seconds" default:"25" placeholder:"SECONDS" help:"Timeout of a search for other instances (default: ${default})."`
	NetworkOutboxLimit  size            `group:"Network:" name:"network-outbox-limit" default:"4 GiB" placeholder:"SIZE" help:"Maximum size of writes stored for an unavailable instance. Beyond it, the instance gets a copy of its documents when it is back (default: ${default})."`
	ProxyRequestTimeout int             `group:"Network:" name:"experimental-proxy-request-timeout-seconds" default:"30" placeholder:"SECONDS" help:"Timeout of a request to another instance, without its documents (default: ${default})."`
	ProxyBackoffTimeout int             `group:"Network:" name:"experimental-proxy-backoff-timeout-seconds" default:"25" placeholder:"SECONDS" help:"Maximum time that the response to a write waits for other instances (default: ${default})."`
	AllowedNetworks     outbound.Policy `group:"Outbound requests:" name:"experimental-allowed-ip-networks" placeholder:"NETWORKS" help:"The only networks that requests to webhooks, embedders, remotes, exports, S3 and a trace collector may reach, separated by commas, such as 10.0.0.0/8; or any (default: all global addresses, no private or local ones)."`
	BatchedSize         *size           `group:"Indexing and tasks:" name:"experimental-limit-batched-tasks-total-size" placeholder:"SIZE" help:"Maximum size of the payloads in a batch; 0 gives every payload its own batch (default: half of the indexing memory, at most 10 GiB)."`

	PersonalizationKey string `group:"Searches:" name:"experimental-personalization-api-key" placeholder:"KEY" help:"API key of the reranking service for searches with personalize (default: no personalization)."`
	PersonalizationURL string `group:"Searches:" name:"experimental-personalization-url" default:"https://api.cohere.ai/v1/rerank" placeholder:"URL" help:"URL of the reranking service (default: ${default})."`

	Accepted acceptedOptions `embed:"" group:"No effect, accepted for compatibility:"`
}

// acceptedOptions are options of Meilisearch deployments that migrate to svc. They have no effect.
type acceptedOptions struct {
	UpgradeDB       bool `name:"upgrade-db" help:"No effect: svc opens older formats, and upgrades their files when it rewrites them."`
	DumplessUpgrade bool `name:"experimental-dumpless-upgrade" help:"No effect: svc opens older formats without a dump."`
	ReduceMemory    bool `name:"experimental-reduce-indexing-memory-usage" help:"No effect: --max-indexing-memory limits indexing."`
	OldSettings     bool `name:"experimental-no-edition-2024-for-settings" help:"No effect: there is only one way to apply settings."`
	OldDumps        bool `name:"experimental-no-edition-2024-for-dumps" help:"No effect: there is only one way to import dumps."`
}

// masterKeyBytes is the length from which on a master key is not easily guessed.
const masterKeyBytes = 16

// metricsPrefixForm is the form of metric names in Prometheus, without colons, which are reserved for recording rules.
var metricsPrefixForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// validate checks what a single option cannot say.
func (o *options) validate() error {
	switch {
	case o.DBPath == "":
		return errors.New("--db-path must not be empty: set it to the data directory")
	case o.SearchQueueSize < 0:
		return errors.New("--experimental-search-queue-size must be 0 or more")
	case o.DropSearchAfter < 1:
		return errors.New("--experimental-drop-search-after must be 1 or more")
	case o.SearchesPerCore < 1:
		return errors.New("--experimental-nb-searches-per-core must be 1 or more")
	case o.BatchedTasks != nil && *o.BatchedTasks < 0:
		return errors.New("--experimental-max-number-of-batched-tasks must be 0 or more")
	case o.ConcurrentIndexes < 1 || o.ConcurrentIndexes > 64:
		return errors.New("--experimental-concurrent-indexes must be from 1 to 64")
	case o.RemoteSearchTimeout < 1:
		return errors.New("--experimental-remote-search-timeout-seconds must be 1 or more")
	case o.ProxyRequestTimeout < 1 || o.ProxyBackoffTimeout < 1:
		return errors.New("--experimental-proxy-request-timeout-seconds and --experimental-proxy-backoff-timeout-seconds must be 1 or more")
	case o.InspectionInterval < 0:
		return errors.New("--inspection-interval must be 0 or more")
	case !metricsPrefixForm.MatchString(o.MetricsPrefix):
		return errors.New("--metrics-prefix must begin with a letter or _, and contain only letters, digits and _")
	case o.Analytics != 0 && o.Analytics < days(time.Hour):
		return errors.New("--analytics-retention must be 1h or more, or 0d to count nothing")
	case o.HTTPPayloadSizeLimit == 0:
		return errors.New("--http-payload-size-limit must be more than 0")
	}
	if err := o.Costs.validate(); err != nil {
		return err
	}
	if err := o.Rules.validate(); err != nil {
		return err
	}
	if err := o.Imports.validate(); err != nil {
		return err
	}
	if err := o.TLS.validate(); err != nil {
		return err
	}
	if err := o.Traces.validate(); err != nil {
		return err
	}
	if err := o.Embedders.validate(); err != nil {
		return err
	}
	if err := o.Publish.validate(); err != nil {
		return err
	}
	if o.Publish.Follow != "" && o.Group.Name != "" {
		return errors.New("--follow and --group-name exclude each other: a reader follows the writer of its group, or a bucket")
	}
	if err := o.Group.validate(); err != nil {
		return err
	}
	switch {
	case o.Imports.imports() && o.Publish.Follow != "":
		return errors.New("--import-dump and --import-snapshot do not work with --follow, which fills the data directory from a bucket")
	case o.Imports.imports() && o.Group.reads():
		return errors.New("--import-dump and --import-snapshot do not work with --group-role reader: a reader copies the data of its writer")
	case o.Imports.imports() && o.Group.votes():
		return errors.New("--import-dump and --import-snapshot do not work with --group-role voter: import into a server without a group, stop it, and start it as a voter")
	}
	if err := o.Snapshots.validate(); err != nil {
		return err
	}
	if o.PersonalizationKey != "" || o.PersonalizationURL != "" {
		if _, err := rerank.New(o.PersonalizationURL, o.PersonalizationKey, o.AllowedNetworks); err != nil {
			return fmt.Errorf("--experimental-personalization-url: %w", err)
		}
	}
	_, err := o.launchedWebhook()
	return err
}

// newest reports whether v1.54 of the API counts where v1.42 and it differ.
func (o *options) newest() bool { return o.APIVersion == "1.54" }

// speaks is the version of the API as clients compare it.
func (o *options) speaks() string {
	if o.newest() {
		return newestVersion
	}
	return apiVersion
}

// reranker returns the client that reranks hits for users, or nil if there is none.
func (o *options) reranker() (*rerank.Client, error) {
	if o.PersonalizationKey == "" {
		return nil, nil
	}
	c, err := rerank.New(o.PersonalizationURL, o.PersonalizationKey, o.AllowedNetworks)
	if err != nil {
		return nil, fmt.Errorf("--experimental-personalization-url: %w", err)
	}
	return c, nil
}

// launchedWebhook returns the webhook of the command line, or nil.
func (o *options) launchedWebhook() (*webhook.Webhook, error) {
	if o.TaskWebhookURL == "" {
		return nil, nil
	}
	w, err := webhook.Launched(o.TaskWebhookURL, o.TaskWebhookHeader)
	if err != nil {
		return nil, fmt.Errorf("--task-webhook-url and --task-webhook-authorization-header: %w", err)
	}
	return w, nil
}

func (o *options) checkMasterKey() error {
	if o.Env == "production" && len(o.MasterKey) < masterKeyBytes {
		return fmt.Errorf("--env production requires a master key of at least %d bytes: set --master-key or SVC_MASTER_KEY, for example to this random one: %s", masterKeyBytes, suggestKey())
	}
	return nil
}

// suggestKey generates a random key.
func suggestKey() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// limits fills in what the machine decides.
func (o *options) limits() index.Options {
	l := index.Options{SearchCacheBytes: int64(o.SearchCacheMemory), MaxIndexingMemory: int64(o.MaxIndexingMemory), MaxIndexingThreads: int(o.MaxIndexingThreads), InspectEvery: o.InspectionInterval, MemoryShort: memoryShort}
	if l.MaxIndexingMemory == 0 {
		l.MaxIndexingMemory = memoryBytes() / 3 * 2
	}
	l.MaxIndexingMemory /= int64(o.ConcurrentIndexes)
	if l.MaxIndexingThreads == 0 {
		l.MaxIndexingThreads = runtime.GOMAXPROCS(0) // that Go takes from the processors and the CPU limit of a container
		l.YieldingThreads = l.MaxIndexingThreads - max(l.MaxIndexingThreads/2, 1)
	}
	return l
}

func (o *options) batchTasks() int {
	if o.BatchedTasks == nil {
		return -1
	}
	return *o.BatchedTasks
}

// maxTasks returns the number of stored tasks from which old ones are deleted: the queue's default, or no limit if another instance
// decides which tasks exist.
func (o *options) maxTasks() int {
	if o.Replication {
		return -1
	}
	return 0
}

func (o *options) batchBytes(indexingMemory int64) int64 {
	if o.BatchedSize != nil {
		return int64(*o.BatchedSize)
	}
	return min(indexingMemory/2, 10<<30)
}

func (o *options) launchedFeatures() []string {
	var names []string
	for name, on := range map[string]bool{"containsFilter": o.ContainsFilter, "metrics": o.EnableMetrics, "logsRoute": o.EnableLogsRoute} {
		if on {
			names = append(names, name)
		}
	}
	return names
}

// unknownName returns the error of an unknown name.
func unknownName(name string, known ...string) error {
	return fmt.Errorf("%q is unknown: use %s or %s", name, strings.Join(known[:len(known)-1], ", "), known[len(known)-1])
}
