package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestReadersInFiveMinutes pastes the commands of docs/GROUP.md, from a writer and its first reader to the promotion of that reader.
func TestReadersInFiveMinutes(t *testing.T) {
	needCommands(t, "sh")
	p := paste(t, "GROUP.md", "127.0.0.11", "127.0.0.12")
	p.dirs = map[string]string{}
	until := func(block string, want ...string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			said := p.run("(" + strings.TrimSpace(block) + ") || true")
			missing := ""
			for _, text := range want {
				if !strings.Contains(said, text) {
					missing = text
				}
			}
			if missing == "" {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s\nprints no %q:\n%s\n%s", block, missing, said, p.log.String())
			}
		}
	}
	p.start(p.next())
	p.start(p.next())
	status := p.next()
	p.run(status)
	until("svc group status --url http://10.0.0.1:7700", "writes", "follows")
	write := p.next()
	if said := p.run(write); !strings.Contains(said, "Persuasion") {
		t.Errorf("the search of the page finds %s", said)
	}

	p.lose("10.0.0.2", p.hosts["10.0.0.2"])
	p.start(p.next())
	until("svc group status --url http://10.0.0.2:7700", "follows", "answers reads")
	if said := p.run(p.next()); !strings.Contains(said, "in term 2") {
		t.Errorf("the promotion says %s", said)
	}
	ended := make(chan error, 1)
	go func(former *exec.Cmd) { ended <- former.Wait() }(p.hosts["10.0.0.1"])
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(p.log.String(), "another member of the group has become its writer") {
			t.Errorf("the former writer ends with %v:\n%s", err, p.log.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("the former writer goes on")
	}
	delete(p.hosts, "10.0.0.1")
	p.start(p.next())
	until("svc group status --url http://10.0.0.1:7700", "follows", "answers reads")
	until("svc search --url http://10.0.0.1:7700 books persuasion", "Persuasion")
}
