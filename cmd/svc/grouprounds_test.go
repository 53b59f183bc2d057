package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/group"
)

var (
	groupRounds = flag.Int("group-rounds", 2, "how often TestGroupKeepsItsPromises troubles a group")
	groupSeed   = flag.Uint64("group-seed", 0, "seed of TestGroupKeepsItsPromises; 0: the time")
	groupOnly   = flag.String("group-trouble", "", "troubles of TestGroupKeepsItsPromises whose name contains this")
)

// kept is the index of TestGroupKeepsItsPromises whose documents never change.
const kept = "kept"

// groupRun is a writer and a reader in their own processes, and clients of both.
type groupRun struct {
	*pair
	r        *rand.Rand
	process  [2]*member // writer, reader
	link     *link      // connects the reader to the writer
	back     *link      // connects the former writer to the promoted reader
	disk     string     // a small disk with the data of one member; "": cannot be mounted
	clients  []*groupClient
	promoted int // number of promotions
}

// groupClient writes until it is stopped. It belongs to one goroutine.
type groupClient struct {
	r    *rand.Rand
	http http.Client
	id   int
	next int

	acked, sent map[string]bool // documents of the index kept
	keys        map[string]bool // acknowledged keys by name
	others      int             // acknowledged writes of other kinds
	refused     int             // refused writes, and writes without an answer
}

// send sends a request, and reports whether its answer says that it is done or accepted.
func (c *groupClient) send(at, method, path, body string) (done bool, answer string) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, at+path, strings.NewReader(body))
	if err != nil {
		return false, err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+groupKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return false, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, err.Error()
	}
	return resp.StatusCode < 300, fmt.Sprint(resp.StatusCode, " ", string(b))
}

