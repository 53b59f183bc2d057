package main

import (
	"bytes"
	"encoding/json"
	"errors"
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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/logs/logstest"
	"svc/internal/powercut"
)

var (
	cutStates = flag.Int("states", 20, "how many power cuts TestPowerCutsLoseNothing starts the server after")
	cutSeed   = flag.Uint64("cut-seed", 0, "seed of TestPowerCutsLoseNothing; 0: another one each time")
	cutWrites = flag.Int("cut-writes", 60, "how many writes TestPowerCutsLoseNothing records")
)

const powercutKey = "a-master-key-of-16-bytes"

// TestPowerCutsLoseNothing records all file operations of the program while a client writes one request after the other, builds states
// that power cuts at random moments may leave, starts the program on each, and compares with a model. Everything acknowledged must be
// there, in order, and of the write in flight everything or nothing.
func TestPowerCutsLoseNothing(t *testing.T) {
	if !powercut.Supported() {
		t.Skip("programs cannot be followed here")
	}
	seed := *cutSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d states", seed, *cutStates)
	dir := t.TempDir()
	binary := filepath.Join(dir, "svc")
	if out, err := exec.Command("go", "build", "-pgo=off", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	bad, tried := powerCuts(t, binary, dir, seed, *cutWrites, *cutStates, false)
	for _, b := range bad {
		t.Error(b)
	}
	if tried < *cutStates {
		t.Errorf("only %d states were tried", tried)
	}
}

// powerCuts records a run of the program and returns the faults after power cuts. With first, it stops at the first fault.
func powerCuts(t *testing.T, binary, dir string, seed uint64, writes, states int, first bool) (bad []string, tried int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	log := new(powercut.Log)
	done := recordWrites(t, binary, filepath.Join(dir, "recorded"), random, writes, log)
	events := log.Events()
	var marks, changes []int
	for i := range events {
		if events[i].Kind == powercut.Mark {
			marks = append(marks, i)
		} else {
			changes = append(changes, i)
		}
	}
	if len(marks) < 2*writes || len(changes) < 10*writes {
		t.Fatalf("only %d marks and %d changes of files were recorded", len(marks), len(changes))
	}

	// Half of the cuts come at any time, half right after an acknowledgement.
	moments := make([]int, states)
	for i := range moments {
		moments[i] = random.IntN(len(events))
		if i%2 == 0 {
			moments[i] = marks[random.IntN(len(marks))]
		}
	}
	slices.Sort(moments)
	type state struct {
		dir             string
		acked, sent, at int
	}
	todo := make(chan state)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range max(2, runtime.NumCPU()) {
		workers.Go(func() {
			for s := range todo {
				if err := checkState(binary, s.dir, done[:s.acked], done[:s.sent]); err != nil {
					mu.Lock()
					bad = append(bad, fmt.Sprintf("cut at event %d of %d, %d writes acknowledged, %d sent: %v", s.at, len(events), s.acked, s.sent, err))
					mu.Unlock()
				}
				os.RemoveAll(filepath.Dir(s.dir))
			}
		})
	}
	disk, at, acked, sent := powercut.NewDisk(), 0, 0, 0
	for i, moment := range moments {
		for ; at <= moment; at++ {
			if e := &events[at]; e.Kind == powercut.Mark {
				what, n, _ := strings.Cut(string(e.Data), " ")
				number, err := strconv.Atoi(n)
				if err != nil {
					t.Fatal(err)
				}
				if what == "sent" {
					sent = number
				} else {
					acked = number
				}
			}
			disk.Apply(at, &events[at])
		}
		s := state{filepath.Join(dir, fmt.Sprint("cut-", i), "data"), acked, sent, at}
		if err := os.Mkdir(filepath.Dir(s.dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := disk.Leave("data", s.dir, random); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		enough := first && len(bad) > 0
		mu.Unlock()
		if enough {
			break
		}
		tried++
		todo <- s
	}
	close(todo)
	workers.Wait()
	return bad, tried
}

// recordWrites starts the program under the recorder, sends it writes, and kills it. It returns the writes.
func recordWrites(t *testing.T, binary, root string, random *rand.Rand, writes int, log *powercut.Log) []cutWrite {
	t.Helper()
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &cutServer{url: "http://" + freeAddress(), log: new(logstest.Buffer)}
	cmd := s.command(binary, filepath.Join(root, "data"))
	var done []cutWrite
	var failed error
	err := powercut.Run(cmd, powercut.Options{Root: root, Log: log}, func(p *os.Process) {
		defer p.Kill()
		if failed = s.answers(2 * time.Minute); failed != nil {
			return
		}
		m := newCutModel()
		for n := range writes {
			w := m.write(random, n)
			done = append(done, w)
			if w.settled {
				if failed = s.idle(2 * time.Minute); failed != nil {
					return
				}
			}
			log.Mark(fmt.Sprint("sent ", n+1))
			if _, failed = s.call(w.method, w.path, w.body, nil); failed != nil {
				failed = fmt.Errorf("%s %s %s: %w", w.method, w.path, w.body, failed)
				return
			}
			log.Mark(fmt.Sprint("acked ", n+1))
			if random.IntN(4) == 0 {
				done[n].searched = s.searchAndClick(slices.Sorted(maps.Keys(m.indexes)))
			}
			if random.IntN(4) == 0 { // let it finish accepted tasks
				if failed = s.idle(2 * time.Minute); failed != nil {
					return
				}
			}
		}
		failed = s.idle(2 * time.Minute)
	})
	if err = errors.Join(err, failed); err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	return done
}

// checkState starts the program on a data directory and compares its content with the acknowledged writes, or with all sent ones.
func checkState(binary, data string, acked, sent []cutWrite) error {
	s := &cutServer{url: "http://" + freeAddress(), log: new(logstest.Buffer)}
	cmd := s.command(binary, data)
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	fail := func(err error) error { return fmt.Errorf("%w\nits log:\n%s", err, s.log) }
	if err := s.answers(2 * time.Minute); err != nil {
		return fail(err)
	}
	if err := s.idle(2 * time.Minute); err != nil {
		return fail(err)
	}
	if err := s.checkAnalytics(sent); err != nil {
		return fail(err)
	}
	got, err := s.content()
	if err != nil {
		return fail(err)
	}
	var wants []string
	for n := len(acked); n <= len(sent); n++ {
		m := newCutModel()
		for _, w := range sent[:n] {
			w.apply(m)
		}
		want := m.content()
		if got == want {
			return nil
		}
		wants = append(wants, want)
	}
	return fail(fmt.Errorf("holds\n%s\nwant\n%s", got, strings.Join(wants, "or\n")))
}

// cutServer is the program as its client sees it.
type cutServer struct {
	url string
	log *logstest.Buffer
}

func (s *cutServer) command(binary, data string) *exec.Cmd {
	cmd := exec.Command(binary, "--db-path", data, "--http-addr", strings.TrimPrefix(s.url, "http://"), "--log-level", "WARN",
		"--master-key", powercutKey, "--experimental-allowed-ip-networks", "10.255.255.0/24", "--max-indexing-memory", "64 MiB",
		"--analytics-retention", "1d")
	cmd.Dir = filepath.Dir(data)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	return cmd
}

// answers waits until the server answers.
func (s *cutServer) answers(wait time.Duration) error {
	for deadline := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		_, err := s.call(http.MethodGet, "/health", "", nil)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if strings.Contains(s.log.String(), "svc: ") { // the program has ended
			return err
		}
	}
}

// call sends a request and decodes the answer into to, unless it is nil.
func (s *cutServer) call(method, path, body string, to any) (string, error) {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+powercutKey)
	resp, err := (&http.Client{Timeout: 2 * time.Minute}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	if err == nil && to != nil {
		err = json.Unmarshal(b, to)
	}
	return string(b), err
}

// idle waits until all tasks have ended.
func (s *cutServer) idle(wait time.Duration) error {
	for deadline := time.Now().Add(wait); ; time.Sleep(2 * time.Millisecond) {
		var list struct{ Total int }
		body, err := s.call(http.MethodGet, "/tasks?statuses=enqueued,processing&limit=3", "", &list)
		if err != nil || list.Total == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("tasks do not end: %s", body)
		}
	}
}

// searchAndClick searches the first index and reports a click. It returns whether the search may be counted.
func (s *cutServer) searchAndClick(indexes []string) bool {
	if len(indexes) == 0 {
		return false
	}
	var found struct{ RequestUID string }
	if _, err := s.call(http.MethodPost, "/indexes/"+indexes[0]+"/search", `{"q":"word"}`, &found); err != nil {
		return false // the index does not exist yet
	}
	_, _ = s.call(http.MethodPost, "/events", fmt.Sprintf(`[{"requestUid":%q,"type":"click","position":1}]`, found.RequestUID), nil) // the search may be lost already
	return true
}

// checkAnalytics checks that only searches and clicks that were sent are counted. Those of the last second may be missing.
func (s *cutServer) checkAnalytics(sent []cutWrite) error {
	var report struct {
		Results []struct{ Count, Clicks int }
	}
	body, err := s.call(http.MethodGet, "/analytics/top-queries", "", &report)
	if err != nil {
		return err
	}
	most := 0
	for _, w := range sent {
		if w.searched {
			most++
		}
	}
	count, clicks := 0, 0
	for _, r := range report.Results {
		count += r.Count
		clicks += r.Clicks
	}
	if count > most || clicks > count {
		return fmt.Errorf("%d searches were sent, the report is %s", most, body)
	}
	return nil
}

// content describes everything that writes can change.
func (s *cutServer) content() (string, error) {
	var b strings.Builder
	var indexes struct{ Results []struct{ UID string } }
	if _, err := s.call(http.MethodGet, "/indexes?limit=100", "", &indexes); err != nil {
		return "", err
	}
	slices.SortFunc(indexes.Results, func(a, b struct{ UID string }) int { return strings.Compare(a.UID, b.UID) })
	for _, index := range indexes.Results {
		var docs struct {
			Results []map[string]int
		}
		if _, err := s.call(http.MethodGet, "/indexes/"+index.UID+"/documents?limit=1000&fields=id,v", "", &docs); err != nil {
			return "", err
		}
		all := map[int]int{}
		for _, d := range docs.Results {
			all[d["id"]] = d["v"]
		}
		stop, err := s.call(http.MethodGet, "/indexes/"+index.UID+"/settings/stop-words", "", nil)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "index %s: %v, stop words %s", index.UID, all, stop)
		filterable, err := s.call(http.MethodGet, "/indexes/"+index.UID+"/settings/filterable-attributes", "", nil)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, ", filterable %s", filterable)
		if strings.Contains(filterable, `"v"`) {
			var found struct{ FacetDistribution map[string]map[string]int }
			if _, err := s.call(http.MethodPost, "/indexes/"+index.UID+"/search", `{"facets":["v"],"limit":0}`, &found); err != nil {
				return "", err
			}
			fmt.Fprintf(&b, ", versions %v", found.FacetDistribution["v"])
		}
		b.WriteByte('\n')
	}
	var aliases struct {
		Results []struct{ Alias, IndexUID string }
	}
	if _, err := s.call(http.MethodGet, "/aliases?limit=1000", "", &aliases); err != nil {
		return "", err
	}
	for _, a := range aliases.Results {
		fmt.Fprintf(&b, "alias %s of %s\n", a.Alias, a.IndexUID)
	}
	var keys struct{ Results []struct{ Name string } }
	if _, err := s.call(http.MethodGet, "/keys?limit=1000", "", &keys); err != nil {
		return "", err
	}
	names := []string{}
	for _, k := range keys.Results {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	fmt.Fprintf(&b, "keys %q\n", names)
	var features map[string]bool
	if _, err := s.call(http.MethodGet, "/experimental-features", "", &features); err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "containsFilter %v\n", features["containsFilter"])
	var failed struct {
		Results []struct {
			Type  string
			Error json.RawMessage
		}
	}
	if _, err := s.call(http.MethodGet, "/tasks?statuses=failed,canceled", "", &failed); err != nil {
		return "", err
	}
	for _, f := range failed.Results {
		// A compaction runs before other tasks, also before those that create its index; then it fails.
		if f.Type != "indexCompaction" {
			fmt.Fprintf(&b, "failed: %s\n", f.Error)
		}
	}
	return b.String(), nil
}

