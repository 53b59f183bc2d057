package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"svc/internal/logs"
	"svc/internal/task"
	"svc/internal/vfs"
)

// parseServe reads options from a command line, an environment (pairs) and a configuration file.
func parseServe(t *testing.T, args []string, env map[string]string, config string) (*options, error) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	if config != "" {
		if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p := program{
		getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		environ: func() (pairs []string) {
			for name, value := range env {
				pairs = append(pairs, name+"="+value)
			}
			return pairs
		},
		out: new(bytes.Buffer), err: new(bytes.Buffer),
	}
	ctx, err := p.parse(args)
	if err != nil {
		return nil, err
	}
	return serverOptions(ctx), nil
}

func TestPrecedence(t *testing.T) {
	const file = `http_addr = "file:1"` + "\n" + `log_level = "ERROR"` + "\n" + `no_analytics = true`
	for _, tt := range []struct {
		name   string
		args   []string
		env    map[string]string
		config string
		want   string
	}{
		{"default", nil, nil, "", "localhost:7700"},
		{"file", nil, nil, file, "file:1"},
		{"moved environment over file", nil, map[string]string{"MEILI_HTTP_ADDR": "moved:1"}, file, "moved:1"},
		{"own environment over moved", nil, map[string]string{"MEILI_HTTP_ADDR": "moved:1", "SVC_HTTP_ADDR": "env:1"}, file, "env:1"},
		{"command line over all", []string{"--http-addr", "cli:1"}, map[string]string{"SVC_HTTP_ADDR": "env:1"}, file, "cli:1"},
		{"after the command's name", []string{"serve", "--http-addr", "cli:1"}, map[string]string{"SVC_HTTP_ADDR": "env:1"}, file, "cli:1"},
		{"with the command's name", []string{"--http-addr=cli:1", "serve"}, nil, file, "cli:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := parseServe(t, tt.args, tt.env, tt.config)
			if err != nil {
				t.Fatal(err)
			}
			if c.HTTPAddr != tt.want {
				t.Errorf("got %s, want %s", c.HTTPAddr, tt.want)
			}
			if tt.config != "" && (c.LogLevel.Level != slog.LevelError || !c.NoAnalytics) {
				t.Errorf("the rest of the file is lost: %+v", c)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	c, err := parseServe(t, []string{
		"--http-payload-size-limit", "1.5 GiB", "--max-indexing-threads=unlimited", "--experimental-max-number-of-batched-tasks", "0",
		"--experimental-logs-mode", "json", "--no-analytics", "--experimental-contains-filter",
	}, map[string]string{"SVC_EXPERIMENTAL_ENABLE_METRICS": "true", "SVC_LOG_LEVEL": "off"},
		"max_indexing_memory = 2000000\nexperimental_search_queue_size = 7\nmax_indexing_threads = 3\ntrace_ratio = 0.25\n"+
			`openai_api_hosts = ["a.test", "b.test"]`+"\n"+`ollama_url = "http://ollama.test/api/embed"`)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(c.HTTPPayloadSizeLimit, c.MaxIndexingMemory, c.MaxIndexingThreads > 0, *c.BatchedTasks, c.LogsMode.json, c.NoAnalytics,
		c.ContainsFilter, c.EnableMetrics, c.EnableLogsRoute, c.LogLevel.Level == logs.LevelOff, c.SearchQueueSize, c.Traces.Ratio, c.Embedders.OpenAIHosts)
	if want := "1610612736 2000000 true 0 true true true true false true 7 0.25 [a.test b.test]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBatchBytes(t *testing.T) {
	const memory = 100 << 30
	for _, tt := range []struct {
		args   []string
		config string
		memory int64
		want   int64
	}{
		{nil, "", 1000, 500},
		{nil, "", memory, 10 << 30},
		{[]string{"--experimental-limit-batched-tasks-total-size", "0"}, "", memory, 0},
		{[]string{"--experimental-limit-batched-tasks-total-size", "1 KiB"}, "", memory, 1024},
		{nil, "experimental_limit_batched_tasks_total_size = 0", memory, 0},
		{nil, `experimental_limit_batched_tasks_total_size = "20 GiB"`, memory, 20 << 30},
	} {
		c, err := parseServe(t, tt.args, nil, tt.config)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.batchBytes(tt.memory); got != tt.want {
			t.Errorf("%q %q: %d bytes, want %d", tt.args, tt.config, got, tt.want)
		}
	}
}

func TestAllowedNetworks(t *testing.T) {
	private, loopback := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("127.0.0.1")
	for _, tt := range []struct {
		name              string
		args              []string
		env               map[string]string
		config            string
		private, loopback bool
	}{
		{name: "default"},
		{name: "flag", args: []string{"--experimental-allowed-ip-networks", "10.0.0.0/8,127.0.0.0/8"}, private: true, loopback: true},
		{name: "any", args: []string{"--experimental-allowed-ip-networks=any"}, private: true, loopback: true},
		{name: "environment", env: map[string]string{"SVC_EXPERIMENTAL_ALLOWED_IP_NETWORKS": "127.0.0.0/8"}, loopback: true},
		{name: "array", config: `experimental_allowed_ip_networks = ["10.0.0.0/8", "192.168.0.0/16"]`, private: true},
		{name: "empty array", config: `experimental_allowed_ip_networks = []`},
		{name: "text", config: `experimental_allowed_ip_networks = "10.0.0.0/8,127.0.0.1/32"`, private: true, loopback: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := parseServe(t, tt.args, tt.env, tt.config)
			if err != nil {
				t.Fatal(err)
			}
			if p := o.AllowedNetworks; p.Allows(private) != tt.private || p.Allows(loopback) != tt.loopback {
				t.Errorf("private %t, loopback %t", p.Allows(private), p.Allows(loopback))
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		env    map[string]string
		config string
		file   bool // the error names the file
	}{
		{name: "unknown flag", args: []string{"--nope"}},
		{name: "env", args: []string{"--env", "staging"}},
		{name: "boolean in the environment", env: map[string]string{"SVC_NO_ANALYTICS": "1"}},
		{name: "misspelt variable", env: map[string]string{"SVC_MASTERKEY": "secret"}},
		{name: "unknown variable", env: map[string]string{"SVC_PORT_AUTHORITY": "x"}},
		{name: "no directory", env: map[string]string{"SVC_DB_PATH": ""}},
		{name: "size", args: []string{"--http-payload-size-limit", "10 parsecs"}},
		{name: "threads", env: map[string]string{"SVC_MAX_INDEXING_THREADS": "-1"}},
		{name: "level", args: []string{"--log-level", "loud"}},
		{name: "no metrics prefix", args: []string{"--metrics-prefix", ""}},
		{name: "metrics prefix", args: []string{"--metrics-prefix", "my-"}},
		{name: "mode", args: []string{"--experimental-logs-mode", "xml"}},
		{name: "network", args: []string{"--experimental-allowed-ip-networks", "10.0.0.1"}},
		{name: "certificate without a key", args: []string{"--ssl-cert-path", "c.pem"}},
		{name: "key without a certificate", args: []string{"--ssl-key-path", "k.pem"}},
		{name: "HTTPS without a certificate", args: []string{"--ssl-resumption"}},
		{name: "clients without an authority", args: []string{"--ssl-cert-path", "c.pem", "--ssl-key-path", "k.pem", "--ssl-require-auth"}},
		{name: "collector without a scheme", args: []string{"--trace-endpoint", "localhost:4318"}},
		{name: "reranker without a scheme", args: []string{"--experimental-personalization-url", "rerank.test"}},
		{name: "ollama without a scheme", args: []string{"--ollama-url", "localhost:11434/api/embed"}},
		{name: "ollama without a path", args: []string{"--ollama-url", "http://localhost:11434"}},
		{name: "fraction for a whole number", config: `experimental_search_queue_size = 1.5`, file: true},
		{name: "fraction for a size", config: `max_indexing_memory = 1.5`, file: true},
		{name: "ratio beyond 1", config: `trace_ratio = 1.5`},
		{name: "date", config: `trace_ratio = 1979-05-27`, file: true},
		{name: "numbers for hosts", config: `openai_api_hosts = [1]`, file: true},
		{name: "webhook without a scheme", args: []string{"--task-webhook-url", "hooks.test/done"}},
		{name: "webhook with a bad header", args: []string{"--task-webhook-url", "http://hooks.test/", "--task-webhook-authorization-header", "a\nb"}},
		{name: "array of numbers", config: `experimental_allowed_ip_networks = [10]`, file: true},
		{name: "array for text", config: `db_path = ["a"]`, file: true},
		{name: "no waiting time", args: []string{"--experimental-drop-search-after", "0"}},
		{name: "missing file", args: []string{"--config-file-path", "none.toml"}, file: true},
		{name: "file that is not TOML", config: "http_addr", file: true},
		{name: "options in a table", config: "[server]\ndb_path = \"x\"", file: true},
		{name: "unknown key", config: `http_address = "x:1"`, file: true},
		{name: "file naming a file", config: `config_file_path = "x.toml"`, file: true},
		{name: "number for text", config: `db_path = 3`, file: true},
		{name: "text for a number", config: `experimental_search_queue_size = "3"`, file: true},
		{name: "text for a boolean", config: `no_analytics = "true"`, file: true},
		{name: "boolean for text", config: `master_key = true`, file: true},
		{name: "table", config: "[db_path]\nx = 1", file: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseServe(t, tt.args, tt.env, tt.config)
			if err == nil {
				t.Fatal("accepted")
			}
			if errors.As(err, new(*configError)) != tt.file {
				t.Errorf("the error names the wrong place: %v", err)
			}
		})
	}
}

// TestSecretsAreNotShown checks that the error for an invalid key in the file does not show the key.
func TestSecretsAreNotShown(t *testing.T) {
	for _, config := range []string{`master_key = 1234567`, `master_key = ["1234567"]`, `s3_secret_key = 1234567.5`, `schedule_snapshot = "1234567"`} {
		if _, err := parseServe(t, nil, nil, config); err == nil || strings.Contains(err.Error(), "1234567") {
			t.Errorf("%s: %v", config, err)
		}
	}
}

func TestErrorsOfTheFileAreBlamedOnIt(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("config.toml", []byte(`http_address = "x:1"`), 0o666); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	p := program{getenv: func(string) (string, bool) { return "", false }, out: &printed, err: &printed}
	if code := p.run(nil); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	if !strings.HasPrefix(printed.String(), "svc: cannot use the configuration file ./config.toml: http_address is unknown: did you mean http_addr?") {
		t.Errorf("printed %q", printed.String())
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "12": 12, "12b": 12, "12 B": 12, "1k": 1000, "1 KB": 1000, "1KiB": 1024, "1 kib": 1024, "100 MB": 100e6, "1.5gib": 3 << 29,
		"2 T": 2e12, "1PiB": 1 << 50, "1 eib": 1 << 60, "8 kbit": 1000, "8 Kibit": 1024, "8bit": 1, " 7 MB ": 7e6,
		"": -1, "MB": -1, "1 XB": -1, "1.2.3": -1, "-1": -1, "1 kk": -1, "10 EiB": -1, "1 i": -1, "1 mebi": -1,
	} {
		got, err := task.ParseSize(s)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

func TestProductionNeedsAKey(t *testing.T) {
	for _, tt := range []struct {
		env, key string
		ok       bool
	}{
		{"development", "", true}, {"development", "short", true},
		{"production", "", false}, {"production", "fifteen-bytes-.", false}, {"production", "sixteen-bytes-..", true},
	} {
		c := options{Env: tt.env, MasterKey: tt.key}
		if err := c.checkMasterKey(); (err == nil) != tt.ok {
			t.Errorf("%s with %q: %v", tt.env, tt.key, err)
		}
	}
}

func TestDataDir(t *testing.T) {
	fsys := vfs.NewMem()
	put := func(name, text string) {
		t.Helper()
		if err := fsys.MkdirAll(filepath.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(fsys, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put("/other/VERSION", "1.42.1")
	put("/cut/VERSION", "")
	put("/past/VERSION", "svc 1 0.0.1\n")
	put("/next/VERSION", "svc 5\n")
	put("/before/VERSION", "svc 2\n")
	put("/home/notes.txt", "hello")
	put("/broken/LOCK", "")
	put("/broken/VERSION.tmp", "sv")

	for dir, want := range map[string]string{
		"/new": "", "/broken": "", "/other": "belongs to Meilisearch 1.42.1. Make a dump", "/cut": "its VERSION is empty", "/past": "Make a dump with svc 0.0.1", "/before": "", "/next": "format version 5", "/home": "not empty",
	} {
		lock, err := openDataDir(fsys, dir, "", nil)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", dir, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if b, err := vfs.ReadFile(fsys, dir+"/VERSION"); err != nil || string(b) != string(versionContent()) {
			t.Errorf("%s: VERSION is %q, %v", dir, b, err)
		}
		if _, err := openDataDir(fsys, dir, "", nil); err == nil || !strings.Contains(err.Error(), "another svc") {
			t.Errorf("%s twice: %v", dir, err)
		}
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
		lock, err = openDataDir(fsys, dir, "", nil)
		if err != nil {
			t.Errorf("%s again: %v", dir, err)
			continue
		}
		lock.Close()
	}
	// Other files are left unchanged.
	if names, err := fsys.List("/home"); err != nil || len(names) != 1 {
		t.Errorf("/home holds %v, %v", names, err)
	}
}

// TestVersionOfABuild checks that a plain go build shows the commit that the go command records.
func TestVersionOfABuild(t *testing.T) {
	recorded := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-26T16:24:54Z"}}}
	for _, tt := range []struct {
		info             *debug.BuildInfo
		revision, moment string // set by the linker
		commit, date     string
	}{
		{nil, "", "", "unknown", "unknown"},
		{new(debug.BuildInfo), "", "", "unknown", "unknown"},
		{recorded, "", "", "abc", "2026-11-26T16:24:54.000000000Z"},
		{recorded, "def", "2026-11-27T00:00:00+01:00", "def", "2026-11-26T23:00:00.000000000Z"},
		{recorded, "def", "", "def", "unknown"},
	} {
		if v := versionOf(tt.info, tt.revision, tt.moment); v.Commit != tt.commit || v.Date != tt.date {
			t.Errorf("%q, %q: commit %s of %s, want %s of %s", tt.revision, tt.moment, v.Commit, v.Date, tt.commit, tt.date)
		}
	}
}

func TestVersionDate(t *testing.T) {
	v := buildVersion()
	if v.Package == "" || v.Commit == "" {
		t.Errorf("empty: %+v", v)
	}
	if _, err := time.Parse(time.RFC3339Nano, v.Date); err != nil && v.Date != "unknown" {
		t.Errorf("date %q", v.Date)
	}
}

// knownOptions are the options of Meilisearch, whose deployments move to svc.
const knownOptions = `db-path http-addr master-key env task-webhook-url task-webhook-authorization-header no-analytics http-payload-size-limit
ssl-cert-path ssl-key-path ssl-auth-path ssl-require-auth ssl-ocsp-path ssl-resumption ssl-tickets
import-snapshot ignore-missing-snapshot ignore-snapshot-if-db-exists snapshot-dir schedule-snapshot
import-dump ignore-missing-dump ignore-dump-if-db-exists dump-dir log-level max-indexing-memory max-indexing-threads config-file-path
experimental-contains-filter experimental-enable-metrics experimental-enable-logs-route experimental-search-queue-size
experimental-drop-search-after experimental-nb-searches-per-core experimental-logs-mode experimental-dumpless-upgrade
experimental-replication-parameters experimental-reduce-indexing-memory-usage experimental-max-number-of-batched-tasks
experimental-limit-batched-tasks-total-size experimental-embedding-cache-entries experimental-no-snapshot-compaction
experimental-no-edition-2024-for-settings experimental-no-edition-2024-for-dumps experimental-personalization-api-key
experimental-allowed-ip-networks s3-bucket-url s3-bucket-region s3-bucket-name s3-snapshot-prefix s3-access-key s3-secret-key
experimental-s3-role-arn experimental-s3-web-identity-token-file experimental-s3-max-in-flight-parts experimental-s3-compression-level
experimental-s3-signature-duration-seconds experimental-s3-multipart-part-size`

// serverFlags returns the options of the server.
func serverFlags(t *testing.T, parser *kong.Kong) []*kong.Flag {
	t.Helper()
	for _, node := range parser.Model.Children {
		if node.Name == serveName {
			return node.Flags
		}
	}
	t.Fatal("no command serves")
	return nil
}

// TestHelp checks the help: every option belongs to a group and shows its variable, and its default if it has one.
func TestHelp(t *testing.T) {
	parser, err := newParser(program{getenv: func(string) (string, bool) { return "", false }, out: io.Discard, err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range serverFlags(t, parser) {
		known[f.Name] = true
		help := withVariable(f.Value)
		switch {
		case f.Group == nil:
			t.Errorf("--%s is in no group", f.Name)
		case !strings.HasSuffix(help, "[SVC_"+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))+"]"):
			t.Errorf("--%s does not name its variable: %s", f.Name, help)
		case f.Default != "" && f.Default != "0" && !strings.Contains(f.Help, "(default: "+f.Default):
			t.Errorf("--%s does not show its default %s: %s", f.Name, f.Default, f.Help)
		case !f.IsBool() && f.PlaceHolder == "":
			t.Errorf("--%s does not describe its value", f.Name)
		}
	}
	for name := range strings.FieldsSeq(knownOptions) {
		if !known[name] {
			t.Errorf("there is no --%s", name)
		}
	}
}

// TestSwitchesReadTheirVariables gives each switch an invalid value, under both names of its variable: the error shows that it was read.
func TestSwitchesReadTheirVariables(t *testing.T) {
	parser, err := newParser(program{getenv: func(string) (string, bool) { return "", false }, out: io.Discard, err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range serverFlags(t, parser) {
		if !f.IsBool() {
			continue
		}
		name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		for _, prefix := range []string{"SVC_", "MEILI_"} {
			_, err := parseServe(t, nil, map[string]string{prefix + name: "neither"}, "")
			if err == nil || f.Name != "schedule-snapshot" && !strings.Contains(err.Error(), prefix+name) {
				t.Errorf("%s%s is not read: %v", prefix, name, err)
			}
		}
	}
}

func TestInspectingADirectory(t *testing.T) {
	var printed bytes.Buffer
	p := program{getenv: func(string) (string, bool) { return "", false }, out: &printed, err: &printed}
	if code := p.run([]string{"segment", "inspect", t.TempDir()}); code != exitFailure || !strings.Contains(printed.String(), "is a directory") {
		t.Errorf("exit code %d, printed %q", code, printed.String())
	}
}
