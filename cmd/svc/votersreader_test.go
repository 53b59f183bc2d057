package main

import (
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"svc/internal/group"
)

// TestAReaderOfThreeVoters writes to three voters and to a reader of them while the leader dies and comes back. No acknowledged write may
// be lost, and the reader must give the same answers as the leader at the same position, byte for byte.
func TestAReaderOfThreeVoters(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system cannot pause processes")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := newVoterRun(t, seed)
	g.all()
	options := g.voters[0].options
	r := &member{t: t, name: "r", data: filepath.Join(t.TempDir(), "data"), key: groupKey, options: []string{
		"--master-key", groupKey, "--group-name", "shop", "--group-role", "reader", "--group-addr", freeAddress(), "--group-join", options[len(options)-1],
	}}
	t.Cleanup(r.kill)
	r.start()
	at := func(m *member) groupMember { return groupMember{&instance{t: t, url: m.url, log: &m.log}} }
	follows := func(s *group.Status) bool {
		return s.Reader != nil && s.Reader.State == group.StateFollows && s.Reader.AnswersReads
	}
	at(r).until("followed by the reader", follows)
	r.must("PATCH", "/experimental-features", `{"dynamicSearchRules":true,"chatCompletions":true,"editDocumentsByFunction":true}`, nil)
	for _, uid := range []string{"a", "b"} {
		r.must("POST", "/indexes/"+uid+"/documents", `[{"id":1,"text":"word","kind":1,"v":1}]`, nil)
	}
	r.must("PATCH", "/indexes/"+kept+"/settings", `{"filterableAttributes":["id"]}`, nil)
	urls := []string{r.url}
	for _, m := range g.voters {
		urls = append(urls, m.url)
	}
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for _, c := range g.clients {
		writing.Go(func() { c.write(urls, stop) })
	}
	g.wait(300)
	i := g.leader()
	g.voters[i].kill()
	g.wait(1500)
	g.voters[i].start()
	g.leader()
	close(stop)
	writing.Wait()
	g.agree()
	g.writer, g.reader = at(g.voters[g.leader()]), at(r)
	g.same()
	g.promised()

	if status, text, err := r.ask("POST", "/group/promote", `{"force":true}`, nil); err != nil || status != 409 || !strings.Contains(text, "elect") {
		t.Errorf("a reader of voters is promoted: %d %s %v", status, text, err)
	}
	var out strings.Builder
	c := groupStatusCommand{remoteOptions: remoteOptions{URL: g.writer.url, Key: groupKey}}
	if err := c.Run(program{getenv: func(string) (string, bool) { return "", false }, out: &out, err: io.Discard}); err != nil || strings.Count(out.String(), " reader ") != 1 || strings.Count(out.String(), " voter ") != 3 {
		t.Errorf("the group is shown as %v\n%s", err, out.String())
	}
	if t.Failed() {
		t.Logf("the reader:\n%s", r.log.String())
	}
}
