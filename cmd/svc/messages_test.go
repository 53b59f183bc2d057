package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAddressesThatCannotBeListenedOn: a start says what an address must be, or that another program listens on it.
func TestAddressesThatCannotBeListenedOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for address, want := range map[string]string{
		"7700":            `--http-addr must be a host and a port, such as localhost:7700 or 0.0.0.0:7700, got "7700"`,
		"localhost":       `--http-addr must be a host and a port, such as localhost:7700 or 0.0.0.0:7700, got "localhost"`,
		"localhost:99999": `the port of --http-addr must be between 0 and 65535, got "localhost:99999"`,
		"localhost:-1":    `the port of --http-addr must be between 0 and 65535, got "localhost:-1"`,
		"localhost:some":  "cannot listen on localhost:some: ",
		"x.invalid:7700":  `cannot listen on x.invalid:7700: the host "x.invalid" has no address. Choose another address with --http-addr`,
		"203.0.113.9:1":   "cannot listen on 203.0.113.9:1: this machine has no such address. Choose one of its addresses with --http-addr, or 0.0.0.0 for all",
		l.Addr().String(): "cannot listen on " + l.Addr().String() + ": another program listens there. Stop it, or choose another address with --http-addr",
	} {
		_, err := net.Listen("tcp", address)
		if err == nil {
			t.Fatalf("%s can be listened on", address)
		}
		got := listenError("--http-addr", address, err).Error()
		if !strings.HasPrefix(got, want) || !strings.Contains(got, "--http-addr") {
			t.Errorf("%s: %s", address, got)
		}
	}
}

func TestCountOfHits(t *testing.T) {
	for want, counts := range map[string][2]int{"0 hits": {0, 0}, "1 hit": {1, 1}, "3 hits": {3, 3}, "1 of about 2 hits": {1, 2}, "0 of about 9 hits": {0, 9}} {
		if got := countOfHits(counts[0], counts[1]); got != want {
			t.Errorf("%v: %q, want %q", counts, got, want)
		}
	}
}

// TestVerifyingNothing verifies paths without segments: only a data directory may have none.
func TestVerifyingNothing(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, versionFile), versionContent(), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		data:                           "",
		t.TempDir():                    "there is no segment file below",
		filepath.Join(data, "nothing"): "no such file",
	} {
		code, out, errs := runCommand("segment", "verify", path)
		if (code == 0) != (want == "") || !strings.Contains(errs, want) || strings.Contains(out, "checked") != (want == "") {
			t.Errorf("%s: %d, %q, %q", path, code, out, errs)
		}
	}
}
