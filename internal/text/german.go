package text

import (
	_ "embed"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// germanPublished is the list of parts of compounds as it was published, under the LGPL: whoever wants another one in its place names
// a file of it (UseGermanWords).
//
//go:embed dictionaries/german/dictionary-de.txt
var germanPublished string

// germanReplacement is the list to use instead; nil: the published one.
var germanReplacement atomic.Pointer[string]

// UseGermanWords replaces the list of the parts of German compounds by another one: a word a line, lines with # are comments. It is
// called before the first text is looked at, or not at all: the list is compiled when the first German text comes.
func UseGermanWords(list string) { germanReplacement.Store(&list) }

// GermanWords returns the published list, with the notice of its licence.
func GermanWords() string { return germanPublished }

// germanAdded are parts of compounds that the file lacks.
const germanAdded = "auen augsburg basket beach bergisch braunschweig darmstadt einspar elb esslingen etikettierung etikettierungs freiberg freiburg " +
	"gelsenkirchen glatt göttingen gütersloh heidelberg heilbronn hundert hunderte hunderter inter kaiserslautern kulturalität lagerung lagerungs " +
	"landshut magdeburg mannheim mikroskopie mittels mönchengladbach neumünster norderstedt oberhausen ratingen recklinghausen regensburg rostock " +
	"salzgitter solingen straßen tausend unfähig unfähigkeit unfähigkeits vereinbarung vereinbarungs viersen volley wohlfahrt wohltätig " +
	"wohltätigkeit wolfsburg zehnt"

// germanLeftOut are compounds that the file has as parts, or words that are none.
const germanLeftOut = "baseball basketball glatteis üppigkeit"

// germanList returns the German word list, sorted: the parts of the file and those added, with and without the
// s that joins what ends in -ung and -keit to the next part, in lower case and with a capital.
func germanList() []string {
	file := germanPublished
	if own := germanReplacement.Load(); own != nil {
		file = *own + "\n"
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
	return slices.Compact(words)
}
