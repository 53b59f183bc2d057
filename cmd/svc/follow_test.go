package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/bucket/s3test"
)

var followRounds = flag.Int("follow-rounds", 2, "rounds of TestAFollowerAnswersAsTheWriter")

// publishedPair is a server that publishes, and a follower of its publication.
type publishedPair struct {
	*pair
	store []string // options of both servers
	more  []string // options of the follower
}

func (p *publishedPair) startWriter() {
	p.writer = groupMember{start(p.t, p.home[0], append(p.store, "--publish", "s3://backups/shop")...)}
}

func (p *publishedPair) startReader() {
	p.reader = groupMember{start(p.t, p.home[1], append(append(p.store, "--follow", "s3://backups/shop"), p.more...)...)}
}

func storeOptions(s *s3test.Server) []string {
	return []string{"--master-key", groupKey, "--publish-endpoint", s.URL, "--publish-region", "here-1", "--publish-access-key", s3test.AccessKey, "--publish-secret-key", s3test.SecretKey,
		"--publish-interval", "10ms", "--experimental-allowed-ip-networks", "127.0.0.0/8"}
}

// TestAFollowerAnswersAsTheWriter makes random changes at a server that publishes to an unreliable store, and restarts it and its follower
// in between. At the same position both must give the same answers, byte for byte. No search of the follower may fail.
func TestAFollowerAnswersAsTheWriter(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := s3test.New()
	defer s.Close()
	odds := rand.New(rand.NewPCG(seed, 1))
	s.Fault = func(*http.Request) s3test.Fault {
		if odds.IntN(25) > 0 {
			return s3test.None
		}
		return s3test.Fault(1 + odds.IntN(int(s3test.Cut)))
	}
	p := &publishedPair{pair: &pair{t: t, home: [2]string{filepath.Join(t.TempDir(), "writer"), filepath.Join(t.TempDir(), "reader")}}, store: storeOptions(s)}
	p.startWriter()
	p.more = []string{"--follow-writer", p.writer.url}
	p.startReader()
	p.writer.ask("POST", "/indexes/a/documents", `[{"id":1,"text":"word","kind":1,"v":1}]`)
	p.writer.ask("PATCH", "/experimental-features", `{"dynamicSearchRules":true,"chatCompletions":true,"editDocumentsByFunction":true}`)
	p.idle()
	p.writer.ask("PUT", "/aliases/main", `{"indexUid":"a"}`)
	p.settle()
	for round := range *followRounds {
		search := p.search("/health")
		for range 10 {
			m := p.writer
			if round == 0 && r.IntN(3) == 0 {
				m = p.reader // which forwards it
			}
			method, path, body := randomWrite(r)
			if b, h := m.ask(method, path, body); h.Get("Svc-Position") == "" {
				t.Errorf("%s %s: %s", method, path, b)
			}
		}
		if round%2 == 1 {
			if err := p.writer.stop(); err != nil {
				t.Fatal(err)
			}
			p.startWriter()
		}
		p.same()
		if n := search.end(); n == 0 {
			t.Error("no search ran")
		}
		if t.Failed() {
			t.Logf("the log of the follower:\n%s", p.reader.log)
			return
		}
		if round%2 == 0 {
			if err := p.reader.stop(); err != nil {
				t.Fatal(err)
			}
			p.more = nil // without the former address of the writer
			p.startReader()
		}
	}
	// Without a writer, writes are refused.
	if b, _ := p.reader.ask("POST", "/indexes/a/documents", `[]`); !strings.Contains(b, "writer_unreachable") || !strings.Contains(b, "--follow-writer") {
		t.Errorf("a write is answered with %s", b)
	}
	if b, _ := p.reader.ask("GET", "/group", ""); !strings.Contains(b, `"writer":"s3://backups/shop"`) || !strings.Contains(b, `"role":"reader"`) {
		t.Errorf("the group is %s", b)
	}
	for _, in := range []groupMember{p.writer, p.reader} {
		metrics, _ := in.ask("GET", "/metrics", "")
		for what, text := range map[string]string{"its log": in.log.String(), "its metrics": metrics} {
			if strings.Contains(text, s3test.SecretKey) || strings.Contains(text, groupKey) {
				t.Errorf("%s shows a secret", what)
			}
		}
	}
}

// TestAFollowerRefuses starts followers that must refuse to follow.
func TestAFollowerRefuses(t *testing.T) {
	to := "file://" + filepath.ToSlash(t.TempDir())
	home, other := filepath.Join(t.TempDir(), "writer"), filepath.Join(t.TempDir(), "other")
	key := []string{"--master-key", groupKey, "--publish-interval", "10ms"}
	writer := groupMember{start(t, home, append(key, "--publish", to)...)}
	follower := groupMember{start(t, filepath.Join(t.TempDir(), "follower"), append(key, "--follow", to)...)}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if b, h := follower.ask("GET", "/health", ""); strings.Contains(b, `"available"`) && h.Get("Svc-Staleness") != "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the follower is never ready")
		}
	}
	if err := follower.stop(); err != nil {
		t.Fatal(err)
	}
	if err := writer.stop(); err != nil {
		t.Fatal(err)
	}
	if err := start(t, other, key...).stop(); err != nil {
		t.Fatal(err)
	}
	for want, options := range map[string][]string{
		"encrypted with another master key": {filepath.Join(t.TempDir(), "new"), "--follow", to, "--master-key", "another-key-of-16-bytes"},
		"has the data of a writer":          {home, "--follow", to, "--master-key", groupKey},
		"is not empty":                      {other, "--follow", to, "--master-key", groupKey},
	} {
		if _, err := tryStartFor(t, options[0], options[1:]...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", options, err, want)
		}
	}
	for want, options := range map[string][]string{
		"exclude each other":    {"--follow", to, "--publish", to},
		"--follow-writer":       {"--follow-writer", "http://127.0.0.1:1"},
		"use the URL":           {"--follow", to, "--follow-writer", "ftp://x"},
		"and --group-name":      {"--follow", to, "--group-name", "shop", "--group-addr", "127.0.0.1:1"},
		"not the URL of a buck": {"--follow", "http://x"},
		"between 10ms and 1h":   {"--follow", to, "--publish-interval", "1ms"},
		"--publish-verify must": {"--publish", to, "--publish-verify=-5h"},
	} {
		if _, err := parseServe(t, options, nil, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", options, err, want)
		}
	}
}

// tryStartFor starts a server, and returns the error with which it ends soon.
func tryStartFor(t *testing.T, db string, args ...string) (*instance, error) {
	t.Helper()
	in, err := tryStart(t, db, args...)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if !(groupMember{in}).alive() {
			return nil, in.stop()
		}
	}
	return in, fmt.Errorf("it keeps running")
}
