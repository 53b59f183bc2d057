package text

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGerman(t *testing.T) {
	tests := []struct{ text, words string }{
		{"Straßenbahnhaltestelle", "straßen bahn halte stelle"}, {"Krankenversicherungskarte", "kranken versicherungs karte"},
		{"Weinbergschneckenhaus", "wein berg schnecke n haus"}, {"Die Katze auf dem Sofa", "die katz e au f dem sofa"},
		{"HANDBALL", "handball"}, {"Handball", "hand ball"}, {"Basketball", "basket ball"}, {"Qx", "qx"}, {"Haus7", "haus 7"}, {"", ""},
	}
	a := New(Config{})
	for _, test := range tests {
		var words []string
		for _, token := range a.Tokens(nil, test.text, Locales{"deu"}, true) {
			if token.Kind == Word {
				words = append(words, token.Form)
			}
		}
		if got := strings.Join(words, " "); got != test.words {
			t.Errorf("%s: %s, want %s", test.text, got, test.words)
		}
	}
}

func TestTheGermanListIsReadWhereItIsNamed(t *testing.T) {
	own := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(own, []byte("# mine\neins\nzwei\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SVC_GERMAN_WORDS", own)
	if lines := string(germanLines()); !strings.Contains(lines, "Zwei\n") || strings.Contains(lines, "Versicherungs\n") {
		t.Errorf("%q is not the named list", lines)
	}
	t.Setenv("SVC_GERMAN_WORDS", "")
	t.Chdir(t.TempDir())
	if lines := germanLines(); lines != nil {
		t.Errorf("%d bytes where there is no list", len(lines))
	}
	if words := newWordList(nil); words.has([]byte("haus")) {
		t.Error("an empty list has a word")
	}
}

func TestGermanWords(t *testing.T) {
	lines := strings.Fields(string(germanLines()))
	if !slices.IsSorted(lines) || len(lines) < 29000 {
		t.Errorf("%d words, sorted: %v", len(lines), slices.IsSorted(lines))
	}
	words := germanWords()
	for _, w := range []string{"Straßen", "straßen", "Versicherungs", "versicherung", "Möglichkeits", "Übel", "übel", "zehnt"} {
		if !words.has([]byte(w)) {
			t.Errorf("%s is missing", w)
		}
	}
	for _, w := range []string{"basketball", "Üppigkeit", "glatteis"} {
		if words.has([]byte(w)) {
			t.Errorf("%s is listed", w)
		}
	}
}