// cutModel is the expected content of the server.
type cutModel struct {
	indexes  map[string]*cutIndex
	aliases  map[string]string // alias → uid
	keys     map[string]string // uid → name
	contains bool
	words    int // extra words per document, too many for an entry of a group's log
}

type cutIndex struct {
	docs       map[int]int
	stop       []string
	filterable []string // sorted
	expired    bool     // whether all documents are expired
}

// cutWrite is a request and its meaning.
type cutWrite struct {
	method, path, body string
	apply              func(*cutModel)
	settled            bool // not a task: sent when earlier tasks have ended
	searched           bool // followed by a search
}

func newCutModel() *cutModel {
	return &cutModel{indexes: map[string]*cutIndex{}, aliases: map[string]string{}, keys: map[string]string{}}
}

func (m *cutModel) index(uid string) *cutIndex {
	if m.indexes[uid] == nil {
		m.indexes[uid] = &cutIndex{docs: map[int]int{}}
	}
	return m.indexes[uid]
}

func (m *cutModel) content() string {
	var b strings.Builder
	for _, uid := range slices.Sorted(maps.Keys(m.indexes)) {
		ix := m.indexes[uid]
		docs := ix.docs
		if ix.expired {
			docs = map[int]int{}
		}
		stop, _ := json.Marshal(append([]string{}, ix.stop...))
		filterable, _ := json.Marshal(append([]string{}, ix.filterable...))
		fmt.Fprintf(&b, "index %s: %v, stop words %s, filterable %s", uid, docs, stop, filterable)
		if slices.Contains(ix.filterable, "v") {
			versions := map[string]int{}
			for _, v := range docs {
				versions[fmt.Sprint(v)]++
			}
			fmt.Fprintf(&b, ", versions %v", versions)
		}
		b.WriteByte('\n')
	}
	for _, alias := range slices.Sorted(maps.Keys(m.aliases)) {
		fmt.Fprintf(&b, "alias %s of %s\n", alias, m.aliases[alias])
	}
	names := []string{"Default Admin API Key", "Default Chat API Key", "Default Read-Only Admin API Key", "Default Search API Key"}
	names = slices.AppendSeq(names, maps.Values(m.keys))
	slices.Sort(names)
	fmt.Fprintf(&b, "keys %q\ncontainsFilter %v\n", names, m.contains)
	return b.String()
}