// write sends random writes to the members until stop is closed and a write of each kind was acknowledged.
func (c *groupClient) write(members []string, stop <-chan struct{}) {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		n := c.r.IntN(10)
		select {
		case <-stop:
			switch 0 { // on a slow machine, pick a kind without an acknowledged write
			case len(c.acked):
				n = 0
			case len(c.keys):
				n = 4
			case c.others:
				n = 5
			default:
				return
			}
		default:
		}
		at := members[c.r.IntN(len(members))]
		switch {
		case n < 4:
			c.next++
			id := fmt.Sprintf("%d-%d", c.id, c.next)
			c.sent[id] = true
			if done, _ := c.send(at, "POST", "/indexes/"+kept+"/documents?customMetadata="+id, fmt.Sprintf(`[{"id":%q,"text":"word %d"}]`, id, c.next)); done {
				c.acked[id] = true
			}
		case n < 5:
			c.next++
			name := fmt.Sprintf("kept %d-%d", c.id, c.next)
			if done, _ := c.send(at, "POST", "/keys", fmt.Sprintf(`{"actions":["search"],"indexes":["*"],"expiresAt":null,"name":%q}`, name)); done {
				c.keys[name] = true
			}
		default:
			method, path, body := randomWrite(c.r)
			if done, _ := c.send(at, method, path, body); done {
				c.others++
			} else {
				c.refused++
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// newGroupRun starts both members.
func newGroupRun(t *testing.T, seed uint64) *groupRun {
	g := &groupRun{pair: &pair{t: t}, r: rand.New(rand.NewPCG(seed, 0)), link: newLink(t)}
	home := filepath.Join(t.TempDir(), "reader")
	if g.disk = smallDisk(t, "192m"); g.disk != "" {
		home = filepath.Join(g.disk, "reader")
	}
	g.back = newLink(t)
	links, listens := [2]*link{g.link, g.back}, [2]string{freeAddress(), freeAddress()}
	for i := range g.process {
		links[i].lead(listens[i])
		m := &member{t: t, name: []string{"writer", "reader"}[i], data: filepath.Join(t.TempDir(), "data"), key: groupKey, address: freeAddress(), options: []string{
			"--master-key", groupKey, "--group-name", "shop", "--group-addr", listens[i],
		}}
		if i == 1 {
			m.data = home
			m.options = append(m.options, "--group-role", "reader", "--group-join", g.link.address)
		}
		g.process[i] = m
		t.Cleanup(m.kill)
		g.start(i)
	}
	for i := range 3 {
		g.clients = append(g.clients, &groupClient{r: rand.New(rand.NewPCG(seed, uint64(i+1))), id: i, acked: map[string]bool{}, sent: map[string]bool{}, keys: map[string]bool{}})
	}
	return g
}

// smallDisk mounts a small file system in memory if the test runs as root, or returns "".
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		return ""
	}
	disk := t.TempDir()
	if exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", disk).Run() != nil {
		return ""
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", disk).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return disk
}

// start starts a stopped member.
func (g *groupRun) start(i int) {
	g.t.Helper()
	g.process[i].start()
	m := groupMember{&instance{t: g.t, url: g.process[i].url}}
	if i == 0 {
		g.writer = m
	} else {
		g.reader = m
	}
}

// wait waits for a random number of milliseconds.
func (g *groupRun) wait(most int) { time.Sleep(time.Duration(1+g.r.IntN(most)) * time.Millisecond) }

// troubles returns what a round may do while clients write.
func (g *groupRun) troubles() map[string]func() {
	kill := func(who ...int) func() {
		return func() {
			for _, i := range who {
				g.process[i].kill()
			}
			g.wait(300)
			for _, i := range who {
				g.start(i)
			}
		}
	}
	signal := func(i int) func() {
		return func() {
			pause(g.process[i].process.Process)
			g.wait(2000)
			resume(g.process[i].process.Process)
		}
	}
	cut := func(x trouble) func() {
		return func() {
			g.link.suffer(x)
			g.wait(2000)
			g.link.suffer(trouble{})
		}
	}
	all := map[string]func(){
		"kill the writer": kill(0), "kill the reader": kill(1), "kill both": kill(0, 1),
		"kill the reader again and again": func() {
			for range 3 {
				g.process[1].kill()
				g.start(1)
				g.wait(150)
			}
		},
		"kill the writer while the reader copies": func() {
			g.process[0].kill()
			g.start(0)
			g.wait(150)
			g.process[0].kill()
			g.start(0)
		},
		"stop the writer": signal(0), "stop the reader": signal(1),
		"refuse connections": cut(trouble{refuse: true}), "lose bytes": cut(trouble{hole: true}),
		"lose bytes to the writer": cut(trouble{hole: true, way: there}), "lose bytes to the reader": cut(trouble{hole: true, way: back}),
		"tear connections": cut(trouble{cutAfter: 1 + g.r.IntN(20_000)}),
		"kill the reader, cut off": func() {
			g.link.suffer(trouble{refuse: true})
			g.wait(200)
			g.process[1].kill()
			g.start(1)
			g.wait(500)
			g.link.suffer(trouble{})
		},
	}
	all["promote the reader"] = g.promote
	if g.disk != "" {
		all["fill the disk of the reader"] = func() {
			for strings.HasPrefix(g.process[0].data, g.disk) { // the writer uses it now
				g.promote()
			}
			ballast := filepath.Join(g.disk, "ballast")
			for deadline := time.Now().Add(time.Duration(200+g.r.IntN(1500)) * time.Millisecond); time.Now().Before(deadline); g.wait(20) {
				if err := fillDisk(ballast); err != nil {
					g.t.Error(err)
				}
			}
			if err := os.Remove(ballast); err != nil {
				g.t.Error(err)
			}
		}
	}
	return all
}

// promote makes the reader the writer, and the writer its reader. The new writer may be killed as soon as it accepts writes.
func (g *groupRun) promote() {
	g.t.Helper()
	reader, writer := g.process[1], g.process[0]
	for deadline := time.Now().Add(time.Minute); ; g.wait(100) {
		status, text, err := reader.ask("POST", "/group/promote", "{}", nil)
		if err == nil && status == 200 {
			break
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("the reader is not promoted: %d %s %v", status, text, err)
		}
	}
	g.promoted++
	g.process = [2]*member{reader, writer}
	g.link, g.back = g.back, g.link
	if g.r.IntN(2) == 0 {
		g.process[0].kill()
		g.start(0)
	}
	ended := make(chan error, 1)
	go func() { ended <- writer.process.Wait() }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(writer.log.String(), "another member of the group has become its writer") {
			g.t.Errorf("the former writer ends with %v", err)
		}
	case <-time.After(time.Minute):
		g.t.Fatal("the former writer does not end")
	}
	if !slices.Contains(writer.options, "reader") {
		writer.options = append(writer.options, "--group-role", "reader", "--group-join", g.link.address)
	}
	g.start(1)
	g.writer = groupMember{&instance{t: g.t, url: g.process[0].url}}
}

