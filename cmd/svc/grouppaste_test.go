package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadersInFiveMinutes runs the commands of docs/GROUP.md, from a writer and its first reader to the promotion of that reader.
func TestReadersInFiveMinutes(t *testing.T) {
	needCommands(t, "sh")
	p := paste(t, "GROUP.md", "127.0.0.11", "127.0.0.12")
	p.dirs = map[string]string{}
	p.start(p.next())
	p.start(p.next())
	status := p.next()
	p.run(status)
	p.until("svc group status --url http://10.0.0.1:7700", "writes", "follows")
	write := p.next()
	if said := p.run(write); !strings.Contains(said, "Persuasion") {
		t.Errorf("the search on the page finds %s", said)
	}

	p.lose("10.0.0.2", p.hosts["10.0.0.2"])
	p.start(p.next())
	p.until("svc group status --url http://10.0.0.2:7700", "follows", "answers reads")
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
		t.Fatal("the former writer keeps running")
	}
	delete(p.hosts, "10.0.0.1")
	p.start(p.next())
	p.until("svc group status --url http://10.0.0.1:7700", "follows", "answers reads")
	p.until("svc search --url http://10.0.0.1:7700 books persuasion", "Persuasion")
}

// pasteVoters starts three voters with the commands of docs/GROUP.md. The next block of the page is the first write.
func pasteVoters(t *testing.T) (p *pasted, start string) {
	t.Helper()
	needCommands(t, "sh")
	p = paste(t, "GROUP.md", "127.0.0.11", "127.0.0.12", "127.0.0.13")
	p.dirs = map[string]string{}
	p.skipTo("--group-role voter")
	start = p.next()
	p.start(start)
	status := p.next()
	p.run(strings.TrimSuffix(status, "svc group status --url http://10.0.0.1:7700\n")) // creates the key
	p.untilVoters("leads", "follows")
	return p, start
}

// untilVoters waits until the status of the group shows three voters and the given texts.
func (p *pasted) untilVoters(want ...string) {
	p.t.Helper()
	p.until(`svc group status --url http://10.0.0.2:7700 | awk '{print} $2 == "voter" {n++} END {print n " vote"}'`, append(want, "3 vote")...)
}

// TestThreeHostsInTenMinutes runs the commands of docs/GROUP.md: three voters, whose leader is lost and comes back.
func TestThreeHostsInTenMinutes(t *testing.T) {
	needCommands(t, "awk")
	p, start := pasteVoters(t)
	p.run(p.next())
	p.until(p.next(), "Persuasion")
	transfer, first := p.next(), `svc group status --url http://10.0.0.2:7700 | awk '$3 == "leads" {print $NF " leads"}'`
	if said := p.run(first); !strings.Contains(said, p.localized("10.0.0.1:7701 leads")) {
		if said = p.run(transfer); !strings.Contains(said, p.localized("10.0.0.1:7701 leads")) {
			t.Errorf("the transfer says %s", said)
		}
	}
	p.until(first, "10.0.0.1:7701 leads")
	p.lose("10.0.0.1", p.hosts["10.0.0.1"])
	if said := p.run(p.next()); !strings.Contains(said, "Emma") {
		t.Errorf("without its leader the group finds %s", said)
	}
	p.start(strings.Replace(start, ", 10.0.0.2 and 10.0.0.3", "", 1))
	p.until(p.next(), "Emma")
	p.untilVoters()
}

// TestThreeHostsAreOperated runs what docs/GROUP.md says about transfers, removed members and the loss of the majority.
func TestThreeHostsAreOperated(t *testing.T) {
	needCommands(t, "awk")
	p, start := pasteVoters(t)
	write := p.next()
	p.run(write)
	p.skipTo("svc group transfer --url http://10.0.0.1:7700\n")
	any, to, _ := strings.Cut(p.next(), "\n")
	if said := p.run(any); !strings.Contains(said, "leads the group") {
		t.Errorf("the transfer says %s", said)
	}
	if said := p.run("(" + strings.TrimSpace(to) + ") 2>&1 || true"); !strings.Contains(said, p.localized("10.0.0.2:7701")) { // or that voter leads already
		t.Errorf("the transfer says %s", said)
	}
	p.until(`svc group status --url http://10.0.0.1:7700 | awk '$3 == "leads" {print $NF " leads"}'`, "10.0.0.2:7701 leads")
	p.untilVoters("leads")
	p.run(p.next()) // removes 10.0.0.3
	p.until(`svc group status --url http://10.0.0.1:7700 | awk '$2 == "voter" {n++} END {print n " vote"}'`, "2 vote")
	stop := func(host string) {
		shell := p.hosts[host]
		if err := shell.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := shell.Wait(); err != nil {
			t.Errorf("%s ends with %v", host, err)
		}
		delete(p.hosts, host)
	}
	at := func(host, block string) string {
		return p.run("(cd '" + filepath.ToSlash(p.dirs[host]) + "'; " + strings.TrimSpace(block) + ")")
	}
	again := func(host string) {
		one := strings.Replace(start, "10.0.0.1, 10.0.0.2 and 10.0.0.3", host, 1)
		p.start(one)
	}
	stop("10.0.0.3")
	p.skipTo("svc group rejoin")
	if said := at("10.0.0.3", p.next()); !strings.Contains(said, "new member") {
		t.Errorf("rejoin says %s", said)
	}
	again("10.0.0.3")
	p.untilVoters("leads", "follows")

	p.skipTo("svc snapshot")
	if said := p.run(strings.ReplaceAll(p.next(), "10.0.0.1", "10.0.0.2")); !strings.Contains(said, ".snapshot") {
		t.Errorf("the snapshot is %s", said)
	}
	// Two hosts are lost for good.
	p.lose("10.0.0.2", p.hosts["10.0.0.2"])
	p.lose("10.0.0.3", p.hosts["10.0.0.3"])
	delete(p.dirs, "10.0.0.2")
	stop("10.0.0.1")
	p.skipTo("svc group recover")
	if said := at("10.0.0.1", p.next()); !strings.Contains(said, "of the election term") {
		t.Errorf("recover says %s", said)
	}
	if said := at("10.0.0.1", p.next()); !strings.Contains(said, "a new group") {
		t.Errorf("recover says %s", said)
	}
	p.start(strings.NewReplacer(", 10.0.0.2 and 10.0.0.3", "", "10.0.0.1:7701,10.0.0.2:7701,10.0.0.3:7701", "10.0.0.1:7701").Replace(start))
	again("10.0.0.2") // with an empty directory
	if said := at("10.0.0.3", "svc group rejoin --db-path data.svc"); !strings.Contains(said, "new member") {
		t.Errorf("rejoin says %s", said)
	}
	again("10.0.0.3")
	p.untilVoters("leads", "follows")
	p.until("svc search --url http://10.0.0.3:7700 books persuasion", "Persuasion")
}