// write returns write number n, and applies it to the model.
func (m *cutModel) write(random *rand.Rand, n int) cutWrite {
	w := m.invent(random, n)
	w.apply(m)
	return w
}

func (m *cutModel) invent(random *rand.Rand, n int) cutWrite {
	uid := []string{"a", "b", "c"}[random.IntN(3)]
	if n == 0 {
		return cutWrite{http.MethodPatch, "/experimental-features", `{"taskQueueCompactionRoute":true}`, func(*cutModel) {}, false, false}
	}
	switch kind := random.IntN(20); {
	case kind < 2 && len(m.indexes) > 1: // increments reveal a batch that was applied twice
		there := slices.Sorted(maps.Keys(m.indexes))[0]
		var body bytes.Buffer
		added := map[int]int{}
		for range 1 + random.IntN(60) {
			id := random.IntN(100)
			added[id] += 1000
			fmt.Fprintf(&body, ",{\"id\":%d,\"increment\":{\"v\":1000}}", id)
		}
		return cutWrite{http.MethodPatch, "/indexes/" + there + "/documents", "[" + body.String()[1:] + "]", func(m *cutModel) {
			for id, n := range added {
				if _, ok := m.index(there).docs[id]; ok {
					m.index(there).docs[id] += n
				}
			}
		}, false, false}
	case kind < 6 || len(m.indexes) < 2:
		var body bytes.Buffer
		docs := map[int]int{}
		for range 1 + random.IntN(60) {
			docs[random.IntN(100)] = n
		}
		for id, v := range docs {
			fmt.Fprintf(&body, ",{\"id\":%d,\"v\":%d,\"t\":%q", id, v, strings.Repeat("word ", random.IntN(40)))
			for range m.words {
				fmt.Fprintf(&body, ",\"%x\":%d", random.Uint32N(64), random.Uint64())
			}
			body.WriteByte('}')
		}
		return cutWrite{http.MethodPost, "/indexes/" + uid + "/documents", "[" + body.String()[1:] + "]", func(m *cutModel) {
			maps.Copy(m.index(uid).docs, docs)
		}, false, false}
	case kind == 6:
		stop := []string{fmt.Sprint("stop", n)}
		filterable := []string{"v", fmt.Sprint("x", n%3)}
		return cutWrite{http.MethodPatch, "/indexes/" + uid + "/settings", fmt.Sprintf(`{"stopWords":[%q],"filterableAttributes":[%q,%q]}`, stop[0], filterable[0], filterable[1]), func(m *cutModel) {
			m.index(uid).stop, m.index(uid).filterable = stop, filterable
		}, false, false}
	case kind > 17:
		there := slices.Sorted(maps.Keys(m.indexes))
		to := map[string]string{"x": there[random.IntN(len(there))], "y": there[random.IntN(len(there))]}
		moves := fmt.Sprintf(`[{"alias":"x","indexUid":%q},{"alias":"y","indexUid":%q}]`, to["x"], to["y"])
		if m.aliases["y"] != "" && random.IntN(3) == 0 {
			to["y"] = ""
			moves = fmt.Sprintf(`[{"alias":"x","indexUid":%q},{"alias":"y","indexUid":null}]`, to["x"])
		}
		return cutWrite{http.MethodPost, "/aliases", moves, func(m *cutModel) {
			maps.Copy(m.aliases, to)
			maps.DeleteFunc(m.aliases, func(_, uid string) bool { return uid == "" })
		}, true, false}
	case kind > 14: // writes columns beside the segments
		filterable := [][]string{{"v"}, {"t"}, {"t", "v"}, {"id", "v"}}[random.IntN(4)]
		body, _ := json.Marshal(map[string]any{"filterableAttributes": filterable})
		return cutWrite{http.MethodPatch, "/indexes/" + uid + "/settings", string(body), func(m *cutModel) {
			m.index(uid).filterable = filterable
		}, false, false}
	case kind == 7:
		name := fmt.Sprint("key ", n)
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		return cutWrite{http.MethodPost, "/keys", fmt.Sprintf(`{"uid":%q,"name":%q,"actions":["search"],"indexes":["*"],"expiresAt":null}`, id, name), func(m *cutModel) {
			m.keys[id] = name
		}, false, false}
	case kind == 8 && len(m.keys) > 0:
		id := slices.Sorted(maps.Keys(m.keys))[0]
		return cutWrite{http.MethodDelete, "/keys/" + id, "", func(m *cutModel) { delete(m.keys, id) }, false, false}
	case kind == 9:
		contains := !m.contains
		return cutWrite{http.MethodPatch, "/experimental-features", fmt.Sprintf(`{"containsFilter":%v}`, contains), func(m *cutModel) { m.contains = contains }, false, false}
	case kind == 10:
		names := slices.Sorted(maps.Keys(m.indexes))
		a, b := names[0], names[1]
		return cutWrite{http.MethodPost, "/swap-indexes", fmt.Sprintf(`[{"indexes":[%q,%q]}]`, a, b), func(m *cutModel) {
			m.indexes[a], m.indexes[b] = m.indexes[b], m.indexes[a]
		}, false, false}
	case kind == 11 && len(m.indexes) > 2:
		gone := slices.Sorted(maps.Keys(m.indexes))[random.IntN(len(m.indexes))]
		return cutWrite{http.MethodDelete, "/indexes/" + gone, "", func(m *cutModel) {
			delete(m.indexes, gone)
			maps.DeleteFunc(m.aliases, func(_, uid string) bool { return uid == gone })
		}, false, false}
	case kind == 12:
		there := slices.Sorted(maps.Keys(m.indexes))[0]
		return cutWrite{http.MethodPost, "/indexes/" + there + "/compact", "", func(*cutModel) {}, false, false}
	case kind == 13 && random.IntN(2) == 0: // hides all documents, or shows them again; they are deleted an hour later
		expires := !m.index(uid).expired
		body := `{"timeToLive":null}`
		if expires {
			body = `{"timeToLive":{"attribute":"v"}}`
		}
		return cutWrite{http.MethodPatch, "/indexes/" + uid + "/settings", body, func(m *cutModel) { m.index(uid).expired = expires }, false, false}
	case kind == 13:
		return cutWrite{http.MethodPost, "/tasks/compact", "", func(*cutModel) {}, false, false}
	}
	there := slices.Sorted(maps.Keys(m.indexes))[0]
	ids := []int{random.IntN(100), random.IntN(100), random.IntN(100)}
	body, _ := json.Marshal(ids)
	return cutWrite{http.MethodPost, "/indexes/" + there + "/documents/delete-batch", string(body), func(m *cutModel) {
		for _, id := range ids {
			delete(m.index(there).docs, id)
		}
	}, false, false}
}
