package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// readDataset reads a file of documents, one a line.
func readDataset(name string) (*dataset, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read documents: %w", err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("cannot read documents from %s: %w", name, err)
		}
	}
	payload, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("cannot read documents from %s: %w", name, err)
	}
	if n := len(payload); n > 0 && payload[n-1] != '\n' {
		payload = append(payload, '\n')
	}
	base := filepath.Base(name)
	return &dataset{name: base, title: base, documents: bytes.Count(payload, []byte{'\n'}), payload: payload}, nil
}

// generate makes n descriptions of software packages: words of a vocabulary by Zipf's law, in sentences of
// natural length, with the fields, list lengths and sizes that such descriptions have.
func generate(n int) *dataset {
	g := newGenerator()
	var b bytes.Buffer
	for id := range n {
		g.document(&b, id)
	}
	return &dataset{name: "generated", title: "Generated package descriptions", documents: n, payload: b.Bytes()}
}

type generator struct {
	*rand.Rand
	vocabulary []string
	word       *rand.Zipf
	tag        *rand.Zipf
	section    *rand.Zipf
	maintainer *rand.Zipf
}

var (
	sections      = strings.Fields("libs libdevel python perl devel doc science games utils admin net web sound graphics editors fonts text math kernel java ruby php haskell golang rust video mail otherosfs electronics localization")
	architectures = []string{"amd64", "amd64", "amd64", "all"}
	priorities    = []string{"optional", "optional", "optional", "optional", "important", "required"}
	facets        = strings.Fields("role implemented-in interface devel works-with use scope protocol field suite uitoolkit hardware")
	onsets        = strings.Fields("b c d f g h k l m n p r s t v w z ch cl dr fr gr pl pr sh st str th tr")
	nuclei        = strings.Fields("a e i o u a e i o ai ea ou")
	codas         = append(strings.Fields("n r s t l m nd ng st ck"), "", "", "")
)

const (
	vocabularySize = 60000
	maintainers    = 1500
)

func newGenerator() *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(20261121, 1))}
	seen := make(map[string]bool, vocabularySize)
	for len(g.vocabulary) < vocabularySize {
		// Frequent words are short, as in any language.
		syllables := 1 + int(math.Log2(1+float64(len(g.vocabulary))/40)/3)
		var w strings.Builder
		for range syllables + g.IntN(2) {
			w.WriteString(pick(g, onsets) + pick(g, nuclei) + pick(g, codas))
		}
		if word := w.String(); !seen[word] {
			seen[word] = true
			g.vocabulary = append(g.vocabulary, word)
		}
	}
	g.word = rand.NewZipf(g.Rand, 1.07, 2.7, vocabularySize-1)
	g.tag = rand.NewZipf(g.Rand, 1.3, 5, 400)
	g.section = rand.NewZipf(g.Rand, 1.2, 3, uint64(len(sections)-1))
	g.maintainer = rand.NewZipf(g.Rand, 1.2, 4, maintainers-1)
	return g
}

func pick(g *generator, list []string) string { return list[g.IntN(len(list))] }

// words appends n words.
func (g *generator) words(b *bytes.Buffer, n int) {
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(g.vocabulary[g.word.Uint64()])
	}
}

// name makes a package name of one to three random words of the vocabulary.
func (g *generator) name() string {
	name := g.vocabulary[g.IntN(vocabularySize)]
	for range g.IntN(3) {
		name += "-" + g.vocabulary[g.IntN(vocabularySize)]
	}
	return name
}

func (g *generator) list(b *bytes.Buffer, key string, n int, item func() string) {
	fmt.Fprintf(b, `, %q: [`, key)
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, "%q", item())
	}
	b.WriteByte(']')
}

// few returns a number that is mostly small, with the given mean.
func (g *generator) few(mean float64) int { return int(g.ExpFloat64() * mean) }

func (g *generator) document(b *bytes.Buffer, id int) {
	name := g.name()
	fmt.Fprintf(b, `{"id": %d, "name": %q, "source": %q, "version": "%d.%d.%d-%d", "summary": "`, id, name, name, g.IntN(10), g.IntN(20), g.IntN(50), 1+g.IntN(9))
	g.words(b, 4+g.IntN(7))
	b.WriteString(`", "description": "`)
	for i := range 1 + g.few(3) {
		if i > 0 {
			b.WriteString([]string{". ", ".\\n", ", ", ". "}[g.IntN(4)])
		}
		g.words(b, 5+g.IntN(12))
	}
	maintainer := g.maintainer.Uint64()
	fmt.Fprintf(b, `.", "section": %q, "priority": %q, "architecture": %q, "maintainerName": "%s %s team", "maintainer": "lists.%s.example.org", "installedSize": %d, "size": %d`,
		sections[g.section.Uint64()], pick(g, priorities), pick(g, architectures), g.vocabulary[maintainer], g.vocabulary[maintainer+7], g.vocabulary[maintainer+3],
		10+int(math.Exp(g.NormFloat64()*2+6)), 1000+int(math.Exp(g.NormFloat64()*2+11)))
	g.list(b, "tags", g.few(3), func() string {
		t := g.tag.Uint64()
		return facets[t%uint64(len(facets))] + "::" + g.vocabulary[100+t]
	})
	g.list(b, "depends", g.few(5), g.name)
	g.list(b, "recommends", g.few(0.5), g.name)
	g.list(b, "suggests", g.few(0.5), g.name)
	for _, key := range []string{"provides", "conflicts", "breaks", "replaces"} {
		g.list(b, key, g.few(0.2), g.name)
	}
	fmt.Fprintf(b, `, "sHA256": "%016x%016x%016x%016x", "multiArch": null}`+"\n", g.Uint64(), g.Uint64(), g.Uint64(), g.Uint64())
}
