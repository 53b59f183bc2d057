package segment

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestPrefixGroups compares the unions of words by prefix with unions that are made for each prefix separately. Words have characters of
// up to four bytes, zeros and invalid UTF-8, and several may be at one position. Text lengths vary widely, and there are more rows than
// fit into a window. The second run uses small windows.
func TestPrefixGroups(t *testing.T) {
	for _, n := range []int{windowOccurrences, 500} {
		t.Run(strconv.Itoa(n), func(t *testing.T) { testPrefixGroups(t, n) })
	}
}

func testPrefixGroups(t *testing.T, inWindow int) {
	defer func(n int) { windowOccurrences = n }(windowOccurrences)
	windowOccurrences = inWindow
	const seed = 12
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	letters := []string{"a", "a", "b", "c", "ä", "€", "\U0001f600", "\x00", "\xc3", "\xe2\x82"}
	var v inverter
	row := uint32(0)
	for i := range 3000 {
		row += 1 + uint32(rng.IntN(50))
		words := rng.IntN(12)
		if i%500 == 7 {
			words = 4000
		}
		var positions [3]int
		for range words {
			f := rng.IntN(3)
			if positions[f] > 65535 {
				continue
			}
			var word []byte
			for range 1 + rng.IntN(5) {
				word = append(word, letters[rng.IntN(len(letters))]...)
			}
			if rng.IntN(4) > 0 {
				word[0] = 'a'
			}
			v.add(row, FieldID(f*f), word, uint16(positions[f]))
			positions[f] += rng.IntN(3) * rng.IntN(80)
		}
	}
	order := v.sorted(func(int) {})
	var counter prefixCounter
	var lists sequentialLists
	var few [entryWord]byte
	for i := range order {
		if word := v.word(&order[i], &few); i == 0 || v.compareWords(&order[i-1], &order[i]) != 0 {
			counter.word(word)
		}
	}
	keys := counter.finish()
	slices.Sort(keys)
	want := make(map[uint64][]fieldRows)
	for _, key := range keys {
		var u union
		for _, w := range order {
			word := v.word(&w, &few)
			if p, ok := prefixOf(word, len(keyPrefix(key))); ok && bytes.Equal(p, keyPrefix(key)) {
				var b listBuffers
				fr := v.field(w, &b)
				u.add(fr.id, fr.rows, fr.positions)
			}
		}
		want[key] = u.take()
	}
	for i := range order {
		var b listBuffers
		fr := v.field(order[i], &b)
		order[i].number = lists.add(fr, b.list)
	}
	g := prefixGroup{order: order, lists: &lists, rows: int(row) + 1, worked: func(int) {}}
	longest, groups, nested, several := 0, 0, 0, 0
	for rest := keys; len(rest) > 0; groups++ {
		n := g.unite(rest)
		for i, key := range rest[:n] {
			got, want := g.out[i], want[key]
			if len(got) != len(want) {
				t.Fatalf("%q has %d fields, want %d", keyPrefix(key), len(got), len(want))
			}
			for j := range got {
				if got[j].id != want[j].id || !slices.Equal(got[j].rows, want[j].rows) || !bytes.Equal(got[j].positions, want[j].positions) {
					t.Fatalf("%q has other rows or positions in field %d", keyPrefix(key), want[j].id)
				}
				longest = max(longest, len(got[j].positions))
			}
			if g.unions[i].shorter >= 0 {
				nested++
			} else if i > 0 {
				several++ // shares bytes with the first prefix, but no whole character
			}
		}
		rest = rest[n:]
	}
	if longest < 8000 || groups < 4 || nested < 20 || several == 0 || row < windowRows || (cap(g.window) < longest) != (inWindow < longest) {
		t.Errorf("at most %d bytes of positions, %d groups, %d nested prefixes, %d other prefixes, %d rows, windows of up to %d occurrences",
			longest, groups, nested, several, row, cap(g.window))
	}
}

// TestPrefixSort compares occurrences with sorted ones: few evenly spread ones, and many in one bucket.
func TestPrefixSort(t *testing.T) {
	const seed = 13
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var g prefixGroup
	g.worked = func(int) {}
	crowded := 0
	for range 500 {
		rows, positions := 1+rng.IntN(1<<rng.IntN(17)), 1+rng.IntN(1<<rng.IntN(17))
		list := make([]taggedOccurrence, 1+rng.IntN(3000))
		same := taggedOccurrence(rng.IntN(rows)) << 48
		for i := range list {
			list[i] = taggedOccurrence(rng.IntN(rows))<<48 | taggedOccurrence(rng.IntN(min(positions, 1<<16)))<<32 | taggedOccurrence(rng.IntN(100))
			if rng.IntN(3) == 0 {
				list[i] = same | taggedOccurrence(rng.IntN(8))<<32
			}
		}
		want := slices.Sorted(slices.Values(list))
		if !slices.Equal(g.sort(list), want) {
			t.Fatalf("%d occurrences in %d rows are not in order", len(list), rows)
		}
		if begin := uint32(0); len(list) >= bucketsFrom {
			for _, end := range g.ends {
				if end > begin+mostBucket {
					crowded++
				}
				begin = end
			}
		}
	}
	if crowded < 100 {
		t.Errorf("%d buckets had many occurrences", crowded)
	}
}
