package text

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// germanPublished is the list of parts of compounds as published, under the LGPL. A user may replace it by a file (UseGermanWords).
//
//go:embed dictionaries/german/dictionary-de.txt
var germanPublished string

// germanFile is the automaton of GermanParts(germanPublished).
//
//go:embed dictionaries/german.words
var germanFile []byte

// germanReplacement is the list to use instead; nil: the published one.
var germanReplacement atomic.Pointer[string]

// UseGermanWords replaces the list of the parts of German compounds by another one with a word per line. Lines with # are comments.
// Call it before any text is analysed: the list is compiled when the first German text arrives.
func UseGermanWords(list string) { germanReplacement.Store(&list) }

// GermanWords returns the published list, with the notice of its licence.
func GermanWords() string { return germanPublished }

// germanAdded are parts of compounds that the file lacks.
const germanAdded = "auen augsburg basket beach bergisch braunschweig darmstadt einspar elb esslingen etikettierung etikettierungs freiberg freiburg " +
	"gelsenkirchen glatt göttingen gütersloh heidelberg heilbronn hundert hunderte hunderter inter kaiserslautern kulturalität lagerung lagerungs " +
	"landshut magdeburg mannheim mikroskopie mittels mönchengladbach neumünster norderstedt oberhausen ratingen recklinghausen regensburg rostock " +
	"salzgitter solingen straßen tausend unfähig unfähigkeit unfähigkeits vereinbarung vereinbarungs viersen volley wohlfahrt wohltätig " +
	"wohltätigkeit wolfsburg zehnt"

// germanLeftOut are entries of the file that are compounds or no words.
const germanLeftOut = "baseball basketball glatteis üppigkeit"

var germanWords = sync.OnceValue(openGermanWords)

// openGermanWords opens the automaton in the program, or builds that of the replacement.
func openGermanWords() *wordList {
	if own := germanReplacement.Load(); own != nil {
		return compileWords(GermanParts(*own))
	}
	return openWords(germanFile)
}

// GermanParts returns, sorted, the words that segment compounds with a list in the format of UseGermanWords. These are the words of
// the list and the added ones, with and without the s that joins words in -ung and -keit to the next part, with ß and with ss, in
// lower case and capitalised. dictionaries/compile.go uses it to make the automaton of the published list.
func GermanParts(list string) []string {
	var words []string
	add := func(w string) {
		for _, w := range []string{w, strings.ReplaceAll(w, "ß", "ss")} {
			r, n := utf8.DecodeRuneInString(w)
			words = append(words, w, string(unicode.ToUpper(r))+w[n:])
		}
	}
	leftOut := strings.Fields(germanLeftOut)
	for line := range strings.Lines(list + "\n" + strings.ReplaceAll(germanAdded, " ", "\n")) {
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