// TestGroupKeepsItsPromises writes to a writer and a reader, kills them, stops them, disconnects them, fills the disk of the reader, and
// promotes the reader. After each round no acknowledged write may be lost or repeated, and both members must give the same answers at the
// same position.
func TestGroupKeepsItsPromises(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system cannot pause processes")
	}
	seed := *groupSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d rounds", seed, *groupRounds)
	g := newGroupRun(t, seed)
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range g.process {
				t.Logf("%s:\n%s", m.name, m.log.String())
			}
		}
	})
	g.process[0].must("PATCH", "/experimental-features", `{"dynamicSearchRules":true,"chatCompletions":true,"editDocumentsByFunction":true}`, nil)
	g.process[0].must("PATCH", "/indexes/"+kept+"/settings", `{"filterableAttributes":["id"]}`, nil)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(g.troubles())), func(name string) bool { return !strings.Contains(name, *groupOnly) })
	var order []int
	for round := range *groupRounds {
		if len(order) == 0 {
			order = g.r.Perm(len(names))
		}
		name := names[order[0]]
		order = order[1:]
		began := time.Now()
		g.round(g.troubles()[name])
		if testing.Verbose() {
			t.Logf("round %d: %s: %v", round, name, time.Since(began).Round(time.Millisecond))
		}
		if t.Failed() {
			t.Fatalf("round %d: %s", round, name)
		}
	}
	var documents, keys, others, refused int
	for _, c := range g.clients {
		documents, keys, others, refused = documents+len(c.acked), keys+len(c.keys), others+c.others, refused+c.refused
	}
	t.Logf("acknowledged: %d documents, %d keys, %d other writes; %d others were refused; %d promotions", documents, keys, others, refused, g.promoted)
	if min(documents, keys, others) == 0 {
		t.Error("no write was acknowledged")
	}
}

// round lets the clients write during a trouble, and compares afterwards.
func (g *groupRun) round(trouble func()) {
	g.t.Helper()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	members := []string{g.process[0].url, g.process[1].url}
	for _, c := range g.clients {
		writing.Go(func() { c.write(members, stop) })
	}
	g.wait(150)
	trouble()
	g.wait(100)
	close(stop)
	writing.Wait()
	g.writer.until("alive", func(*group.Status) bool { return true })
	g.same()
	g.promised()
}

// promised checks that both members have what was acknowledged, once.
func (g *groupRun) promised() {
	g.t.Helper()
	for _, m := range []groupMember{g.writer, g.reader} {
		var found struct {
			Results []struct{ ID string }
			Total   int
		}
		g.decode(m, "/indexes/"+kept+"/documents?limit=1000000&fields=id", &found)
		documents := map[string]bool{}
		for _, d := range found.Results {
			documents[d.ID] = true
		}
		var list struct {
			Results []struct {
				CustomMetadata, Status string
				Error                  struct{ Message string }
			}
		}
		g.decode(m, "/tasks?types=documentAdditionOrUpdate&limit=1000000&indexUids="+kept, &list)
		tasks, ended := map[string]int{}, map[string]bool{}
		for _, x := range list.Results {
			tasks[x.CustomMetadata]++
			switch {
			case strings.Contains(x.Error.Message, "The process ended 2 times"): // killed twice while the task ran
				ended[x.CustomMetadata] = true
			case x.Status != "succeeded":
				g.t.Errorf("the write of %s has %s: %s", x.CustomMetadata, x.Status, x.Error.Message)
			}
		}
		var keys struct{ Results []struct{ Name string } }
		g.decode(m, "/keys?limit=1000000", &keys)
		names := map[string]bool{}
		for _, k := range keys.Results {
			if names[k.Name] && strings.HasPrefix(k.Name, "kept ") {
				g.t.Errorf("%s: the key %q exists twice", m.url, k.Name)
			}
			names[k.Name] = true
		}
		for _, c := range g.clients {
			for id := range c.acked {
				if documents[id] == ended[id] || tasks[id] != 1 {
					g.t.Errorf("%s: acknowledged document %s: exists %t, written by %d tasks", m.url, id, documents[id], tasks[id])
				}
			}
			for id := range c.sent {
				if tasks[id] > 1 {
					g.t.Errorf("%s: the write of %s exists %d times", m.url, id, tasks[id])
				}
			}
			for name := range c.keys {
				if !names[name] {
					g.t.Errorf("%s: the acknowledged key %q is lost", m.url, name)
				}
			}
		}
	}
}

func (g *groupRun) decode(m groupMember, path string, v any) {
	g.t.Helper()
	answer := m.found(path)
	if err := json.Unmarshal([]byte(answer), v); err != nil {
		g.t.Fatalf("%s: %v: %s", path, err, answer)
	}
}
