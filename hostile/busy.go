package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Servers rarely have the processors for themselves. The loads of this file run beside busy loops: clients send the largest requests
// that the limits allow, every request must be answered within seconds, and no search may run after the clients have left.

const (
	busyLoops       = 3
	unansweredAfter = 5 * time.Second // an answer that comes later counts as none
	clientTimeout   = 30 * time.Second
	hitsAtOnce      = 1000
	busyDocuments   = 600 // in each index
	busyIndexes     = 3
)

// load is what clients send beside the busy loops.
type load struct {
	name    string
	hosts   int // several form a network
	clients int // per host
	queries int // per federated search; 0 sends plain searches
}

var loads = []load{
	{"federated searches, 4 × 6", 1, 4, 6},
	{"federated searches, 8 × 3", 1, 8, 3},
	{"federated searches, 16 × 6", 1, 16, 6},
	{"federated searches, 16 × 2", 1, 16, 2},
	{"searches in a network of three", 3, 4, 0},
}

// outcome is what a load did.
type outcome struct {
	answers    int
	longest    time.Duration
	unanswered int
	refused    map[string]int // number of answers by their error
	running    int            // searches that run or wait after the clients have left
}

func (b *outcome) verdict() string {
	switch {
	case b.unanswered > 0:
		return "DOES NOT ANSWER"
	case len(b.refused) > 0:
		return fmt.Sprint("REFUSES: ", b.refused)
	case b.running > 0:
		return "KEEPS TURNS"
	}
	return "held"
}

// measureLoads measures each load whose name matches for long, and returns how many failed.
func measureLoads(program []string, which *regexp.Regexp, long time.Duration) (failed int, err error) {
	fmt.Printf("%-42s %9s %9s %11s %8s  %s\n", "load beside busy loops", "answers", "longest", "unanswered", "running", "verdict")
	for _, l := range loads {
		if !which.MatchString(l.name) {
			continue
		}
		b, err := measureLoad(program, l, long)
		if err != nil {
			return failed, fmt.Errorf("%s: %w", l.name, err)
		}
		verdict := b.verdict()
		if verdict != "held" {
			failed++
		}
		fmt.Printf("%-42s %9d %6.0f ms %11d %8d  %s\n", l.name, b.answers, ms(b.longest), b.unanswered, b.running, verdict)
	}
	return failed, nil
}

