package settings

import "strings"

// Covers reports whether a pattern, which may have a star at its start, its end or both, covers a path.
func Covers(pattern, path string) bool {
	inner, end := strings.CutSuffix(pattern, "*")
	inner, start := strings.CutPrefix(inner, "*")
	switch {
	case start && end:
		return strings.Contains(path, inner)
	case start:
		return strings.HasSuffix(path, inner)
	case end:
		return strings.HasPrefix(path, inner)
	}
	return path == pattern
}

// patterns finds the first of numbered attribute patterns that covers a path. A pattern is a path, or "*", or has a star at its
// start, its end or both. A star stands for any characters, including dots. Patterns are grouped by the length of their fixed part,
// so that a path costs one lookup per length instead of one per pattern. Only patterns with two stars are tried one by one.
type patterns struct {
	all      int // 1 + number of the first "*"; 0: none
	exact    map[string]int
	trees    map[string]int // literal paths that also cover nested fields
	prefixes map[int]map[string]int
	suffixes map[int]map[string]int
	inner    []innerPattern
}

type innerPattern struct {
	text   string
	number int
}

func put(m *map[string]int, key string, number int) {
	if *m == nil {
		*m = map[string]int{}
	}
	if _, ok := (*m)[key]; !ok {
		(*m)[key] = number
	}
}

func putSized(m *map[int]map[string]int, key string, number int) {
	if *m == nil {
		*m = map[int]map[string]int{}
	}
	sub := (*m)[len(key)]
	put(&sub, key, number)
	(*m)[len(key)] = sub
}

// add adds a pattern. Numbers are added in ascending order.
func (p *patterns) add(pattern string, number int) {
	start, end := strings.HasPrefix(pattern, "*"), strings.HasSuffix(pattern, "*")
	switch {
	case pattern == "*":
		if p.all == 0 {
			p.all = number + 1
		}
	case start && end:
		p.inner = append(p.inner, innerPattern{pattern[1 : len(pattern)-1], number})
	case start:
		putSized(&p.suffixes, pattern[1:], number)
	case end:
		putSized(&p.prefixes, pattern[:len(pattern)-1], number)
	default:
		put(&p.exact, pattern, number)
	}
}

// addTree adds a literal path that covers itself and all paths below.
func (p *patterns) addTree(path string, number int) { put(&p.trees, path, number) }

// hasTree reports whether the path was added by addTree.
func (p *patterns) hasTree(path string) bool {
	_, ok := p.trees[path]
	return ok
}

// first returns the lowest number whose pattern covers the path, or −1.
func (p *patterns) first(name string) int {
	best := p.all - 1
	take := func(number int, ok bool) {
		if ok && (best < 0 || number < best) {
			best = number
		}
	}
	n, ok := p.exact[name]
	take(n, ok)
	if len(p.trees) > 0 {
		for path := range upwards(name) {
			n, ok := p.trees[path]
			take(n, ok)
		}
	}
	for size, m := range p.prefixes {
		if size <= len(name) {
			n, ok := m[name[:size]]
			take(n, ok)
		}
	}
	for size, m := range p.suffixes {
		if size <= len(name) {
			n, ok := m[name[len(name)-size:]]
			take(n, ok)
		}
	}
	for _, in := range p.inner {
		if best >= 0 && in.number > best {
			break
		}
		if strings.Contains(name, in.text) {
			take(in.number, true)
			break
		}
	}
	return best
}
