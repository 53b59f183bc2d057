package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// results are all figures of a run.
type results struct {
	environment
	data           *dataset
	startTime      time.Duration // on an empty directory
	startMemory    memory
	restartTime    time.Duration // with the data
	restartMemory  memory
	indexing       indexing
	updates        latencies
	searches       []searching
	searchedMemory memory
	beside         beside
	sizes          []*comparison // the collection, and a large one if that was asked for
}

// indexing is what one request with all documents costs.
type indexing struct {
	seconds, cpuSeconds float64
	peak, disk          int64 // bytes
}

// environment is what the figures depend on beside the code.
type environment struct {
	commit, cpu, command string
	cores                int
	loadAverage          string // of the last minute before the run: what else the machine was doing
}

func readEnvironment(o options) environment {
	e := environment{commit: "unknown", cpu: "unknown", loadAverage: "unknown", cores: runtime.NumCPU(), command: o.command()}
	if out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output(); err == nil {
		e.commit = strings.TrimSpace(string(out))
	} else if info, ok := debug.ReadBuildInfo(); ok { // not among its sources
		of := func(key string) string {
			i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == key })
			if i < 0 {
				return ""
			}
			return info.Settings[i].Value
		}
		if revision := of("vcs.revision"); revision != "" {
			e.commit = revision[:12]
			if of("vcs.modified") == "true" {
				e.commit += "-dirty"
			}
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		e.loadAverage, _, _ = strings.Cut(string(load), " ")
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				e.cpu = strings.TrimSpace(strings.TrimLeft(name, "\t :"))
				break
			}
		}
	}
	return e
}

