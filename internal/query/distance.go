package query

// PrefixDistance returns the smallest edit distance (as defined by automaton) between asked and any prefix of value, or limit+1 if it
// is more than limit.
func PrefixDistance(asked []rune, value string, limit int) int {
	return distance(asked, value, limit, true)
}

// Distance is PrefixDistance for the whole value.
func Distance(asked []rune, value string, limit int) int {
	return distance(asked, value, limit, false)
}

// distance returns the edit distance from asked to value, or to a prefix of value if prefix is set, or limit+1 if it is more than
// limit. A transposition of two neighbours is one edit.
func distance(asked []rune, value string, limit int, prefix bool) int {
	// Rows of the usual table: one row per character of value, and one column per character of asked. Column i of row j is the
	// distance of asked[:i] and value[:j]. Only columns within limit of j can be within the limit.
	n := len(asked)
	if n > len(value)+limit { // a character has at least one byte
		return limit + 1
	}
	buf := make([]int, 3*(n+1))
	before, last, next := buf[:n+1], buf[n+1:2*(n+1)], buf[2*(n+1):]
	for i := range last {
		last[i] = i
	}
	best := min(last[n], limit+1)
	var previous rune
	j := 0
	for _, c := range value {
		j++
		if j > n+limit || prefix && best == 0 {
			break
		}
		lo, hi := max(j-limit, 1), min(j+limit, n)
		next[0] = j
		if lo > 1 {
			next[lo-1] = limit + 1
		}
		for i := lo; i <= hi; i++ {
			d := last[i-1]
			if asked[i-1] != c {
				d++
			}
			d = min(d, next[i-1]+1)
			if i < j+limit || hi < j+limit {
				d = min(d, last[i]+1)
			}
			if i > 1 && j > 1 && asked[i-1] == previous && asked[i-2] == c {
				d = min(d, before[i-2]+1)
			}
			next[i] = d
		}
		if hi == n && prefix {
			best = min(best, next[n])
		}
		previous = c
		before, last, next = last, next, before
	}
	switch {
	case prefix:
		return best
	case j > n+limit || j+limit < n:
		return limit + 1
	}
	return min(last[n], limit+1)
}
