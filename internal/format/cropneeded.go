package format

import (
	"cmp"
	"slices"

	"svc/internal/text"
)

// needed has lists of words such that every run better than the best one so far contains a match of a word of one of them. All other
// matches may be skipped. The lists are chosen to be rare in the texts read so far. Phrases are always needed, because a match of a
// phrase has to be found at its beginning: a word of a phrase is no match of its own.
type needed struct {
	score   intervalScore // to be exceeded by runs; set is for it
	set     uint64
	chosen  bool
	lists   []querySpan
	phrases []querySpan
	rest    []querySpan // lists that are not in set
	order   []int       // lists, the rarest first

	read   int   // bytes of texts that were read
	count  []int // matches by list
	absent []int // by list: bytes in which it was searched for without success
	sets   map[uint64]*wantedSet
	find   *highlighter
}

// wantedSet has the beginnings of the words of some lists and of phrases.
type wantedSet struct {
	starts *text.Beginnings
	heads  [64]uint64 // by a hash of three bytes; shorter forms are in short
	short  bool
}

// add adds a form. Forms of at least three bytes are recorded by a hash of the first three, so that most words of a text are excluded
// by one lookup.
func (s *wantedSet) add(form string) {
	s.starts.Add(form)
	if len(form) < 3 {
		s.short = true
		return
	}
	n := hashHead(form[0], form[1], form[2])
	s.heads[n/64] |= 1 << (n % 64)
}

// has reports whether a form may be wanted.
func (s *wantedSet) has(form []byte) bool {
	if s.short || len(form) < 3 {
		return true
	}
	n := hashHead(form[0], form[1], form[2])
	return s.heads[n/64]>>(n%64)&1 != 0
}

func hashHead(a, b, c byte) int { return (int(a)*1369 + int(b)*37 + int(c)) & 4095 }

// maxNeeded is the number of lists of words up to which some are chosen.
const maxNeeded = 64

// beyond chooses the lists that runs need to exceed a score.
func (n *needed) beyond(h *highlighter, score intervalScore) {
	if n.find != h {
		*n = needed{find: h, sets: map[uint64]*wantedSet{}, read: n.read}
		n.lists, n.phrases = h.parts()
		n.count, n.absent = make([]int, len(n.lists)), make([]int, len(n.lists))
		for i := range n.lists {
			n.order = append(n.order, i)
		}
	}
	if n.chosen && n.score == score {
		return
	}
	n.score, n.chosen, n.set = score, true, 0
	if len(n.lists) > maxNeeded {
		return
	}
	slices.SortStableFunc(n.order, func(a, b int) int {
		return cmp.Compare(n.count[a]*(n.read+n.absent[b]+1), n.count[b]*(n.read+n.absent[a]+1))
	})
	for _, l := range n.order {
		if n.enough() {
			break
		}
		n.set |= 1 << l
	}
	for i := len(n.order) - 1; i >= 0; i-- { // the first ones may not have been useful
		if bit := uint64(1) << n.order[i]; n.set&bit != 0 {
			if n.set &^= bit; !n.enough() {
				n.set |= bit
			}
		}
	}
}

// enough reports whether no run without a match of the set and without a phrase exceeds the score.
func (n *needed) enough() bool {
	n.rest = n.rest[:0]
	for i, p := range n.lists {
		if n.set>>i&1 == 0 {
			n.rest = append(n.rest, p)
		}
	}
	return !n.score.less(perfectOf(n.rest, nil))
}

// all reports whether no list may be passed over.
func (n *needed) all() bool { return len(n.lists) > maxNeeded }

// in reports whether one of the matches is needed.
func (n *needed) in(matches []match) bool {
	return n.all() || slices.ContainsFunc(matches, func(m match) bool { return m.list < 0 || n.set>>m.list&1 != 0 })
}

// begins returns the beginnings of the needed words and phrases, and the test for a form.
func (n *needed) begins() (*text.Beginnings, func(form []byte) bool) {
	if n.all() {
		return n.find.starts, n.find.wanted
	}
	w := n.sets[n.set]
	if w == nil {
		w = &wantedSet{starts: text.NewBeginnings()}
		for first := range n.find.phrases {
			w.add(first)
		}
		for i := range n.find.words {
			if n.set>>i&1 != 0 {
				n.find.words[i].each(w.add)
			}
		}
		n.sets[n.set] = w
	}
	return w.starts, func(form []byte) bool {
		if !w.has(form) {
			return false
		}
		if _, ok := n.find.phrases[string(form)]; ok {
			return true
		}
		l := n.find.word(string(form)).list
		return l >= 0 && n.set>>l&1 != 0
	}
}

// met counts a match, and passed the given number of bytes without a needed one. These counts show how rare words are.
func (n *needed) met(m match) {
	if m.list >= 0 && m.list < len(n.count) {
		n.count[m.list]++
	}
}

func (n *needed) passed(bytes int) {
	for i := range n.absent {
		if n.set>>i&1 != 0 {
			n.absent[i] += bytes
		}
	}
}
