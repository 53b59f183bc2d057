package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"svc/internal/logs/logstest"
)

// needCommands skips the test if commands of the manual are not installed.
func needCommands(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s here", name)
		}
	}
}

// freePort returns the first of a row of ports that are free at each of the addresses. It skips the test if the addresses are not
// of this machine.
func freePort(t *testing.T, row int, addresses ...string) int {
	t.Helper()
	for port := 20000 + os.Getpid()%10000; port < 32000; port += row {
		free := true
		for i := range row {
			for _, address := range addresses {
				l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, port+i))
				if err != nil {
					free = false
					continue
				}
				l.Close()
			}
		}
		if free {
			return port
		}
	}
	t.Skipf("no port is free at %v", addresses)
	return 0
}

// pasted is the shell of a user who follows a page of the manual, with the hosts.
type pasted struct {
	t      *testing.T
	blocks []string          // remaining blocks of the page
	port   int               // replaces 7700; the next port replaces 7701
	path   string            // search path that finds this svc first
	dirs   map[string]string // by host; nil: a host gets a new one at each start
	hosts  map[string]*exec.Cmd
	log    logstest.Buffer

	stdin  io.Writer
	stdout *bufio.Reader
	pasted int
}

var (
	pageAddress = regexp.MustCompile(`10\.0\.0\.([1-9])`)
	ownAddress  = regexp.MustCompile(`(?m)^self=10\.0\.0\.[1-9]`)
)

// localized replaces the addresses of the page with local ones.
func (p *pasted) localized(text string) string {
	text = strings.ReplaceAll(text, "10.0.0.0/8", "127.0.0.0/8")
	text = pageAddress.ReplaceAllString(text, "127.0.0.1$1")
	return strings.NewReplacer(":7700", fmt.Sprintf(":%d", p.port), ":7701", fmt.Sprintf(":%d", p.port+1)).Replace(text)
}

// paste opens the shell of a user who follows a page with some hosts.
func paste(t *testing.T, page string, hosts ...string) *pasted {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "svc"), fmt.Appendf(nil, "#!/bin/sh\nexec '%s' \"$@\"\n", os.Args[0]), 0o755); err != nil {
		t.Fatal(err)
	}
	p := &pasted{t: t, hosts: map[string]*exec.Cmd{}, path: bin + string(os.PathListSeparator) + os.Getenv("PATH"), port: freePort(t, 2, hosts...)}
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
		p.blocks = append(p.blocks, m[1])
	}
	shell := exec.Command("sh", "-eu")
	shell.Stderr = &p.log
	shell.Dir, shell.Env = t.TempDir(), append(os.Environ(), "PATH="+p.path, asProgram+"=1")
	if p.stdin, err = shell.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout = bufio.NewReader(out)
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shell.Process.Kill(); _ = shell.Wait() })
	return p
}

// next returns the next block of the page.
func (p *pasted) next() string {
	p.t.Helper()
	if len(p.blocks) == 0 {
		p.t.Fatal("the page has too few blocks")
	}
	block := p.blocks[0]
	p.blocks = p.blocks[1:]
	return block
}

// skipTo skips the blocks before the first one that contains a text.
func (p *pasted) skipTo(text string) {
	p.t.Helper()
	i := slices.IndexFunc(p.blocks, func(block string) bool { return strings.Contains(block, text) })
	if i < 0 {
		p.t.Fatalf("no block of the page has %q", text)
	}
	p.blocks = p.blocks[i:]
}

// until runs a block repeatedly until it prints the given texts.
func (p *pasted) until(block string, want ...string) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		said := p.run("(" + strings.TrimSpace(block) + ") || true")
		missing := ""
		for _, text := range want {
			if !strings.Contains(said, p.localized(text)) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s\ndoes not print %q:\n%s\n%s", block, missing, said, p.log.String())
		}
	}
}

// dir returns the directory in which a host starts.
func (p *pasted) dir(host string) string {
	if p.dirs == nil {
		return p.t.TempDir()
	}
	if p.dirs[host] == "" {
		p.dirs[host] = p.t.TempDir()
	}
	return p.dirs[host]
}

// start runs a block on each host that its first line names.
func (p *pasted) start(block string) {
	p.t.Helper()
	first, commands, _ := strings.Cut(block, "\n")
	hosts := pageAddress.FindAllString(first, -1)
	for _, host := range hosts {
		script := strings.ReplaceAll(commands, "\nsvc ", "\nexec svc ")
		switch own := ownAddress.FindString(script); {
		case own != "": // the other lines refer to it
			script = strings.Replace(script, own, pageAddress.ReplaceAllString(own, host), 1)
		case len(hosts) > 1: // each with its own address
			script = pageAddress.ReplaceAllString(script, host)
		}
		shell := exec.Command("sh", "-euc", p.localized(script))
		shell.Dir, shell.Env = p.dir(host), append(os.Environ(), "PATH="+p.path, asProgram+"=1")
		shell.Stdout, shell.Stderr = &p.log, &p.log
		if err := shell.Start(); err != nil {
			p.t.Fatal(err)
		}
		p.hosts[host] = shell
		p.t.Cleanup(func() { p.lose(host, shell) })
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if resp, err := http.Get(p.localized("http://" + host + ":7700/health")); err == nil {
				resp.Body.Close()
				break
			}
			if time.Now().After(deadline) {
				p.t.Fatalf("%s does not answer:\n%s", host, p.log.String())
			}
		}
	}
}

// lose ends a host like a power failure.
func (p *pasted) lose(host string, shell *exec.Cmd) {
	if p.hosts[host] == shell {
		delete(p.hosts, host)
		_ = shell.Process.Signal(syscall.SIGKILL)
		_ = shell.Wait()
	}
}

