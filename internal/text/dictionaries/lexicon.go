//go:build ignore

// Lexicon makes a lexicon of this directory (README.md) from a dictionary of kagome, a zip file:
//
//	go run lexicon.go -in uni.dict -out japanese.zst
//	go run lexicon.go -in ko.dict -out korean.zst -parts korean.parts
//
// It keeps what cutting takes, and leaves out the parts of speech and readings. Numbers are little-endian. The file
// is one zstd frame with these parts, one after the other:
//
//	counts      8 uint32: bytes of the words, words, entries, classes, left contexts, right contexts, ranges, categories
//	words       each followed by a line feed, sorted by bytes
//	entries     of each word: how many, uint8
//	classes     of each entry, uint16
//	weights     of each entry, int16
//	contexts    of each class, left and right, uint16; class 0 is the beginning and the end of a text
//	costs       of each left context after each right one, int16, as the difference to the right context before
//	ranges      of characters: the first one, uint32, and the category of all up to the next range, uint8
//	categories  flags (1: unknown words compete with known ones; 2: a run of the category is one unknown word) and
//	            the number of entries for unknown words, both uint8, then for each its class, uint16, and weight, int16
//
// The file of parts has a byte for each entry: of the first entry of a compound noun, bit n says that a part ends after n+1 characters.
// A word is a compound noun if its most probable entry is one. The dictionary lists the parts of each.
package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

type morph struct{ Left, Right, Weight int16 }

type class struct{ left, right int16 }

func main() {
	in := flag.String("in", "", "dictionary of kagome")
	out := flag.String("out", "", "lexicon to write")
	parts := flag.String("parts", "", "parts of Korean compounds to write")
	flag.Parse()
	log.SetFlags(0)
	archive, err := zip.OpenReader(*in)
	check(err)
	defer archive.Close()
	part := func(name string) *bytes.Reader {
		f, err := archive.Open(name)
		check(err)
		b, err := io.ReadAll(f)
		check(err)
		return bytes.NewReader(b)
	}

	morphs := readMorphs(part("morph.dict"))
	words := readIndex(part("index.dict"), len(morphs))
	unknownIndex, unknownMore, unknown := readUnknown(part("unk.dict"))
	lefts, rights, costs := readCosts(part("connection.dict"))
	var chars struct {
		CharClass             []string
		CharCategory          []byte
		InvokeList, GroupList []bool
	}
	check(gob.NewDecoder(part("chardef.dict")).Decode(&chars))

	if *parts != "" {
		writeParts(*parts, part("content.dict"), words, morphs)
	}

	numbers := map[class]uint16{{0, 0}: 0}
	classes := []class{{0, 0}}
	number := func(m morph) uint16 {
		c := class{lefts[m.Left], rights[m.Right]}
		n, ok := numbers[c]
		if !ok {
			n = uint16(len(classes))
			numbers[c] = n
			classes = append(classes, c)
		}
		return n
	}
	if lefts[0] != 0 || rights[0] != 0 {
		log.Fatal("the context of the beginning is not the first")
	}
	var text, counts, entries, weights bytes.Buffer
	for i, w := range words {
		text.WriteString(w.text + "\n")
		end := len(morphs)
		if i+1 < len(words) {
			end = words[i+1].first
		}
		if end-w.first > math.MaxUint8 || end <= w.first {
			log.Fatalf("%q has %d entries", w.text, end-w.first)
		}
		counts.WriteByte(byte(end - w.first))
	}
	for _, m := range morphs {
		write(&entries, number(m))
		write(&weights, m.Weight)
	}
	var categories bytes.Buffer
	for i := range chars.CharClass {
		flags := uint8(0)
		if chars.InvokeList[i] {
			flags |= 1
		}
		if chars.GroupList[i] {
			flags |= 2
		}
		first, n := unknownIndex[int32(i)], unknownMore[int32(i)]+1
		write(&categories, flags, uint8(n))
		for _, m := range unknown[first : first+n] {
			write(&categories, number(m), m.Weight)
		}
	}
	var ranges bytes.Buffer
	n := 0
	for i, c := range append(chars.CharCategory, chars.CharCategory[0]) { // what lies beyond has the category of the first
		if i == 0 || c != chars.CharCategory[i-1] {
			write(&ranges, uint32(i), c)
			n++
		}
	}

	var b bytes.Buffer
	for _, n := range []int{text.Len(), len(words), len(morphs), len(classes), len(costs), len(costs[0]), n, len(chars.CharClass)} {
		write(&b, uint32(n))
	}
	for _, p := range []*bytes.Buffer{&text, &counts, &entries, &weights} {
		b.Write(p.Bytes())
	}
	for _, c := range classes {
		write(&b, c.left, c.right)
	}
	for _, row := range costs {
		for j := len(row) - 1; j > 0; j-- {
			row[j] -= row[j-1]
		}
		write(&b, row)
	}
	b.Write(ranges.Bytes())
	b.Write(categories.Bytes())
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	check(err)
	z := e.EncodeAll(b.Bytes(), nil)
	check(os.WriteFile(*out, z, 0o644))
	fmt.Printf("%s: %d words, %d entries, %d classes, %d × %d costs, %d bytes, %d compressed\n",
		*out, len(words), len(morphs), len(classes), len(costs), len(costs[0]), b.Len(), len(z))
}

