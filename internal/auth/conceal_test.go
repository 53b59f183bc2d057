package auth

import (
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestConceal(t *testing.T) {
	const (
		master = "the-master-key-of-a-test"
		value  = "fd0b4b65aa36521af4b10823d44c74a17e373c5c8c701df6f7f4df35e3508d49"
		token  = "eyJhbGciOiJIUzI1NiJ9.eyJzZWFyY2hSdWxlcyI6WyIqIl19.c2lnbmF0dXJl"
	)
	k, err := Open(Options{File: filepath.Join(t.TempDir(), "auth.db"), MasterKey: master, noSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for text, want := range map[string]string{
		"":               "",
		"/keys/" + value: "/keys/fd0b4XXXXXX...",
		"/keys/" + strings.ToUpper(value) + "?x=1":                             "/keys/FD0B4XXXXXX...?x=1",
		"/keys/" + value + value:                                               "/keys/fd0b4XXXXXX...",
		"/indexes/a/documents/" + value[:63]:                                   "/indexes/a/documents/" + value[:63],
		"/keys/0f1e2d3c-0000-4000-8000-000000000000":                           "/keys/0f1e2d3c-0000-4000-8000-000000000000",
		"a=" + token + "&b=" + value:                                           "a=eyJhbXXXXXX...&b=fd0b4XXXXXX...",
		"a version 1.2.3, a file a.tar.gz, eyJ and eyJhbGciOiJIUzI1NiJ9 alone": "a version 1.2.3, a file a.tar.gz, eyJ and eyJhbGciOiJIUzI1NiJ9 alone",
		"there is " + master + " and " + master:                                "there is XXXXXX... and XXXXXX...",
	} {
		if got := k.Conceal(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	slow := regexp.MustCompile(`[0-9A-Fa-f]{64,}|eyJ[0-9A-Za-z_-]*\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]*`)
	r := rand.New(rand.NewPCG(1, 2))
	masked := 0
	for range 20000 {
		text := ""
		for range r.IntN(12) {
			text += []string{value, value[:40], "eyJ", "e", ".", ".", "aZ09_-", "/", "?x=", "é", "g"}[r.IntN(11)]
		}
		want := slow.ReplaceAllStringFunc(text, mask)
		if got := k.Conceal(text); got != want {
			t.Fatalf("%q is shown as %q, want %q", text, got, want)
		}
		if want != text {
			masked++
		}
	}
	if masked < 5000 {
		t.Errorf("only %d texts have credentials", masked)
	}
}
