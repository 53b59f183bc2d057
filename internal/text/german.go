package text

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// germanName is the word list's file. Its licence is not that of svc, so it is
// no part of the program: it is read where it lies, and without it German
// compounds stay whole.
const germanName = "dictionary-de.txt"

// germanPlaces lists where the file is looked for, first to last.
func germanPlaces() []string {
	var places []string
	if named := os.Getenv("SVC_GERMAN_WORDS"); named != "" {
		places = append(places, named)
	}
	const inSource = "internal/text/dictionaries/german"
	if program, err := os.Executable(); err == nil {
		beside := filepath.Dir(program)
		places = append(places,
			filepath.Join(beside, "dictionaries", "german", germanName),
			filepath.Join(beside, "..", "share", "svc", "german", germanName),
			filepath.Join(beside, filepath.FromSlash(inSource), germanName)) // built in a checkout
	}
	return append(places,
		filepath.Join(filepath.FromSlash(inSource), germanName), // go run in a checkout
		filepath.Join("dictionaries", "german", germanName))     // this package's tests
}

// germanFile reads the word list from the first place that has it.
func germanFile() string {
	places := germanPlaces()
	for _, name := range places {
		if b, err := os.ReadFile(name); err == nil {
			return string(b)
		}
	}
	slog.Warn("German compounds are not cut: the word list is nowhere to be found. Name its file in SVC_GERMAN_WORDS, or put it beside the program",
		"looked for", places)
	return ""
}

// germanAdded are parts of compounds that the file lacks.
const germanAdded = "auen augsburg basket beach bergisch braunschweig darmstadt einspar elb esslingen etikettierung etikettierungs freiberg freiburg " +
	"gelsenkirchen glatt göttingen gütersloh heidelberg heilbronn hundert hunderte hunderter inter kaiserslautern kulturalität lagerung lagerungs " +
	"landshut magdeburg mannheim mikroskopie mittels mönchengladbach neumünster norderstedt oberhausen ratingen recklinghausen regensburg rostock " +
	"salzgitter solingen straßen tausend unfähig unfähigkeit unfähigkeits vereinbarung vereinbarungs viersen volley wohlfahrt wohltätig " +
	"wohltätigkeit wolfsburg zehnt"

// germanLeftOut are compounds that the file has as parts, or words that are none.
const germanLeftOut = "baseball basketball glatteis üppigkeit"

// germanLines returns the German word list, sorted: the parts of the file and those added, with and without the
// s that joins what ends in -ung and -keit to the next part, in lower case and with a capital.
func germanLines() []byte {
	file := germanFile()
	if file == "" {
		return nil
	}
	var words []string
	add := func(w string) {
		r, n := utf8.DecodeRuneInString(w)
		words = append(words, w, string(unicode.ToUpper(r))+w[n:])
	}
	leftOut := strings.Fields(germanLeftOut)
	for line := range strings.Lines(file + strings.ReplaceAll(germanAdded, " ", "\n")) {
		w := strings.TrimSpace(line)
		if w == "" || w[0] == '#' || slices.Contains(leftOut, w) {
			continue
		}
		add(w)
		if strings.HasSuffix(w, "ungs") {
			add(w[:len(w)-1])
		}
		if strings.HasSuffix(w, "keit") {
			add(w + "s")
		}
	}
	slices.Sort(words)
	return []byte(strings.Join(slices.Compact(words), "\n") + "\n")
}