// writeParts writes the file of parts. The features of entries are lines of fields with the byte 7 between them. Field 3 is the type of the
// entry, field 6 the parts of a compound: each is a word, its part of speech and its meaning, with slashes between.
func writeParts(name string, features io.Reader, words []word, morphs []morph) {
	b, err := io.ReadAll(features)
	check(err)
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) != len(morphs) {
		log.Fatalf("%d features of %d entries", len(lines), len(morphs))
	}
	parts, compounds := make([]byte, len(morphs)), 0
	for i, w := range words {
		end := len(morphs)
		if i+1 < len(words) {
			end = words[i+1].first
		}
		best := w.first
		for k := w.first; k < end; k++ {
			if morphs[k].Weight < morphs[best].Weight {
				best = k
			}
		}
		fields := strings.Split(lines[best], "\a")
		if fields[3] != "Compound" && fields[3] != "Preanalysis" {
			continue
		}
		if parts[w.first] = partsOf(w.text, fields[6]); parts[w.first] != 0 {
			compounds++
		}
	}
	check(os.WriteFile(name, parts, 0o644))
	fmt.Printf("%s: %d compounds\n", name, compounds)
}

// partsOf returns the byte of a compound; 0 if its parts are not nouns, or are not written one behind the other.
func partsOf(word, expression string) byte {
	mask, chars := 0, 0
	for part := range strings.SplitSeq(expression, "+") {
		fields := strings.Split(part, "/")
		rest, ok := strings.CutPrefix(word, fields[0])
		if !ok || fields[0] == "" || len(fields) < 2 || fields[1] != "NNG" && fields[1] != "NNP" {
			return 0
		}
		word = rest
		if chars += utf8.RuneCountInString(fields[0]); word != "" {
			mask |= 1 << (chars - 1)
		}
	}
	if word != "" {
		return 0
	}
	return byte(mask)
}

func readMorphs(r io.Reader) []morph {
	var n int64
	read(r, &n)
	m := make([]morph, n)
	read(r, m)
	return m
}

type word struct {
	text  string
	first int // of its entries
}

// readIndex reads the words out of the double array.
func readIndex(r io.Reader, entries int) []word {
	var n int64
	read(r, &n)
	nodes := make([]struct{ Base, Check int32 }, n)
	read(r, nodes)
	var words []word
	var walk func(p int, prefix []byte)
	walk = func(p int, prefix []byte) {
		for c := range 256 {
			q := int(nodes[p].Base) + c
			if q <= 0 || q >= len(nodes) || int(nodes[q].Check) != p {
				continue
			}
			if c == 0 {
				if nodes[q].Base <= 0 {
					words = append(words, word{string(prefix), int(-nodes[q].Base)})
				}
				continue
			}
			walk(q, append(prefix, byte(c)))
		}
	}
	walk(0, nil)
	sorted := sort.SliceIsSorted(words, func(i, j int) bool { return words[i].text < words[j].text && words[i].first < words[j].first })
	if !sorted || words[0].first != 0 || words[len(words)-1].first >= entries {
		log.Fatal("the words are not in the order of their entries")
	}
	return words
}

func readUnknown(r io.Reader) (index, more map[int32]int32, m []morph) {
	pairs := func() map[int32]int32 {
		var n int64
		read(r, &n)
		m := make(map[int32]int32)
		for range n {
			var p [2]int32
			read(r, &p)
			m[p[0]] = p[1]
		}
		return m
	}
	index, more = pairs(), pairs()
	return index, more, readMorphs(r)
}

// readCosts reads the connection costs. It merges equal rows and equal columns, and returns which one stands for each.
func readCosts(r io.Reader) (lefts, rights []int16, costs [][]int16) {
	var n [2]int64
	read(r, &n)
	rows := make([][]int16, n[1]) // of the left contexts
	for i := range rows {
		rows[i] = make([]int16, n[0])
		read(r, rows[i])
	}
	lefts, rows = unique(rows)
	columns := make([][]int16, n[0])
	for j := range columns {
		columns[j] = make([]int16, len(rows))
		for i, row := range rows {
			columns[j][i] = row[j]
		}
	}
	rights, columns = unique(columns)
	for i := range rows {
		rows[i] = rows[i][:len(columns)]
		for j, c := range columns {
			rows[i][j] = c[i]
		}
	}
	return lefts, rights, rows
}

// unique leaves one of each kind of list, in the order of the first ones, and says which list each is now.
func unique(lists [][]int16) (now []int16, kept [][]int16) {
	seen := map[string]int16{}
	for _, l := range lists {
		var key bytes.Buffer
		write(&key, l)
		i, ok := seen[key.String()]
		if !ok {
			i = int16(len(kept))
			seen[key.String()] = i
			kept = append(kept, slices.Clone(l))
		}
		now = append(now, i)
	}
	return now, kept
}

func read(r io.Reader, to any) { check(binary.Read(r, binary.LittleEndian, to)) }

func write(w io.Writer, values ...any) {
	for _, v := range values {
		check(binary.Write(w, binary.LittleEndian, v))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
