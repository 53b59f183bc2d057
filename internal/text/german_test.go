package text

import (
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
