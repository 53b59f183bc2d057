package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var networkSearches = flag.Int("network-searches", 2000, "how many searches TestNetworkSearchesLeakNothing makes over links that are well")

// holdings counts what an instance has open.
type holdings struct{ goroutines, files, sockets int }

var goroutineTotal = regexp.MustCompile(`total (\d+)`)

func (in *member) holdings() (h holdings) {
	in.t.Helper()
	status, text, err := in.ask(http.MethodGet, "/debug/pprof/goroutine?debug=1", "", nil)
	m := goroutineTotal.FindStringSubmatch(text)
	if err != nil || m == nil {
		in.t.Fatalf("%s does not report its goroutines: %d %v %.100s", in.name, status, err, text)
	}
	h.goroutines, _ = strconv.Atoi(m[1])
	dir := fmt.Sprintf("/proc/%d/fd", in.process.Process.Pid)
	list, _ := os.ReadDir(dir) // other systems count goroutines only
	for _, f := range list {
		if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			h.sockets++
		}
	}
	h.files = len(list)
	return h
}

// TestNetworkSearchesLeakNothing searches three instances many times, also over links that are cut, slow or dead and with clients that
// hang up, and counts what stays open.
func TestNetworkSearchesLeakNothing(t *testing.T) {
	const (
		clients = 16
		each    = 30          // searches per client and part
		slack   = 3 * clients // connections kept open in all directions; far fewer than searches
	)
	all := newNetwork(t, "--pprof", "--experimental-remote-search-timeout-seconds", "1")
	// Each document is at one instance, so that every search asks all of them.
	all[0].change(`{"shards":{"x":{"remotes":["a"]},"y":{"remotes":["b"]},"z":{"remotes":["c"]}}}`)
	w := newWriter()
	for range 20 {
		w.step(all[0])
	}
	settled(t, all, peace)
	// Without a leader, failed instances are asked again at once.
	for _, in := range all {
		in.must("PATCH", "/network", `{"leader":null}`, nil)
	}
	impatient := http.Client{Timeout: 20 * time.Millisecond, Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	t.Cleanup(impatient.CloseIdleConnections)
	search := func(n int) {
		var group sync.WaitGroup
		for range clients {
			group.Go(func() {
				for i := range n {
					if i%5 == 0 {
						if resp, err := impatient.Get(all[0].url + "/indexes/m/search?q=version&useNetwork=true"); err == nil {
							resp.Body.Close()
						}
						continue
					}
					_, _, _ = all[i%2].ask("POST", "/indexes/m/search", `{"q":"version","useNetwork":true}`, nil)
				}
			})
		}
		group.Wait()
	}
	search(10)
	var before []holdings
	for _, in := range all {
		before = append(before, in.holdings())
	}
	began := time.Now()
	search(*networkSearches / clients)
	t.Logf("%.0f searches a second", float64(*networkSearches)/time.Since(began).Seconds())
	for _, suffered := range []trouble{{}, {cutAfter: 700}, {delay: 30 * time.Millisecond}, {}, {refuse: true}, {}} {
		all[2].link.suffer(suffered)
		search(each)
	}
	all[2].link.suffer(trouble{hole: true})
	search(1)
	all[2].link.suffer(trouble{})
	for deadline := time.Now().Add(peace); ; time.Sleep(50 * time.Millisecond) {
		leaks := ""
		for i, in := range all {
			if now := in.holdings(); now.goroutines > before[i].goroutines+slack || now.files > before[i].files+slack || now.sockets > before[i].sockets+slack {
				leaks += fmt.Sprintf("%s had %+v and has %+v; ", in.name, before[i], now)
			}
		}
		if leaks == "" {
			t.Logf("before %+v", before)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the searches: %s", leaks)
		}
	}
}
