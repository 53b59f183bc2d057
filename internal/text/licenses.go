package text

import (
	"embed"
	"strings"
)

//go:embed dictionaries/LICENSE-* dictionaries/german/NOTICE.txt dictionaries/german/COPYING.LESSER dictionaries/german/COPYING
var licenseFiles embed.FS

// licensed names what the program has from others for this package, and the files that say under which terms.
var licensed = []struct {
	what  string
	files []string
}{
	{"The list of the parts of German compounds, dictionary-de.txt of german-decompounder, is under the GNU Lesser General Public License, version 3 or later. " +
		"The variable SVC_GERMAN_WORDS can name another list to use instead; svc licenses --german-words prints this one.",
		[]string{"german/NOTICE.txt", "german/COPYING.LESSER", "german/COPYING"}},
	{"Chinese words are those of jieba.", []string{"LICENSE-jieba"}},
	{"The Japanese lexicon is made from UniDic.", []string{"LICENSE-UniDic"}},
	{"The Korean lexicon is made from mecab-ko-dic.", []string{"LICENSE-mecab-ko-dic"}},
	{"Khmer words are those of ICU.", []string{"LICENSE-ICU"}},
	{"Thai words are those of PyThaiNLP, under CC0 1.0.", nil},
	{"Variants of ideographs are those of OpenCC.", []string{"LICENSE-OpenCC"}},
	{"Trigrams of languages are those of whatlanggo.", []string{"LICENSE-whatlanggo"}},
}

// Licenses returns the notices and the terms of the word lists and lexicons, for people.
func Licenses() string {
	var b strings.Builder
	for _, l := range licensed {
		b.WriteString(strings.Repeat("=", 80) + "\n" + l.what + "\n")
		for _, name := range l.files {
			text, err := licenseFiles.ReadFile("dictionaries/" + name)
			if err != nil {
				panic(err) // the files are in the program
			}
			b.WriteString(strings.Repeat("-", 80) + "\n")
			b.Write(text)
		}
	}
	return b.String()
}
