package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"github.com/valyala/fasthttp"
)

// profile captures CPU profiles of indexing, of searching, and of searching during updates, and then a heap profile. It writes files
// for `go tool pprof`, and the top functions as text.
func (m *measurement) profile(s *server, indexSeconds float64, kinds []queryKind) error {
	if err := os.MkdirAll(m.Profiles, 0o755); err != nil {
		return fmt.Errorf("cannot make the directory of profiles: %w", err)
	}
	if err := s.finish(s.do(fasthttp.MethodDelete, "/indexes/"+index, "", nil)); err != nil {
		return err
	}
	if err := s.finish(s.patch("/indexes/"+index+"/settings", []byte(indexSettings))); err != nil {
		return err
	}
	err := m.capture(s, "indexing", math.Max(1, math.Floor(indexSeconds)), func() error {
		_, err := m.index(s)
		return err
	})
	if err != nil {
		return err
	}
	seconds := 10.0
	if m.Quick {
		seconds = 1
	}
	err = m.capture(s, "searching", seconds, func() error {
		_, _, err := s.load(kinds, time.Duration((seconds+0.5)*float64(time.Second)))
		return err
	})
	if err != nil {
		return err
	}
	err = m.capture(s, "updating", seconds, func() error {
		p := program{measurement: m, server: s}
		_, err := p.rate(mixed(kinds), time.Duration((seconds+0.5)*float64(time.Second)), connections, true)
		return err
	})
	if err != nil {
		return err
	}
	heap, err := s.do(fasthttp.MethodGet, "/debug/pprof/heap?gc=1", "", nil)
	if err != nil {
		return err
	}
	return m.save("heap", heap)
}

// capture profiles the CPU while work runs.
func (m *measurement) capture(s *server, name string, seconds float64, work func() error) error {
	type answer struct {
		body []byte
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		body, err := s.do(fasthttp.MethodGet, fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", seconds), "", nil)
		done <- answer{body, err}
	}()
	time.Sleep(20 * time.Millisecond) // for the profile to begin
	if err := work(); err != nil {
		return err
	}
	a := <-done
	if a.err != nil {
		return a.err
	}
	return m.save(name+".cpu", a.body)
}

// save writes a profile and its summary.
func (m *measurement) save(name string, data []byte) error {
	p, err := profile.ParseData(data)
	if err != nil {
		return fmt.Errorf("cannot read the profile %s: %w", name, err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("cannot save the profile %s: %w", name, err)
	}
	relocate(p, dir)
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		return fmt.Errorf("cannot encode the profile %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(m.Profiles, name+".pb.gz"), out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("cannot write a profile: %w", err)
	}
	if err := os.WriteFile(filepath.Join(m.Profiles, name+".txt"), summary(p, 40), 0o644); err != nil {
		return fmt.Errorf("cannot write the summary of a profile: %w", err)
	}
	return nil
}

// relocate removes the directories of this machine from a profile: it names sources from their module on, and those of this one from
// root on.
func relocate(p *profile.Profile, root string) {
	for _, m := range p.Mapping {
		m.File = filepath.Base(m.File)
	}
	for _, f := range p.Function {
		name := f.Filename
		if rest, ok := strings.CutPrefix(name, root+"/"); ok {
			name = rest
		} else if _, rest, ok := strings.Cut(name, "/pkg/mod/"); ok {
			name = rest
		} else if _, rest, ok := strings.Cut(name, "/src/"); ok {
			name = rest
		}
		f.Filename = name
	}
}

// summary lists the functions in which most is spent, of the kind of value that
// the profile shows by default: CPU time, or bytes in use.
func summary(p *profile.Profile, top int) []byte {
	value := len(p.SampleType) - 1
	for i, t := range p.SampleType {
		if t.Type == p.DefaultSampleType {
			value = i
		}
	}
	type line struct {
		name            string
		flat, inclusive int64
	}
	lines := make(map[string]*line)
	at := func(name string) *line {
		if lines[name] == nil {
			lines[name] = &line{name: name}
		}
		return lines[name]
	}
	var total int64
	for _, s := range p.Sample {
		v := s.Value[value]
		total += v
		seen := make(map[string]bool)
		for i, l := range s.Location {
			for j, f := range l.Line { // inlined functions first
				if f.Function == nil {
					continue
				}
				name := f.Function.Name
				if i == 0 && j == 0 {
					at(name).flat += v
				}
				if !seen[name] {
					seen[name] = true
					at(name).inclusive += v
				}
			}
		}
	}
	sorted := make([]*line, 0, len(lines))
	for _, l := range lines {
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(a, b *line) int {
		switch {
		case a.flat != b.flat:
			return int(math.Copysign(1, float64(b.flat-a.flat)))
		case a.inclusive != b.inclusive:
			return int(math.Copysign(1, float64(b.inclusive-a.inclusive)))
		}
		return strings.Compare(a.name, b.name)
	})
	share := func(v int64) float64 { return 100 * float64(v) / float64(max(total, 1)) }
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s in all", p.SampleType[value].Type, amount(total, p.SampleType[value].Unit))
	if p.DurationNanos > 0 {
		fmt.Fprintf(&b, ", over %.1f s", float64(p.DurationNanos)/1e9)
	}
	fmt.Fprintf(&b, "\n\n%8s  %8s  %s\n", "flat", "with all", "function")
	for _, l := range sorted[:min(top, len(sorted))] {
		fmt.Fprintf(&b, "%7.1f%%  %7.1f%%  %s\n", share(l.flat), share(l.inclusive), l.name)
	}
	return b.Bytes()
}

func amount(v int64, unit string) string {
	switch unit {
	case "nanoseconds":
		return fmt.Sprintf("%.2f s", float64(v)/1e9)
	case "bytes":
		return fmt.Sprintf("%.1f MiB", mib(v))
	}
	return fmt.Sprintf("%d %s", v, unit)
}