// command is the command line that gives these figures, without directories of this machine.
func (o options) command() string {
	c := "go run ./bench"
	if o.Vectors != "" {
		c += " --vectors " + filepath.Base(o.Vectors)
		if o.Vectors == "generated" {
			c += fmt.Sprintf(" --rows %d --dimensions %d", o.Rows, o.Dimensions)
		}
		if o.Peers != "" {
			c += " --peers python3"
		}
	} else if o.Data != "" {
		c += " --data " + filepath.Base(o.Data)
	} else if o.Documents != 63666 {
		c += fmt.Sprintf(" --documents %d", o.Documents)
	}
	if o.Large > 0 {
		c += fmt.Sprintf(" --large %d", o.Large)
	}
	if len(o.Cores) > 0 {
		c += " --cores " + strings.Trim(strings.ReplaceAll(fmt.Sprint(o.Cores), " ", ","), "[]")
	}
	if o.Network {
		c += " --network"
	}
	if o.Group {
		c += " --group"
	}
	if o.Publish {
		c += " --publish"
	}
	if o.Voters {
		c += " --voters"
	}
	if o.Kills != 0 {
		c += fmt.Sprintf(" --kills %d", o.Kills)
	}
	if o.Steady > 0 {
		c += " --steady " + o.Steady.String()
	}
	if len(o.Directories) > 0 {
		c += " --directories " + strings.Join(o.Directories, ",")
	}
	if o.SyncDelay > 0 {
		c += " --sync-delay " + o.SyncDelay.String()
	}
	if o.Members {
		c += " --members"
	}
	if o.Texts {
		c += " --texts"
	}
	if o.Engines != "" {
		c += " --engines " + filepath.Base(o.Engines)
		if o.Jars != "" {
			c += " --jars " + filepath.Base(o.Jars)
		}
		c += " --libraries " + strings.Join(o.Libraries, ",")
	}
	if o.Quick {
		c += " --quick"
	}
	return c
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// heading is what stands ahead of the tables of a data set.
func (e *environment) heading(title string, data *dataset) []byte {
	text := fmt.Appendf(nil, "## %s\n\nCommit `%s` on %d cores of %s (%s/%s, %s), load average before it %s.\n",
		title, e.commit, e.cores, e.cpu, runtime.GOOS, runtime.GOARCH, runtime.Version(), e.loadAverage)
	return fmt.Appendf(text, "%d documents, %.1f MiB of JSON. Command: `%s`.\n\n", data.documents, mib(int64(len(data.payload))), e.command)
}

// tables renders the figures.
func (r *results) tables() []byte {
	size := int64(len(r.data.payload))
	b := bytes.NewBuffer(r.heading(r.data.title, r.data))
	sizeTables(b, r.sizes)
	fmt.Fprintf(b, "| writing | |\n| --- | --- |\n")
	f := r.indexing
	fmt.Fprintf(b, "| indexing, one request, until the task is finished | %.2f s: %.0f documents/s, %.1f MB/s |\n", f.seconds, float64(r.data.documents)/f.seconds, float64(size)/1e6/f.seconds)
	fmt.Fprintf(b, "| CPU time of it | %.1f s |\n", f.cpuSeconds)
	fmt.Fprintf(b, "| peak RSS meanwhile | %.0f MiB |\n", mib(f.peak))
	fmt.Fprintf(b, "| data directory after it | %.1f MiB: %.2f × the input |\n", mib(f.disk), float64(f.disk)/float64(size))
	fmt.Fprintf(b, "| one document changed, request to finished task | median %.2f ms, p99 %.2f ms |\n\n", r.updates.quantile(0.5), r.updates.quantile(0.99))

	fmt.Fprintf(b, "| process | |\n| --- | --- |\n")
	fmt.Fprintf(b, "| start, empty | %.0f ms, RSS %.0f MiB |\n", milliseconds(r.startTime), mib(r.startMemory.resident))
	fmt.Fprintf(b, "| start, with the data | %.0f ms, RSS %.0f MiB |\n", milliseconds(r.restartTime), mib(r.restartMemory.resident))
	fmt.Fprintf(b, "| RSS after the searches | %.0f MiB, %.0f MiB of it anonymous |\n\n", mib(r.searchedMemory.resident), mib(r.searchedMemory.anonymous))

	fmt.Fprintf(b, "| searches that come again, nothing changes, limit 20 | p50 ms | p99 ms | QPS, %d connections | CPU ms each | mean hits |\n| --- | --- | --- | --- | --- | --- |\n", connections)
	for _, s := range r.searches {
		fmt.Fprintf(b, "| %s | %.2f | %.2f | %.0f | %.2f | %.0f |\n", s.name, s.p50, s.p99, s.qps, s.cpuPerRequest, s.hits)
	}
	fmt.Fprintf(b, "\n%d search rules that a search of one word does not meet add %.0f µs to its p50.\n", r.beside.rules, microseconds(r.beside.added))
	return b.Bytes()
}

// The tables of a data set are between these lines. The first one names it.
const (
	beginMark = "<!-- bench: %s -->"
	endMark   = "<!-- bench: end -->"
)

const page = `# Benchmarks

Measured by [bench](bench): a fresh server, asked over HTTP from the same machine. The load generator shares the cores with the server, so
throughput is what is left to it. Absolute figures move by tens of percent between machines; compare runs of one machine.

- First queries: on one connection, to a server that was just started. Each query is asked once. Most are drawn from
  the documents, and some are known to be slow; up to 2000 of a kind, 600 of large collections.
- Beside updates: eight connections ask up to 1000 different queries of a kind again and again. Another one changes a document 20 times a second, or
  less often where a change takes longer.
- Indexing: every document in one request, from its first byte to the finished task.
- Changing a document: from the request to the finished task, one after the other.
- Searches that come again: p50 and p99 over one connection that asks without a pause, after each query was asked once; 400 different queries of a kind.
- More and more processors: the server is held to so many of a machine's, and asked over four connections for each (8 to 64 in all) by the rest of them, with 16 of 16 beside the
  server. First queries are up to 4000 of a kind, each asked once; of placeholders there are so few that their processor time is not told well.
`

// rewrite puts the tables of a data set in their place in a file, or at its end if it has no place for them. It creates a missing
// file.
func rewrite(name, dataset string, tables []byte) error {
	old, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte(page), nil
	}
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	out, err := place(old, dataset, tables)
	if err != nil {
		return fmt.Errorf("cannot rewrite %s: %w", name, err)
	}
	if err := os.WriteFile(name, out, 0o644); err != nil {
		return fmt.Errorf("cannot rewrite %s: %w", name, err)
	}
	return nil
}

// place replaces what stands between the marks of a data set.
func place(old []byte, dataset string, tables []byte) ([]byte, error) {
	begin := fmt.Sprintf(beginMark, dataset)
	section := begin + "\n" + string(bytes.TrimSpace(tables)) + "\n" + endMark
	head, rest, ok := bytes.Cut(old, []byte(begin))
	if !ok {
		return fmt.Appendf(bytes.TrimRight(old, "\n"), "\n\n%s\n", section), nil
	}
	_, tail, ok := bytes.Cut(rest, []byte(endMark))
	if !ok {
		return nil, fmt.Errorf("the line %q is not followed by %q", begin, endMark)
	}
	return bytes.Join([][]byte{head, []byte(section), tail}, nil), nil
}
