//go:build ignore

// Generate makes the data files of this directory from their sources (README.md):
//
//	go run generate.go -jieba dict.txt -thai words_th.txt -khmer khmerdict.txt -opencc opencc/dictionary -whatlanggo lang.go
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

func main() {
	jieba := flag.String("jieba", "", "dict.txt of jieba")
	thai := flag.String("thai", "", "words_th.txt of PyThaiNLP")
	khmer := flag.String("khmer", "", "khmerdict.txt of ICU")
	whatlanggo := flag.String("whatlanggo", "", "lang.go of whatlanggo")
	opencc := flag.String("opencc", "", "directory of OpenCC's character tables")
	flag.Parse()
	log.SetFlags(0)

	var chinese []string
	single := map[string]bool{}
	for _, line := range lines(*jieba) {
		f := strings.Fields(line)
		// Latin letters are of another script, so words with them are never looked up.
		if len(f) < 2 || strings.ContainsFunc(f[0], func(r rune) bool { return 'A' <= r&^0x20 && r&^0x20 <= 'Z' }) {
			continue
		}
		chinese = append(chinese, f[0]+"\t"+f[1])
		if utf8.RuneCountInString(f[0]) == 1 {
			single[f[0]] = true
		}
	}
	write("chinese.zst", chinese)

	write("thai.zst", words(*thai))
	write("khmer.zst", words(*khmer))

	if err := os.WriteFile("variants.txt", variants(*opencc, single), 0o644); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("profiles.txt", profiles(*whatlanggo), 0o644); err != nil {
		log.Fatal(err)
	}
}

// words returns the words of a file that has one a line.
func words(name string) []string {
	var words []string
	for _, line := range lines(name) {
		if w := strings.TrimSpace(line); w != "" && w[0] != '#' {
			words = append(words, w)
		}
	}
	return words
}

// profiles writes the trigrams of each language that the analysis distinguishes, the most frequent first.
func profiles(name string) []byte {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		log.Fatal(err)
	}
	codes := map[string]string{"Azj": "aze"}
	keep := strings.Fields("spa eng por ind fra deu jav vie ita tur pol ron hrv nld uzb hun aze ces zul swe aka sna afr fin tgl tuk dan nob lit slv epo lav est")
	var out []string
	for _, e := range file.Scope.Lookup("latinLangs").Decl.(*ast.ValueSpec).Values[0].(*ast.CompositeLit).Elts {
		e := e.(*ast.KeyValueExpr)
		code := e.Key.(*ast.Ident).Name
		if c, ok := codes[code]; ok {
			code = c
		}
		if code = strings.ToLower(code); !slices.Contains(keep, code) {
			continue
		}
		trigrams := ""
		for _, t := range e.Value.(*ast.CompositeLit).Elts {
			t, err := strconv.Unquote(t.(*ast.BasicLit).Value)
			if err != nil || utf8.RuneCountInString(t) != 3 {
				log.Fatalf("%s: %q is no trigram", code, t)
			}
			trigrams += t
		}
		out = append(out, code+"\t"+trigrams+"\n")
	}
	if slices.Sort(out); len(out) != len(keep) {
		log.Fatalf("%d profiles, want %d", len(out), len(keep))
	}
	return []byte(strings.Join(out, ""))
}

// names are forms of ideographs in Japanese names and old texts that OpenCC lacks or that its tables leave out because the list of
// Chinese words has them, in Japanese names. Each is followed by the form that it folds to.
const names = `
髙高 﨑崎 邉边 濵滨 栁柳 桺柳 冨富 嶋岛 嶌岛 槗桥 靏鹤 靍鹤 曻升 桒桑 𠮷吉 煕熙 淸清 靑青
瀬濑 渕渊 諌谏 桜樱 亜亚 団团 増增 実实 尭尧 徳德 恵惠 緖绪 郞郎 郷乡 鄕乡 﨔榉 槙槇
`

// variants writes pairs of characters, a variant and the simplified form it folds to.
func variants(dir string, used map[string]bool) []byte {
	simplified := map[string]string{}
	for _, line := range lines(filepath.Join(dir, "TSCharacters.txt")) {
		from, to, _ := strings.Cut(line, "\t")
		simplified[from], _, _ = strings.Cut(to, " ")
	}
	final := func(c string) string {
		for range 4 {
			next, ok := simplified[c]
			if !ok {
				break
			}
			c = next
		}
		return c
	}
	add := func(from, to string) {
		if to = final(to); from != to && simplified[from] == "" {
			simplified[from] = to
		}
	}
	for _, name := range []string{"TWVariantsRev.txt", "HKVariantsRev.txt"} {
		for _, line := range lines(filepath.Join(dir, name)) {
			from, to, _ := strings.Cut(line, "\t")
			to, _, _ = strings.Cut(to, " ")
			if !used[from] {
				add(from, to)
			}
		}
	}
	// A Japanese form of several characters, or one that is a different character in Chinese, stays.
	japanese := map[string][]string{}
	for _, line := range lines(filepath.Join(dir, "JPVariants.txt")) {
		from, to, _ := strings.Cut(line, "\t")
		for _, to := range strings.Fields(to) {
			japanese[to] = append(japanese[to], from)
		}
	}
	for to, from := range japanese {
		if len(from) == 1 && !used[to] {
			add(to, from[0])
		}
	}
	for _, pair := range strings.Fields(names) {
		from, n := utf8.DecodeRuneInString(pair)
		simplified[string(from)] = pair[n:]
	}
	var pairs []string
	for from := range simplified {
		if to := final(from); utf8.RuneCountInString(from) == 1 && utf8.RuneCountInString(to) == 1 && from != to {
			pairs = append(pairs, from+to)
		}
	}
	slices.Sort(pairs)
	var b bytes.Buffer
	for i, p := range pairs {
		b.WriteString(p)
		if i%32 == 31 || i == len(pairs)-1 {
			b.WriteByte('\n')
		}
	}
	fmt.Println("variants:", len(pairs))
	return b.Bytes()
}

func lines(name string) []string {
	f, err := os.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	var all []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		all = append(all, s.Text())
	}
	if err := s.Err(); err != nil {
		log.Fatal(err)
	}
	return all
}

func write(name string, words []string) {
	slices.SortFunc(words, func(a, b string) int {
		a, _, _ = strings.Cut(a, "\t")
		b, _, _ = strings.Cut(b, "\t")
		return strings.Compare(a, b)
	})
	words = slices.CompactFunc(words, func(a, b string) bool {
		a, _, _ = strings.Cut(a, "\t")
		b, _, _ = strings.Cut(b, "\t")
		return a == b
	})
	text := []byte(strings.Join(words, "\n") + "\n")
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	if err != nil {
		log.Fatal(err)
	}
	out := e.EncodeAll(text, nil)
	if err := os.WriteFile(name, out, 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d words, %d bytes, %d compressed\n", name, len(words), len(text), len(out))
}
