package transformer

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// readModel reads the vocabulary. Old files do not name the kind; it shows in what they have.
func readModel(raw json.RawMessage, vocabulary int) (wordModel, error) {
	var o struct {
		Type         string
		Unknown      json.RawMessage `json:"unk_token"`
		UnknownID    *int            `json:"unk_id"`
		Prefix       *string         `json:"continuing_subword_prefix"`
		MaxChars     int             `json:"max_input_chars_per_word"`
		Vocabulary   json.RawMessage `json:"vocab"`
		Merges       []merge         `json:"merges"`
		Ignore       bool            `json:"ignore_merges"`
		ByteFallback bool            `json:"byte_fallback"`
		EndOfWord    string          `json:"end_of_word_suffix"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	if o.Type == "" {
		switch {
		case o.Merges != nil:
			o.Type = "BPE"
		case len(o.Vocabulary) > 0 && o.Vocabulary[0] == '[':
			o.Type = "Unigram"
		default:
			o.Type = "WordPiece"
		}
	}
	if o.Type == "Unigram" {
		return readUnigram(o.Vocabulary, o.UnknownID, o.ByteFallback, vocabulary)
	}
	ids := map[string]int{}
	if err := json.Unmarshal(o.Vocabulary, &ids); err != nil {
		return nil, fmt.Errorf("vocab: %w", err)
	}
	for piece, id := range ids {
		if id < 0 || id >= vocabulary {
			return nil, fmt.Errorf("the piece %q has the id %d, and the vocabulary has %d", piece, id, vocabulary)
		}
	}
	unknown := ""
	if len(o.Unknown) > 0 && json.Unmarshal(o.Unknown, &unknown) != nil {
		return nil, errors.New("unk_token must be a string")
	}
	unknownID, known := ids[unknown]
	switch o.Type {
	case "WordPiece":
		if !known {
			return nil, fmt.Errorf("unk_token %q is not in the vocabulary", unknown)
		}
		m := &wordPiece{ids: ids, unknown: unknownID, prefix: "##", most: o.MaxChars}
		if o.Prefix != nil {
			m.prefix = *o.Prefix
		}
		if m.most <= 0 {
			m.most = 100
		}
		return m, nil
	case "BPE":
		if o.ByteFallback || o.EndOfWord != "" || o.Prefix != nil && *o.Prefix != "" {
			return nil, errors.New("BPE with byte_fallback, end_of_word_suffix or continuing_subword_prefix is not known")
		}
		m := &bytePairs{ids: ids, unknown: unknownID, hasUnknown: known, ranks: make(map[merge]int, len(o.Merges)), whole: o.Ignore}
		for i, pair := range o.Merges {
			if _, ok := m.ranks[pair]; !ok {
				m.ranks[pair] = i
			}
		}
		return m, nil
	}
	return nil, fmt.Errorf("%q is unknown: use WordPiece, Unigram or BPE", o.Type)
}

// wordPiece repeatedly takes the longest piece of the vocabulary. A word that it cannot split completely is unknown as a whole.
type wordPiece struct {
	ids     map[string]int
	unknown int
	prefix  string // of pieces inside of a word
	most    int    // characters of a word
}

// tokens takes the longest piece of the vocabulary, again and again. A word with a rest that no piece begins
// is unknown as a whole.
func (m *wordPiece) tokens(dst []int, word string) []int {
	if utf8.RuneCountInString(word) > m.most {
		return append(dst, m.unknown)
	}
	start := len(dst)
	for at := 0; at < len(word); {
		end, found := len(word), false
		for end > at {
			piece := word[at:end]
			if at > 0 {
				piece = m.prefix + piece
			}
			if id, ok := m.ids[piece]; ok {
				dst, at, found = append(dst, id), end, true
				break
			}
			_, n := utf8.DecodeLastRuneInString(word[at:end])
			end -= n
		}
		if !found {
			return append(dst[:start], m.unknown)
		}
	}
	return dst
}

// unigram finds the pieces that are likeliest together (Kudo, arXiv:1804.10959).
type unigram struct {
	ids     map[string]int
	scores  []float64
	unknown int
	penalty float64 // score of a character that is no piece
	longest int     // bytes of a piece
	bytes   []int   // ids of the pieces <0x00> to <0xFF>; nil when unknown characters are unknown
}

// unknownPenalty is how much worse than the worst piece an unknown character is.
const unknownPenalty = 10

// readUnigram reads the pieces with their scores. A character without a piece scores less than all of them.
func readUnigram(raw json.RawMessage, unknown *int, fallback bool, vocabulary int) (wordModel, error) {
	var pairs [][2]any
	if err := json.Unmarshal(raw, &pairs); err != nil {
		return nil, fmt.Errorf("vocab: %w", err)
	}
	if len(pairs) > vocabulary || unknown == nil || *unknown < 0 || *unknown >= len(pairs) {
		return nil, fmt.Errorf("vocab has %d pieces, and should have at most %d; unk_id must be one of them", len(pairs), vocabulary)
	}
	m := &unigram{ids: make(map[string]int, len(pairs)), scores: make([]float64, len(pairs)), unknown: *unknown}
	least := math.Inf(1)
	for i, pair := range pairs {
		piece, ok1 := pair[0].(string)
		score, ok2 := pair[1].(float64)
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("vocab: the piece %d is not a pair of a string and a number", i)
		}
		m.ids[piece], m.scores[i] = i, score
		least = min(least, score)
		m.longest = max(m.longest, len(piece))
	}
	m.penalty = least - unknownPenalty
	if fallback {
		for b := range 256 {
			id, ok := m.ids[fmt.Sprintf("<0x%02X>", b)]
			if !ok {
				m.bytes = nil
				break
			}
			m.bytes = append(m.bytes, id)
		}
	}
	return m, nil
}

// tokens finds the pieces with the greatest sum of scores, by dynamic programming over the ends of pieces.
func (m *unigram) tokens(dst []int, word string) []int {
	type best struct {
		score float64
		from  int
		id    int // −1 for an unknown character
	}
	ends := make([]best, len(word)+1)
	for i := range ends {
		ends[i].score = math.Inf(-1)
	}
	ends[0].score = 0
	for at := 0; at < len(word); {
		_, size := utf8.DecodeRuneInString(word[at:])
		single := false
		for end := at + size; end <= len(word) && end-at <= m.longest; {
			if id, ok := m.ids[word[at:end]]; ok {
				if s := ends[at].score + m.scores[id]; s > ends[end].score {
					ends[end] = best{s, at, id}
				}
				single = single || end == at+size
			}
			if end == len(word) {
				break
			}
			_, n := utf8.DecodeRuneInString(word[end:])
			end += n
		}
		if !single {
			if s := ends[at].score + m.penalty; s > ends[at+size].score {
				ends[at+size] = best{s, at, -1}
			}
		}
		at += size
	}
	var back []best
	for at := len(word); at > 0; at = ends[at].from {
		b := ends[at]
		b.score = float64(at) // where it ends
		back = append(back, b)
	}
	unknown := false // the last one was: unknown characters side by side are one token
	for i := len(back) - 1; i >= 0; i-- {
		b := back[i]
		switch {
		case b.id >= 0 && b.id != m.unknown:
			dst, unknown = append(dst, b.id), false
		case m.bytes != nil:
			for _, c := range []byte(word[b.from:int(b.score)]) {
				dst = append(dst, m.bytes[c])
			}
		case !unknown:
			dst, unknown = append(dst, m.unknown), true
		}
	}
	return dst
}

// merge is a pair of pieces that become one.
type merge struct{ left, right string }

// UnmarshalJSON reads "left right", or both in an array.
func (m *merge) UnmarshalJSON(b []byte) error {
	var pair []string
	if len(b) > 0 && b[0] == '[' {
		if err := json.Unmarshal(b, &pair); err != nil {
			return err
		}
	} else {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		pair = strings.Split(s, " ")
	}
	if len(pair) != 2 {
		return fmt.Errorf("a merge has %d parts", len(pair))
	}
	m.left, m.right = pair[0], pair[1]
	return nil
}

// bytePairs repeatedly merges the pair of pieces that was learned first (Sennrich et al., arXiv:1508.07909).
type bytePairs struct {
	ids        map[string]int
	ranks      map[merge]int
	unknown    int
	hasUnknown bool
	whole      bool // a word of the vocabulary is taken as it is
}

// symbol is a piece in a list of pieces.
type symbol struct {
	start, end     int // in the word; empty once it is merged away
	previous, next int // −1 at the ends
}

// candidate is a pair that may be merged.
type candidate struct {
	rank, left, right int
	end               int // of the right one when it was found: it may have changed since
}

type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].left < c[j].left
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// tokens begins with characters and merges the pair that was learnt first, until no pair is left. The queue
// may hold pairs that merges have changed since; they are passed over.
func (m *bytePairs) tokens(dst []int, word string) []int {
	if m.whole {
		if id, ok := m.ids[word]; ok {
			return append(dst, id)
		}
	}
	var list []symbol
	for i, r := range word {
		n := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, n = utf8.DecodeRuneInString(word[i:])
		}
		list = append(list, symbol{i, i + n, len(list) - 1, len(list) + 1})
	}
	list[len(list)-1].next = -1
	var queue candidates
	offer := func(left, right int) {
		if left < 0 || right < 0 {
			return
		}
		a, b := list[left], list[right]
		if rank, ok := m.ranks[merge{word[a.start:a.end], word[b.start:b.end]}]; ok {
			heap.Push(&queue, candidate{rank, left, right, b.end})
		}
	}
	for i := range len(list) - 1 {
		offer(i, i+1)
	}
	for len(queue) > 0 {
		c := heap.Pop(&queue).(candidate)
		left, right := &list[c.left], &list[c.right]
		if left.start == left.end || right.start == right.end || left.next != c.right || right.end != c.end ||
			m.ranks[merge{word[left.start:left.end], word[right.start:right.end]}] != c.rank {
			continue
		}
		left.end, left.next = right.end, right.next
		right.start = right.end
		if left.next >= 0 {
			list[left.next].previous = c.left
		}
		offer(left.previous, c.left)
		offer(c.left, left.next)
	}
	for i := 0; i >= 0; i = list[i].next {
		id, ok := m.ids[word[list[i].start:list[i].end]]
		switch {
		case ok:
			dst = append(dst, id)
		case m.hasUnknown:
			dst = append(dst, m.unknown)
		}
	}
	return dst
}
