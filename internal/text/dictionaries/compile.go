//go:build ignore

// Compile makes the files that the program reads in place from the compressed ones, which generate.go and lexicon.go
// make from their sources (README.md); go generate runs it:
//
//	go run compile.go
//
// A list of words becomes an automaton in vellum's format (svc/segment/fst), from word to frequency, 0 where the list
// has none. The German words are those that package text makes of the published list. A lexicon becomes these parts, one after
// the other; numbers are little-endian:
//
//	counts      8 uint32: bytes of the words, entries, classes, left contexts, right contexts, bytes of the changes, ranges, categories
//	words       automaton, from word to its first entry
//	classes     of each entry, uint16; the highest bit marks the last entry of a word
//	weights     of each entry, int16
//	contexts    of each class, left and right, uint16; class 0 is the beginning and the end of a text
//	parents     of each left context, the one whose row of costs its own is made from, uint16; itself: a row of zeros
//	ends        of each left context, where its changes end, uint32
//	changes     of each left context after each right one, by which the row differs from its parent's: how many more
//	            costs differ by as much as those before them (at first, by 0), uvarint, then by how much more the rest does, varint
//	ranges      of characters: the first one, uint32, and the category of all up to the next range, uint8
//	categories  as lexicon.go writes them
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/blevesearch/vellum"
	"github.com/klauspost/compress/zstd"

	"svc/internal/text"
)

func main() {
	log.SetFlags(0)
	for _, name := range []string{"chinese", "khmer", "thai"} {
		write(name+".words", compileWords(unpack(name+".zst")))
	}
	for _, name := range []string{"japanese", "korean"} {
		write(name+".lexicon", compileLexicon(unpack(name+".zst")))
	}
	parts := text.GermanParts(text.GermanWords())
	write("german.words", automaton(parts, func(int) uint64 { return 0 }))
}

func unpack(name string) []byte {
	file, err := os.ReadFile(name)
	check(err)
	d, err := zstd.NewReader(nil)
	check(err)
	defer d.Close()
	b, err := d.DecodeAll(file, nil)
	check(err)
	return b
}

