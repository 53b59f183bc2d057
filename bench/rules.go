package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// beside is the cost of search rules for searches that match none of them.
type beside struct {
	rules int
	added time.Duration // to the median of a search of one word
}

// rules gives the server rules, as an import would, and asks with their feature off and on in turns.
func (m *measurement) rules(ctx context.Context, k queryKind) (beside, error) {
	f := beside{rules: 75_000}
	rounds := 9
	if m.Quick {
		f.rules, rounds = 500, 1
	}
	dir := filepath.Join(m.dir, "kept", "dynamic-search-rules")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return f, fmt.Errorf("cannot bring rules: %w", err)
	}
	for i := range f.rules {
		conditions := [...]string{ // of both forms
			`[{"scope":"query","contains":"winter sale %d"}]`, `{"query":{"words":"winter sale w%d"}}`, `{"filter":{"values":{"brand":"b%d","color":"red"}}}`,
		}
		rule := fmt.Appendf(nil, `{"uid":"rule-%d","active":true,"conditions":`+conditions[i%len(conditions)]+
			`,"actions":[{"selector":{"indexUid":%q,"id":"%[1]d"},"action":{"type":"pin","position":0}}]}`, i, i, index)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%09d.json", i)), rule, 0o666); err != nil {
			return f, fmt.Errorf("cannot bring rules: %w", err)
		}
	}
	s, err := m.start(ctx)
	if err != nil {
		return f, err
	}
	defer s.kill()
	c := s.connection()
	var off, on latencies
	for range rounds {
		for enabled, l := range map[bool]*latencies{false: &off, true: &on} {
			if _, err := s.patch("/experimental-features", fmt.Appendf(nil, `{"dynamicSearchRules": %t}`, enabled)); err != nil {
				return f, err
			}
			for round := range 2 { // the first one is to warm up
				for _, body := range k.bodies {
					began := time.Now()
					if _, err := c.search(body); err != nil {
						return f, err
					}
					if round > 0 {
						*l = append(*l, time.Since(began))
					}
				}
			}
		}
	}
	f.added = time.Duration((on.quantile(0.5) - off.quantile(0.5)) * float64(time.Millisecond))
	return f, s.stop()
}
