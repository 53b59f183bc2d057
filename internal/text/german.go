package text

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed dictionaries/german/dictionary-de.txt
var germanFile string

// germanAdded are parts of compounds that germanFile lacks.
const germanAdded = "auen augsburg basket beach bergisch braunschweig darmstadt einspar elb esslingen etikettierung etikettierungs freiberg freiburg " +
	"gelsenkirchen glatt göttingen gütersloh heidelberg heilbronn hundert hunderte hunderter inter kaiserslautern kulturalität lagerung lagerungs " +
	"landshut magdeburg mannheim mikroskopie mittels mönchengladbach neumünster norderstedt oberhausen ratingen recklinghausen regensburg rostock " +
	"salzgitter solingen straßen tausend unfähig unfähigkeit unfähigkeits vereinbarung vereinbarungs viersen volley wohlfahrt wohltätig " +
	"wohltätigkeit wolfsburg zehnt"

// germanLeftOut are compounds that germanFile has as parts, or words that are none.
const germanLeftOut = "baseball basketball glatteis üppigkeit"

// germanLines returns the German word list, sorted: the parts of the file and those added, with and without the
// s that joins what ends in -ung and -keit to the next part, in lower case and with a capital.
func germanLines() []byte {
	var words []string
	add := func(w string) {
		r, n := utf8.DecodeRuneInString(w)
		words = append(words, w, string(unicode.ToUpper(r))+w[n:])
	}
	leftOut := strings.Fields(germanLeftOut)
	for line := range strings.Lines(germanFile + strings.ReplaceAll(germanAdded, " ", "\n")) {
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