func write(name string, b []byte) {
	check(os.WriteFile(name, b, 0o644))
	fmt.Printf("%s: %d bytes\n", name, len(b))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// automaton makes the automaton of sorted words.
func automaton(words []string, value func(i int) uint64) []byte {
	var b bytes.Buffer
	// With these sizes, the registry finds nearly all equal states.
	builder, err := vellum.New(&b, &vellum.BuilderOpts{Encoder: 1, RegistryTableSize: 1 << 19, RegistryMRUSize: 4})
	check(err)
	for i, w := range words {
		check(builder.Insert([]byte(w), value(i)))
	}
	check(builder.Close())
	return b.Bytes()
}

func compileWords(list []byte) []byte {
	var words []string
	var frequencies []uint64
	for line := range strings.Lines(string(list)) {
		word, frequency, weighed := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		n := uint64(0)
		if weighed {
			var err error
			n, err = strconv.ParseUint(frequency, 10, 32)
			check(err)
		}
		words, frequencies = append(words, word), append(frequencies, n)
	}
	return automaton(words, func(i int) uint64 { return frequencies[i] })
}

// lastEntry marks the class of the last entry of a word.
const lastEntry = 1 << 15

func compileLexicon(b []byte) []byte {
	take := func(n int) []byte {
		part := b[:n]
		b = b[n:]
		return part
	}
	u16 := func(b []byte, i int) uint16 { return binary.LittleEndian.Uint16(b[2*i:]) }
	var counts [8]int
	for i, head := 0, take(4*len(counts)); i < len(counts); i++ {
		counts[i] = int(binary.LittleEndian.Uint32(head[4*i:]))
	}
	letters, entries, classes, lefts, rights, ranges, categories := counts[0], counts[2], counts[3], counts[4], counts[5], counts[6], counts[7]

	words := strings.Split(strings.TrimSuffix(string(take(letters)), "\n"), "\n")
	first := make([]int, len(words)+1)
	for i, n := range take(counts[1]) {
		first[i+1] = first[i] + int(n)
	}
	if len(words) != counts[1] || first[len(words)] != entries || classes > lastEntry {
		log.Fatal("the lexicon is not whole")
	}
	entryClasses, weights := bytes.Clone(take(2*entries)), take(2*entries)
	for i := range words {
		last := 2 * (first[i+1] - 1)
		binary.LittleEndian.PutUint16(entryClasses[last:], u16(entryClasses[last:], 0)|lastEntry)
	}
	contexts := take(4 * classes)
	rows := make([][]int16, lefts)
	for i := range rows {
		rows[i] = make([]int16, rights)
		cost := int16(0)
		for j, part := 0, take(2*rights); j < rights; j++ {
			cost += int16(u16(part, j))
			rows[i][j] = cost
		}
	}
	parents := chooseParents(rows)
	var changes []byte
	var parentPart, ends bytes.Buffer
	for i, row := range rows {
		parent := make([]int16, rights)
		if parents[i] != i {
			parent = rows[parents[i]]
		}
		changes = appendChanges(changes, parent, row)
		check(binary.Write(&parentPart, binary.LittleEndian, uint16(parents[i])))
		check(binary.Write(&ends, binary.LittleEndian, uint32(len(changes))))
	}
	automaton := automaton(words, func(i int) uint64 { return uint64(first[i]) })

	var out bytes.Buffer
	for _, n := range []int{len(automaton), entries, classes, lefts, rights, len(changes), ranges, categories} {
		check(binary.Write(&out, binary.LittleEndian, uint32(n)))
	}
	for _, part := range [][]byte{automaton, entryClasses, weights, contexts, parentPart.Bytes(), ends.Bytes(), changes, b} {
		out.Write(part)
	}
	return out.Bytes()
}

func appendChanges(b []byte, parent, row []int16) []byte {
	same, difference := 0, int16(0)
	for j := range row {
		d := row[j] - parent[j]
		if d == difference {
			same++
			continue
		}
		b = binary.AppendUvarint(b, uint64(same))
		b = binary.AppendVarint(b, int64(d-difference))
		same, difference = 1, d
	}
	return b
}

// chooseParents chooses a parent for each row, so that there are few changes in all and few on the way from zeros to a row. This is a
// minimum spanning tree (Prim 1957), where a share of the way to the parent adds to the weight of an edge.
func chooseParents(rows [][]int16) []int {
	const (
		shareOfWay = 1.0 / 16
		step       = 500 // what another row on the way costs, in changes
	)
	n := len(rows)
	parents, way := make([]int, n), make([]float64, n)
	weight, edge := make([]float64, n), make([]float64, n)
	zeros := make([]int16, len(rows[0]))
	for i, row := range rows {
		parents[i] = i
		edge[i] = countChanges(zeros, row)
		weight[i] = edge[i]
	}
	placed := make([]bool, n)
	for range n {
		next := -1
		for i := range rows {
			if !placed[i] && (next < 0 || weight[i] < weight[next]) {
				next = i
			}
		}
		placed[next] = true
		way[next] = step + edge[next]
		if p := parents[next]; p != next {
			way[next] += way[p]
		}
		for i, row := range rows {
			if placed[i] || way[next]*shareOfWay >= weight[i] {
				continue
			}
			e := countChanges(rows[next], row)
			if w := e + way[next]*shareOfWay; w < weight[i] {
				weight[i], edge[i], parents[i] = w, e, next
			}
		}
	}
	return parents
}

// countChanges estimates how many changes make row from parent. It compares every fourth run of 16 costs.
func countChanges(parent, row []int16) float64 {
	const stretch, every = 16, 4
	n := 0
	for start := 0; start < len(row); start += stretch * every {
		end := min(start+stretch+1, len(row))
		a, b := parent[start:end], row[start:end]
		difference := b[0] - a[0]
		for j := 1; j < len(a); j++ {
			d := b[j] - a[j]
			if d != difference {
				n++
			}
			difference = d
		}
	}
	return math.Min(float64(n*every), float64(len(row)))
}
