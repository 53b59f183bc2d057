package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGermanCompoundsNeedNoSecondFile runs a copy of the program with no other file beside it.
func TestGermanCompoundsNeedNoSecondFile(t *testing.T) {
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "svc")
	if err := os.WriteFile(alone, self, 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(own, []byte("bahn\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(asProgram, "1")
	for _, tt := range []struct {
		words, query string
		hits         int
	}{
		{"", "stelle", 1}, {"", "telle", 0},
		{own, "stelle", 0}, {own, "bahn", 1}, // a named list replaces the built-in one
	} {
		t.Setenv(germanVariable, tt.words)
		in := &instance{t: t, url: startServer(t, alone, filepath.Join(t.TempDir(), "data")).url}
		in.call("PATCH", "/indexes/orte/settings", `{"localizedAttributes": [{"locales": ["deu"], "attributePatterns": ["*"]}]}`)
		in.call("POST", "/indexes/orte/documents", `[{"id": 1, "name": "Straßenbahnhaltestelle"}]`)
		in.idle()
		var found struct{ Hits []json.RawMessage }
		if err := json.Unmarshal([]byte(in.call("POST", "/indexes/orte/search", `{"q": "`+tt.query+`", "locales": ["deu"]}`)), &found); err != nil || len(found.Hits) != tt.hits {
			t.Errorf("%q with the list %q: %d hits (%v), want %d", tt.query, tt.words, len(found.Hits), err, tt.hits)
		}
		if terms := in.call("GET", "/licenses", ""); !strings.Contains(terms, "GNU LESSER GENERAL PUBLIC LICENSE") {
			t.Errorf("/licenses: %.200s", terms)
		}
	}
	if code, out := runProgram(map[string]string{germanVariable: "not there"}, "--db-path", filepath.Join(t.TempDir(), "data")); code != exitFailure || !strings.Contains(out, "not there") {
		t.Errorf("a missing list: %d %s", code, out)
	}
}

func TestLicensesArePrinted(t *testing.T) {
	if code, out := runProgram(nil, "licenses"); code != 0 || !strings.Contains(out, "GNU LESSER GENERAL PUBLIC LICENSE") {
		t.Errorf("%d %.200s", code, out)
	}
	if code, out := runProgram(nil, "licenses", "--german-words"); code != 0 || !strings.Contains(out, "Uwe Schindler") || !strings.Contains(out, "\nhaus\n") {
		t.Errorf("%d %.200s", code, out)
	}
}
