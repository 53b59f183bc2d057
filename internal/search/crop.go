package search

import "svc/internal/text"

// cropWindow returns the part of a text that a crop to length words (at least one) shows: around the
// best run of matches, or from the start if there is none. It never splits a token.
func cropWindow(tokens []text.Token, matches []match, length int) (start, end int) {
	if len(tokens) == 0 {
		return 0, 0
	}
	before, after := -1, 0 // the next tokens to take on both sides
	remaining := length
	if len(matches) > 0 {
		first, last := bestInterval(matches, length)
		words := matches[last].lastWord - matches[first].firstWord + 1
		before, after = matches[first].firstToken-1, matches[last].lastToken+1
		if words > length {
			// A phrase that is longer than the window: its first words.
			after = matches[first].firstToken
			for n := 0; n < length; after++ {
				if isWord(&tokens[after]) {
					n++
				}
			}
			words = length
		}
		remaining -= words
	}
	separator := func(i int) bool { return !isWord(&tokens[i]) }
	for remaining > 0 {
		hasBefore, hasAfter := before >= 0, after < len(tokens)
		switch {
		case !hasBefore && !hasAfter:
			remaining = 0
		case !hasAfter:
			if !separator(before) {
				remaining--
			}
			before--
		case !hasBefore:
			if !separator(after) {
				remaining--
			}
			after++
		case separator(before) && separator(after):
			switch {
			case tokens[before].Kind == tokens[after].Kind:
				before--
				if remaining > 1 {
					after++
				}
			case tokens[before].Kind == text.Soft:
				before--
			default:
				after++
			}
		case separator(after):
			before--
			remaining--
		case separator(before):
			after++
			remaining--
		default:
			before--
			if remaining--; remaining > 0 {
				after++
				remaining--
			}
		}
	}
	return tokens[before+1].Start, tokens[after-1].End
}

// bestInterval returns the run of matches that says most in length words: with the most words of the
// query, then the closest together, then the most in the order of the query; the first of equals.
func bestInterval(matches []match, length int) (first, last int) {
	found := false
	var best intervalScore
	consider := func(i, j int) {
		if s := scoreInterval(matches[i : j+1]); !found || best.less(s) {
			found, best, first, last = true, s, i, j
		}
	}
	i := 0
	for j := range matches {
		if matches[j].lastWord-matches[i].firstWord < length {
			continue
		}
		if j > 0 {
			consider(i, j-1)
		}
		for i < j && matches[j].lastWord-matches[i].firstWord >= length {
			i++
		}
	}
	end := len(matches) - 1
	if i < end || matches[end].lastWord-matches[i].firstWord < length {
		consider(i, end)
	}
	return first, last
}

// intervalScore is compared from the first field to the last.
type intervalScore struct{ terms, closeness, ordered int }

func (a intervalScore) less(b intervalScore) bool {
	if a.terms != b.terms {
		return a.terms < b.terms
	}
	if a.closeness != b.closeness {
		return a.closeness < b.closeness
	}
	return a.ordered < b.ordered
}

func scoreInterval(matches []match) intervalScore {
	const farthest = 7
	var s intervalScore
	var terms termSet
	for i, m := range matches {
		for t := m.firstTerm; t <= m.lastTerm; t++ {
			if terms.add(t) {
				s.terms++
			}
		}
		s.closeness -= m.lastWord - m.firstWord
		s.ordered += m.lastWord - m.firstWord
		if i == 0 {
			continue
		}
		previous := matches[i-1]
		s.closeness -= min(farthest, m.firstWord-previous.lastWord)
		if m.firstTerm > previous.firstTerm {
			s.ordered++
		}
	}
	return s
}

// termSet is a set of words of a query, of which the first 64 are told apart.
type termSet uint64

func (s *termSet) add(t int) bool {
	bit := termSet(1) << min(max(t, 0), 63)
	added := *s&bit == 0
	*s |= bit
	return added
}
