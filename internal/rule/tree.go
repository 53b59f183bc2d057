package rule

import (
	"slices"
	"strings"
)

// tree finds all of many texts in another one, in a time that does not depend on how many they are: a radix tree over the sorted texts.
type tree struct {
	texts []string   // ascending, unique, not empty
	rules []postings // by text
	nodes []treeNode // the root first
}

// treeNode is the texts first…last−1, which share their first depth bytes.
type treeNode struct {
	first, depth int32
	kids         []treeEdge // by the byte after those; the text that ends there has none
}

type treeEdge struct {
	next byte
	node int32
}

// newTree makes a tree of the rules by text.
func newTree(byText map[string]postings) *tree {
	t := &tree{}
	for text := range byText {
		t.texts = append(t.texts, text)
	}
	slices.Sort(t.texts)
	for _, text := range t.texts {
		t.rules = append(t.rules, byText[text])
	}
	if len(t.texts) > 0 {
		t.add(0, len(t.texts), 0)
	}
	return t
}

// add adds the node of some texts, which share their first depth bytes.
func (t *tree) add(first, last, depth int) int32 {
	low, high := t.texts[first], t.texts[last-1]
	for depth < len(low) && depth < len(high) && low[depth] == high[depth] {
		depth++
	}
	at := int32(len(t.nodes))
	t.nodes = append(t.nodes, treeNode{first: int32(first), depth: int32(depth)})
	if len(low) == depth {
		first++
	}
	var kids []treeEdge
	for first < last {
		next := t.texts[first][depth]
		end := first + 1
		for end < last && t.texts[end][depth] == next {
			end++
		}
		kids = append(kids, treeEdge{next, t.add(first, end, depth+1)})
		first = end
	}
	t.nodes[at].kids = kids
	return at
}

// appendIn appends the rules of all texts that occur in the text returned by of, with duplicates. It calls of only if the tree has
// texts, and skips rules whose windows do not contain at.
func (t *tree) appendIn(dst []uint32, of func() string, at int64) []uint32 {
	if len(t.nodes) == 0 {
		return dst
	}
	for s := of(); s != ""; s = s[1:] {
		depth := 0
		for n := &t.nodes[0]; ; {
			text, to := t.texts[n.first], int(n.depth)
			if len(s) < to || !strings.HasPrefix(s[depth:], text[depth:to]) {
				break
			}
			depth = to
			if len(text) == depth {
				dst = t.rules[n.first].appendAt(dst, at)
			}
			if len(s) == depth {
				break
			}
			i, found := slices.BinarySearchFunc(n.kids, s[depth], func(e treeEdge, b byte) int { return int(e.next) - int(b) })
			if !found {
				break
			}
			n = &t.nodes[n.kids[i].node]
		}
	}
	return dst
}
