package text

import (
	"slices"
	"strings"
	"testing"
)

func TestGerman(t *testing.T) {
	tests := []struct{ text, words string }{
		{"Straßenbahnhaltestelle", "strassen bahn halte stelle"}, {"Strassenbahnhaltestelle", "strassen bahn halte stelle"}, {"Krankenversicherungskarte", "kranken versicherungs karte"},
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

func TestGermanListIsReplaced(t *testing.T) {
	defer germanReplacement.Store(nil)
	UseGermanWords("# mine\neins\nzwei")
	if words := openGermanWords(); !words.has([]byte("Zwei")) || words.has([]byte("Versicherungs")) {
		t.Error("the words differ from the list")
	}
	UseGermanWords("")
	if words := openGermanWords(); !words.has([]byte("mannheim")) || words.has([]byte("haus")) {
		t.Error("an empty list lacks added words, or has others")
	}
	if words := compileWords(nil); words.has(nil) || words.longest([]byte("haus")) != 0 {
		t.Error("an empty list has words")
	}
}

func TestGermanWords(t *testing.T) {
	list := GermanParts(GermanWords())
	if !slices.IsSorted(list) || len(list) < 29000 {
		t.Errorf("%d words, sorted: %v", len(list), slices.IsSorted(list))
	}
	words := germanWords()
	if n := words.words.Words(); n != len(list) {
		t.Errorf("the compiled automaton has %d words, the list %d: run go generate", n, len(list))
	}
	for _, w := range append(list, "Straßen", "straßen", "Versicherungs", "versicherung", "Möglichkeits", "Übel", "übel", "zehnt") {
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

func TestLicenses(t *testing.T) {
	all := Licenses()
	for _, s := range []string{"GNU LESSER GENERAL PUBLIC LICENSE", "GNU GENERAL PUBLIC LICENSE", "Uwe Schindler", "UniDic", "Apache License", "UNICODE"} {
		if !strings.Contains(strings.ToUpper(all), strings.ToUpper(s)) {
			t.Errorf("the licences lack %q", s)
		}
	}
	if words := GermanWords(); !strings.HasPrefix(words, "# Copyright") || !strings.Contains(words, "\nhaus\n") {
		t.Errorf("the published list begins with %.40q", words)
	}
}
