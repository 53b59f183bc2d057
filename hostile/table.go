package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// The results of a run of all attacks are between these lines of a document.
const (
	beginMark = "<!-- hostile: generated -->"
	endMark   = "<!-- hostile: end -->"
)

// row is what one attack did, for the table.
type row struct {
	attack string
	*result
}

// table says in Markdown what all attacks did, under which circumstances and when.
func table(rows []row, circumstances string, at time.Time) []byte {
	b := new(bytes.Buffer)
	fmt.Fprintf(b, "One run of %s, %s. Attacks beyond a limit are refused by it; those “within limits” stay just below.\n\n", circumstances, at.Format(time.DateOnly))
	fmt.Fprintln(b, "| attack | quiet p99 | worst p99 | above five times quiet for | most memory | left | stop | |")
	fmt.Fprintln(b, "| --- | --- | --- | --- | --- | --- | --- | --- |")
	held := 0
	for _, r := range rows {
		verdict := strings.ToLower(r.verdict())
		if verdict == "held" {
			held++
		}
		fmt.Fprintf(b, "| %s | %.1f ms | %.0f ms | %s s | %d MiB | %d MiB | %.1f s | %s |\n", r.attack, ms(r.quiet), ms(r.worst), seconds(r.slow), r.peak>>20,
			max(r.left, 0)>>20, r.stop.Seconds(), verdict)
	}
	fmt.Fprintf(b, "\n%d of %d held.\n", held, len(rows))
	return b.Bytes()
}

// seconds writes quarters of a second.
func seconds(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%.2f", d.Seconds()), "0"), ".0")
}

// circumstances describe the program, the machine and its load. Call it before the run.
func circumstances() string {
	name, commit, load := runtime.GOARCH, "an unknown commit", "unknown"
	if out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if model, ok := strings.CutPrefix(line, "model name"); ok {
				name = strings.TrimSpace(strings.TrimLeft(model, "\t :"))
				break
			}
		}
	}
	return fmt.Sprintf("%s on %d processors (%s), with a load average of %s before", commit, runtime.NumCPU(), name, load)
}

// rewrite puts a table in its place in a file.
func rewrite(name string, table []byte) error {
	old, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	head, rest, ok := bytes.Cut(old, []byte(beginMark))
	_, tail, ended := bytes.Cut(rest, []byte(endMark))
	if !ok || !ended {
		return fmt.Errorf("cannot rewrite %s: it has no line %q, or none %q after it", name, beginMark, endMark)
	}
	out := bytes.Join([][]byte{head, []byte(beginMark + "\n\n"), table, []byte("\n" + endMark), tail}, nil)
	if err := os.WriteFile(name, out, 0o644); err != nil {
		return fmt.Errorf("cannot rewrite %s: %w", name, err)
	}
	return nil
}
