package text

import (
	"math"
	"unicode"
	"unicode/utf8"
)

// lattice finds the cut of a text that costs least (Viterbi 1967), word by word from the left.
type lattice struct {
	lexicon *lexicon
	at      []int     // byte offset of each character, and the end
	chars   []rune    // the characters
	others  []int32   // before each character, how many are no ideographs
	runs    []int32   // where the run of characters of one category that each is in ends
	heads   []int32   // of the nodes that end before each character, the first; 0: none
	tails   []int32   // and the last
	nodes   []node    // nodes[0] stands for none
	known   []arrival // by left context
	epoch   uint32
	stops   []int
}

// node is a word at a place. It costs what the least cut from the beginning to its end costs.
type node struct {
	cost  int32
	from  int32 // node before it in that cut
	next  int32 // node that ends where it does
	end   int32 // in characters
	right uint16
}

// arrival is the least cost of coming to a place with a left context, and the last node on the way.
type arrival struct {
	epoch uint32 // when it was found; places have different epochs
	cost  int32
	from  int32
}

// Long words cost more, so that compounds are split as in Kuromoji's search mode: words of ideographs alone if they have more than
// two characters, others if they have more than seven.
const (
	ideographsFree, ideographsPenalty = 2, 3000
	othersFree, othersPenalty         = 7, 1700
)

// longestUnknown is the longest word in characters that is not in the lexicon.
const longestUnknown = 1024

// cut returns the byte offsets at which the words of s end. They are valid until the next call.
func (t *lattice) cut(s []byte) []int {
	l := t.lexicon
	t.prepare(s)
	n := len(t.chars)
	t.nodes = append(t.nodes[:0], node{})
	t.push(node{right: l.context(0).right})
	for i := range n {
		if t.heads[i] == 0 {
			continue
		}
		t.epoch++
		if t.epoch == 0 {
			clear(t.known)
			t.epoch = 1
		}
		found := t.addKnown(s, i)
		category := l.categories[l.categoryOf(t.chars[i])]
		if found && !category.always {
			continue
		}
		end := i + 1
		if category.group {
			end = min(int(t.runs[i]), i+longestUnknown)
		}
		for _, e := range category.entries {
			if i < end-1 {
				t.add(i, end-1, e)
			}
			t.add(i, end, e)
		}
	}
	t.epoch++
	_, last := t.arrive(n, l.context(0).left)
	t.stops = t.stops[:0]
	for ; t.nodes[last].end > 0; last = t.nodes[last].from {
		t.stops = append(t.stops, t.at[t.nodes[last].end])
	}
	for i, j := 0, len(t.stops)-1; i < j; i, j = i+1, j-1 {
		t.stops[i], t.stops[j] = t.stops[j], t.stops[i]
	}
	return t.stops
}

// prepare looks at the characters of s.
func (t *lattice) prepare(s []byte) {
	t.at, t.chars, t.others = t.at[:0], t.chars[:0], append(t.others[:0], 0)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRune(s[i:])
		others := t.others[len(t.others)-1]
		if !unicode.Is(unicode.Ideographic, r) {
			others++
		}
		t.at, t.chars, t.others = append(t.at, i), append(t.chars, r), append(t.others, others)
		i += size
	}
	t.at = append(t.at, len(s))
	n := len(t.chars)
	t.runs = append(t.runs[:0], make([]int32, n)...)
	for i := n - 1; i >= 0; i-- {
		t.runs[i] = int32(i + 1)
		if i+1 < n && t.lexicon.categoryOf(t.chars[i]) == t.lexicon.categoryOf(t.chars[i+1]) {
			t.runs[i] = t.runs[i+1]
		}
	}
	t.heads = append(t.heads[:0], make([]int32, n+1)...)
	t.tails = append(t.tails[:0], make([]int32, n+1)...)
}

// addKnown adds the words of the lexicon that begin with character i, and reports whether there are any.
func (t *lattice) addKnown(s []byte, i int) bool {
	l := t.lexicon
	found := false
	at := l.words.start
	for j := i; j < len(t.chars) && advance(&at, s[t.at[j]:t.at[j+1]]); j++ {
		first, ok := at.Value()
		if !ok {
			continue
		}
		found = true
		for last := false; !last; first++ {
			var e lexiconEntry
			e, last = l.entry(first)
			t.add(i, j+1, e)
		}
	}
	return found
}

// add adds a word from character i to j.
func (t *lattice) add(i, j int, e lexiconEntry) {
	context := t.lexicon.context(e.class)
	cost, from := t.arrive(i, context.left)
	cost += int32(e.weight)
	switch chars := j - i; {
	case t.others[i] == t.others[j]:
		cost += int32(max(0, chars-ideographsFree) * ideographsPenalty)
	default:
		cost += int32(max(0, chars-othersFree) * othersPenalty)
	}
	t.push(node{cost: cost, from: from, end: int32(j), right: context.right})
}

// arrive returns the cost of reaching character i with a left context, and the last node on the path.
func (t *lattice) arrive(i int, left uint16) (cost, from int32) {
	known := &t.known[left]
	if known.epoch == t.epoch {
		return known.cost, known.from
	}
	costs := t.lexicon.costs(left)
	cost = math.MaxInt32
	for k := t.heads[i]; k != 0; k = t.nodes[k].next {
		if c := t.nodes[k].cost + int32(costs[t.nodes[k].right]); c < cost {
			cost, from = c, k
		}
	}
	*known = arrival{t.epoch, cost, from}
	return cost, from
}

// push adds a node to those that end where it does.
func (t *lattice) push(n node) {
	k := int32(len(t.nodes))
	t.nodes = append(t.nodes, n)
	if t.heads[n.end] == 0 {
		t.heads[n.end] = k
	} else {
		t.nodes[t.tails[n.end]].next = k
	}
	t.tails[n.end] = k
}
