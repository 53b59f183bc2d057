package fastapi

import (
	"maps"
	"slices"
)

// allowed returns the words and phrases of a node that count for a document at its level.
func (w *walkQuery) allowed(d *walkDoc, r *walkReading, i int) (words []string, phrases [][]string) {
	n := r.nodes[i]
	if r.levels[i] == walkWordOnly && !n.wide {
		return []string{n.written()}, nil
	}
	if r.levels[i] == walkWordOnly {
		return slices.Collect(maps.Keys(n.levels[0])), nil
	}
	for level := range n.levels {
		if r.levels[i] != walkAnyLevel && r.levels[i] != level {
			continue
		}
		for word := range n.levels[level] {
			if n.len == 1 || !w.protected(word) {
				words = append(words, word)
			}
		}
		for _, p := range n.phrases[level] {
			if w.hasPhrase(d, p) {
				phrases = append(phrases, p)
			}
		}
		if level == 2 {
			words = slices.AppendSeq(words, maps.Keys(n.inside))
		}
	}
	return words, phrases
}

// eachSpot calls f for the positions of a node's words in all fields, and of the first words of its phrases in searched fields.
func (w *walkQuery) eachSpot(d *walkDoc, r *walkReading, i int, f func(walkSpot)) {
	words, phrases := w.allowed(d, r, i)
	for _, word := range words {
		for _, s := range d.words[word] {
			f(s)
		}
	}
	for _, p := range phrases {
		for _, s := range d.words[p[0]] {
			if w.searched(s) {
				f(s)
			}
		}
	}
}

// apart is the distance of two adjacent nodes, 0 to 3.
func (w *walkQuery) apart(d *walkDoc, r *walkReading, i, j int) int {
	type end struct {
		word   string
		single bool // not the end of a phrase
	}
	ends := func(at int, outer func(p []string) string) []end {
		var all []end
		words, phrases := w.allowed(d, r, at)
		for _, word := range words {
			all = append(all, end{word, true})
		}
		for _, p := range phrases {
			all = append(all, end{outer(p), false})
		}
		return all
	}
	least := 3
	for _, x := range ends(i, func(p []string) string { return p[len(p)-1] }) {
		for _, y := range ends(j, func(p []string) string { return p[0] }) {
			for _, a := range d.words[x.word] {
				for _, b := range d.words[y.word] {
					gap := b.position - a.position
					switch {
					case a.field != b.field || !(x.single && y.single) && !w.searched(a):
					case w.set.ProximityPrecision == "byAttribute":
						least = 0
					case gap > 0:
						least = min(least, gap-1)
					case gap < 0 && x.single && y.single:
						least = min(least, -gap)
					}
				}
			}
		}
	}
	return least
}

// walkBucket returns the position that represents a range of positions.
func walkBucket(position int) int {
	switch {
	case position < 16:
		return position
	case position < 24:
		return 24
	case position <= 32:
		return 32
	}
	b := 64
	for b < position {
		b *= 2
	}
	return min(b, 65535)
}

func walkPositionCost(bucket, asked, more int) int {
	distance := max(bucket-asked, asked-bucket) + more
	for cost, last := range []int{0, 1, 4, 7, 11, 16, 24, 64, 256, 1024} {
		if distance <= last {
			return cost
		}
	}
	return 10
}

// exactAttribute is 0 if a field equals the query, 1 if one starts with it, otherwise 2.
func (w *walkQuery) exactAttribute(c *walkCandidate) int {
	byTerm := map[int]*walkNode{}
	for _, r := range c.readings {
		for i, n := range r.nodes {
			exists := slices.ContainsFunc(w.docs, func(d *walkDoc) bool { return d.words[n.written()] != nil })
			if n.len == 1 && byTerm[n.term] == nil && (n.IsPhrase() || exists && r.levels[i] <= 0) {
				byTerm[n.term] = n
			}
		}
	}
	type want struct {
		word   string
		at     int
		counts func(walkSpot) bool
	}
	var wants []want
	slots := 0
	for t := 0; byTerm[t] != nil; t++ {
		n := byTerm[t]
		delete(byTerm, t)
		slots += n.Words()
		if !n.IsPhrase() {
			wants = append(wants, want{n.written(), int(n.Start), func(walkSpot) bool { return true }})
		}
		for k, word := range n.Phrase {
			wants = append(wants, want{word, int(n.Start) + k, w.searched})
		}
	}
	if len(byTerm) > 0 || len(wants) == 0 {
		return 2
	}
	cost := 2
	for name, f := range c.fields {
		if !w.searched(walkSpot{field: name}) || !w.set.searches(name) {
			continue
		}
		begins := true
		for _, x := range wants {
			begins = begins && slices.ContainsFunc(c.words[x.word], func(s walkSpot) bool { return s.field == name }) &&
				slices.ContainsFunc(c.words[x.word], func(s walkSpot) bool { return x.counts(s) && walkBucket(s.position) == walkBucket(x.at) })
		}
		switch {
		case begins && f.positions.Words() == slots && slots <= 30:
			cost = 0
		case begins:
			cost = min(cost, 1)
		}
	}
	return cost
}