// measureLoad sends a load to fresh servers for long.
func measureLoad(program []string, l load, long time.Duration) (*outcome, error) {
	var hosts []*server
	defer func() {
		for _, s := range hosts {
			s.remove()
		}
	}()
	for range l.hosts {
		s, err := launch(program)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, s)
	}
	if err := fillForLoad(hosts); err != nil {
		return nil, err
	}
	endLoops, err := startLoops()
	if err != nil {
		return nil, err
	}
	b := &outcome{refused: map[string]int{}}
	var mu sync.Mutex
	var group sync.WaitGroup
	end := time.Now().Add(long)
	for i, s := range hosts {
		for j := range l.clients {
			group.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				c := &http.Client{Timeout: clientTimeout}
				defer c.CloseIdleConnections()
				for time.Now().Before(end) {
					path, body := l.request(r)
					began := time.Now()
					answer, err := s.request(c, "POST", path, masterKey, "application/json", "", []byte(body))
					took := time.Since(began)
					mu.Lock()
					b.longest = max(b.longest, took)
					switch {
					case took >= unansweredAfter:
						b.unanswered++
					case err != nil:
						b.refused[fmt.Sprintf("%.100s", err)]++
					case l.hosts > 1 && !bytes.Contains(answer, []byte(`"remoteErrors":{}`)):
						b.refused["remoteErrors"]++
					default:
						b.answers++
					}
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	endLoops()
	for _, s := range hosts {
		running, err := s.untilIdle()
		if err != nil {
			return nil, err
		}
		b.running += running
	}
	return b, nil
}

// request makes the next request of a client.
func (l *load) request(r *rand.Rand) (path, body string) {
	uid := func(n int) string { return fmt.Sprintf("i%d", n%busyIndexes) }
	if l.queries == 0 {
		return "/indexes/" + uid(r.IntN(busyIndexes)) + "/search", fmt.Sprintf(`{"q":%q,"limit":%d,"attributesToRetrieve":["id"]}`, word(r), hitsAtOnce)
	}
	queries := make([]string, l.queries)
	for i := range queries {
		queries[i] = fmt.Sprintf(`{"indexUid":%q,"q":%q}`, uid(i), word(r))
	}
	return multiSearch, fmt.Sprintf(`{"federation":{"limit":%d},"queries":[%s]}`, hitsAtOnce, strings.Join(queries, ","))
}

// fillForLoad creates the indexes to search. Several hosts become a network in which each shard has two owners.
func fillForLoad(hosts []*server) error {
	leader := hosts[0]
	for _, s := range hosts {
		if _, err := s.do("PATCH", "/experimental-features", masterKey, []byte(`{"network":true,"metrics":true}`)); err != nil {
			return err
		}
	}
	if len(hosts) > 1 {
		var remotes, shards []string
		for i, s := range hosts {
			remotes = append(remotes, fmt.Sprintf(`"h%d":{"url":"http://%s","searchApiKey":%q,"writeApiKey":%q}`, i, s.address, masterKey, masterKey))
			shards = append(shards, fmt.Sprintf(`"s%d":{"remotes":["h%d","h%d"]}`, i, i, (i+1)%len(hosts)))
		}
		network := fmt.Sprintf(`{"self":"h0","leader":"h0","remotes":{%s},"shards":{%s}}`, strings.Join(remotes, ","), strings.Join(shards, ","))
		if err := leader.task("PATCH", "/network", masterKey, []byte(network)); err != nil {
			return err
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = word(r)
		}
		return strings.Join(all, " ")
	}
	for i := range busyIndexes {
		var b bytes.Buffer
		for id := range busyDocuments {
			fmt.Fprintf(&b, `{"id":%d,"title":%q,"text":%q}`+"\n", id, text(4), text(60))
		}
		if err := leader.send("POST", fmt.Sprintf("/indexes/i%d/documents", i), masterKey, "application/x-ndjson", b.Bytes()); err != nil {
			return err
		}
	}
	for _, s := range hosts { // the other hosts index their documents a moment later
		for {
			answer, err := s.do("GET", "/tasks?statuses=enqueued,processing&limit=1", masterKey, nil)
			if err != nil {
				return err
			}
			if bytes.Contains(answer, []byte(`"total":0`)) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

// startLoops starts the busy loops. Each is a process of its own with normal priority.
func startLoops() (end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var ends []func()
	end = func() {
		for _, e := range ends {
			e()
		}
	}
	for range busyLoops {
		c := exec.Command(self, "--loop")
		in, err := c.StdinPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			end()
			return nil, err
		}
		ends = append(ends, func() { in.Close(); c.Wait() })
	}
	return end, nil
}

// loop keeps a processor busy until in ends. Then it exits.
func loop(in io.Reader) {
	go func() { io.Copy(io.Discard, in); os.Exit(0) }()
	//lint:ignore SA5002 it is here to spin
	for {
	}
}

// idleTime is how long a search may run after its client has left. svc ends every search before that.
const idleTime = 70 * time.Second

// untilIdle waits until no search runs or waits, and returns how many still do.
func (s *server) untilIdle() (running int, err error) {
	for end := time.Now().Add(idleTime); ; time.Sleep(50 * time.Millisecond) {
		answer, err := s.do("GET", "/metrics/recent", masterKey, nil)
		if err != nil {
			return 0, err
		}
		var recent struct {
			Now struct{ SearchesRunning, SearchesWaiting int }
		}
		if err := json.Unmarshal(answer, &recent); err != nil {
			return 0, err
		}
		if running = recent.Now.SearchesRunning + recent.Now.SearchesWaiting; running == 0 || time.Now().After(end) {
			return running, nil
		}
	}
}