// run runs a block, and returns its output.
func (p *pasted) run(block string) string {
	p.t.Helper()
	p.pasted++
	end := fmt.Sprintf("-- block %d is done", p.pasted)
	if _, err := fmt.Fprintf(p.stdin, "%s\necho; echo '%s'\n", p.localized(block), end); err != nil {
		p.t.Fatalf("%v\n%s", err, p.log.String())
	}
	var out strings.Builder
	for {
		line, err := p.stdout.ReadString('\n')
		if strings.TrimSuffix(line, "\n") == end {
			return out.String()
		}
		out.WriteString(line)
		if err != nil {
			p.t.Fatalf("the shell ended in\n%s\n%s\n%s", block, out.String(), p.log.String())
		}
	}
}

// TestTheCommandsOfTheManual runs the commands of docs/NETWORK.md in order, in shells of this machine, and checks after each step that
// every host finds all documents.
func TestTheCommandsOfTheManual(t *testing.T) {
	needCommands(t, "sh", "curl", "sed", "grep")
	p := paste(t, "NETWORK.md", "127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.14")
	next := p.next
	changed := func(remotes ...string) {
		t.Helper()
		if said := p.run(next()); !strings.Contains(said, `"status":"succeeded"`) {
			t.Fatalf("the network does not change: %s", said)
		}
		for deadline := time.Now().Add(peace); ; { // a remote that missed a write for some seconds is unavailable until it has it
			var n struct {
				Remotes map[string]struct{ Status string }
			}
			if err := json.Unmarshal([]byte(p.run("ask GET 10.0.0.1 /network")), &n); err != nil {
				t.Fatal(err)
			}
			available := 0
			for _, name := range remotes {
				if n.Remotes[name].Status == "available" {
					available++
				}
			}
			if available == len(remotes) && len(n.Remotes) == len(remotes) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the network has %v, want %v, all available", n.Remotes, remotes)
			}
		}
	}
	written := 3 // by the commands of the page
	found := func() {
		t.Helper()
		var docs []string
		for range 50 {
			docs = append(docs, fmt.Sprintf(`{"id": %d, "title": "volume %d"}`, 1000+written, written))
			written++
		}
		hosts := slices.Sorted(func(yield func(string) bool) {
			for host := range p.hosts {
				if !yield(host) {
					return
				}
			}
		})
		p.run("ask POST 10.0.0.1 /indexes/books/documents '[" + strings.Join(docs, ",") + "]'")
		p.run("idle " + strings.Join(hosts, " "))
		for _, host := range hosts {
			said := p.run("ask POST " + host + ` /indexes/books/search '{"limit": 0}'`)
			if want := fmt.Sprintf(`"estimatedTotalHits":%d,`, written); !strings.Contains(said, want) || !strings.Contains(said, `"remoteErrors":{}`) {
				t.Errorf("a search at %s finds %s, want %s and no error", host, said, want)
			}
		}
	}

	p.start(next())
	p.run(next())
	changed("a", "b", "c")
	if said := p.run(next()); !strings.Contains(said, `"hits":[{"id":2,"title":"Emma"`) {
		t.Errorf("the search on the page finds %s", said)
	}
	found()
	p.start(next())
	changed("a", "b", "c", "d")
	found()
	p.lose("10.0.0.2", p.hosts["10.0.0.2"])
	changed("a", "c", "d")
	found()
	p.start(next())
	changed("a", "b", "c", "d")
	found()
	if len(p.blocks) > 0 {
		t.Errorf("%d blocks of the page are not run", len(p.blocks))
	}
}

// TestTheScriptOfThreeInstances runs docs/three-instances.sh twice over the same data, and ends it like Ctrl-C.
func TestTheScriptOfThreeInstances(t *testing.T) {
	needCommands(t, "sh", "curl", "grep")
	port := freePort(t, 3, "localhost")
	dir := t.TempDir()
	for round := range 2 {
		var said bytes.Buffer
		script := exec.Command("sh", filepath.Join("..", "..", "docs", "three-instances.sh"), os.Args[0], dir, fmt.Sprint(port))
		script.Env = append(os.Environ(), asProgram+"=1")
		script.Stderr = &said
		out, err := script.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := script.Start(); err != nil {
			t.Fatal(err)
		}
		ready := false
		lines := bufio.NewScanner(out)
		for !ready && lines.Scan() {
			ready = strings.Contains(lines.Text(), "a leads at")
		}
		var all []*member
		for i, name := range []string{"a", "b", "c"} {
			all = append(all, &member{t: t, name: name, url: fmt.Sprintf("http://localhost:%d", port+i)})
		}
		if !ready {
			t.Errorf("the script ended: %s", said.String())
		} else {
			settled(t, all, peace)
			all[0].must("POST", "/indexes/m/documents", fmt.Sprintf(`[{"id":%d},{"id":%d}]`, 2*round, 2*round+1), nil)
			settled(t, all, peace)
			for _, in := range all {
				var found struct{ EstimatedTotalHits int }
				in.must("POST", "/indexes/m/search", `{"limit":0}`, &found)
				if want := 2 * (round + 1); found.EstimatedTotalHits != want {
					t.Errorf("a search at %s finds %d documents, want %d", in.name, found.EstimatedTotalHits, want)
				}
			}
		}
		if err := script.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, out)
		if err := script.Wait(); err != nil {
			t.Errorf("the script: %v %s", err, said.String())
		}
		for _, in := range all {
			if _, err := http.Get(in.url + "/health"); err == nil {
				t.Errorf("%s keeps running after the script", in.name)
			}
		}
	}
}
