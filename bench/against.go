package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// runAgainst measures first queries of this program and of a server from another commit of this repository, which it builds. It
// prints the table of a comparison and, for benchstat -col /server, the figures of each turn. With Counts it prints instructions,
// which do not depend on other work on the machine.
func (m *measurement) runAgainst(ctx context.Context) error {
	before, err := buildCommit(ctx, m.Against, filepath.Dir(m.dir))
	if err != nil {
		return err
	}
	own := *m
	own.Measure = []string{"first"}
	own.Peer = map[string]string{"before": before}
	if m.Counts {
		return own.countFirst(ctx)
	}
	c, err := own.compare(ctx)
	if err != nil {
		return err
	}
	os.Stdout.Write(c.tables())
	for i, k := range c.kinds {
		for j, p := range c.programs {
			for _, ms := range c.figures[i][j].turns {
				fmt.Printf("%s 1 %.6f CPU-ms/op\n", benchmarkName(k.name, p.name), ms)
			}
		}
	}
	return nil
}

// benchmarkName is the name of a line in the format of Go's benchmarks.
func benchmarkName(kind, server string) string {
	return fmt.Sprintf("BenchmarkFirst/kind=%s/server=%s", strings.NewReplacer(" ", "_", "/", "-").Replace(kind), server)
}

// buildCommit builds the server of a commit below dir.
func buildCommit(ctx context.Context, commit, dir string) (binary string, err error) {
	source := filepath.Join(dir, "source")
	if err := os.MkdirAll(source, 0o755); err != nil {
		return "", fmt.Errorf("cannot make a directory for the source of %s: %w", commit, err)
	}
	archive, err := exec.CommandContext(ctx, "git", "archive", commit).Output()
	if err != nil {
		return "", fmt.Errorf("git archive %s: %w", commit, err)
	}
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", source)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot unpack the source of %s: %w\n%s", commit, err, out)
	}
	binary = filepath.Join(dir, "svc-before")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/svc")
	build.Dir = source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", commit, err, out)
	}
	return binary, nil
}

// countedQueries is how many first queries of a kind are counted. Counting makes a server fifty times slower.
const countedQueries = 300

// countFirst counts the instructions of first queries by cachegrind, kind by kind: those of a server that answers them, minus those
// of a server that gets no queries.
func (m *measurement) countFirst(ctx context.Context) error {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return fmt.Errorf("--counts needs valgrind: %w", err)
	}
	n := countedQueries
	if m.Quick {
		n /= 20
	}
	kinds, err := drawQueries(m.data, n, true)
	if err != nil {
		return err
	}
	for name, binary := range map[string]string{"now": m.binary, "before": m.Peer["before"]} {
		p := &program{name: name, measurement: new(measurement)}
		*p.measurement = *m
		p.binary, p.dir = binary, filepath.Join(filepath.Dir(m.dir), name)
		if _, err := p.fill(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := p.stop(); err != nil {
			return err
		}
		idle, err := p.count(ctx, nil)
		if err != nil {
			return err
		}
		for _, k := range kinds {
			if !strings.Contains(k.name, m.Kinds) {
				continue
			}
			all, err := p.count(ctx, k.bodies)
			if err != nil {
				return err
			}
			fmt.Printf("%s 1 %d instructions/op\n", benchmarkName(k.name, name), (all-idle)/int64(len(k.bodies)))
		}
	}
	return nil
}

var instructions = regexp.MustCompile(`I +refs: +([0-9,]+)`)

// count starts the program under cachegrind, sends some queries, and returns how many instructions it has executed when it ends.
func (p *program) count(ctx context.Context, bodies [][]byte) (int64, error) {
	log := p.dir + ".valgrind"
	p.under = []string{"env", "GOMAXPROCS=1", "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--log-file=" + log}
	defer func() { p.under = nil }()
	var err error
	if p.server, err = p.start(ctx); err != nil {
		return 0, err
	}
	defer p.kill()
	p.rest()
	c := p.connection()
	for _, body := range bodies {
		if _, err := c.search(body); err != nil {
			return 0, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if err := p.stop(); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return 0, fmt.Errorf("cannot read what valgrind says: %w", err)
	}
	found := instructions.FindSubmatch(text)
	if found == nil {
		return 0, errors.New("valgrind counts no instructions: " + string(text))
	}
	return strconv.ParseInt(strings.ReplaceAll(string(found[1]), ",", ""), 10, 64)
}

// rest is settle for a server that takes fifty times as long for everything.
func (p *program) rest() {
	const idle = 0.03 // seconds of CPU in half a second
	for still, last := 0, p.cpuSeconds(); still < stillnessChecks; still++ {
		time.Sleep(500 * time.Millisecond)
		now := p.cpuSeconds()
		if now-last > idle {
			still = -1
		}
		last = now
	}
}
