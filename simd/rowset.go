package simd

// RowSet is a set of rows that takes no time to empty. A word has a bit for each of 32 rows, and above them the epoch in which they were
// added. Bits of another epoch count as 0. The zero value is an empty set for no rows.
type RowSet struct {
	words []uint64 // may be more than the rows need
	epoch uint64   // times 1<<rowsOfWord
	limit uint32
}

const rowsOfWord = 32

// Reset empties the set, and prepares it for rows below limit.
func (s *RowSet) Reset(limit int) {
	s.limit = uint32(limit)
	if n := (limit + rowsOfWord - 1) / rowsOfWord; len(s.words) < n {
		s.words, s.epoch = make([]uint64, n), 0
	}
	if s.epoch += 1 << rowsOfWord; s.epoch == 0 {
		clear(s.words)
		s.epoch = 1 << rowsOfWord
	}
}

// Add adds a row below the limit. It reports whether the set did not have it.
func (s *RowSet) Add(row uint32) bool { return addRow(s.words, s.epoch, row) == 1 }

// AppendNew adds the rows up to the first that is not below the limit, and appends to dst those that the set did not have. It fetches these
// rows of a table, whose rows have width bytes, ahead of their use. Nothing is fetched if width is 0.
func (s *RowSet) AppendNew(dst, rows []uint32, table []int8, width int) []uint32 {
	n := len(dst)
	if cap(dst)-n < len(rows) {
		dst = append(dst, rows...)
	}
	added := current.addRows(dst[n:n+len(rows)], s.words[:(uint64(s.limit)+rowsOfWord-1)/rowsOfWord], s.epoch, s.limit, rows, table, width)
	return dst[:n+added]
}

func addRowsPortable(dst []uint32, words []uint64, epoch uint64, limit uint32, rows []uint32, _ []int8, _ int) int {
	n := 0
	for _, row := range rows {
		if row >= limit {
			break
		}
		dst[n] = row
		n += addRow(words, epoch, row) // no branch could be predicted
	}
	return n
}

// addRow returns 1 if the row is new, or 0.
func addRow(words []uint64, epoch uint64, row uint32) int {
	word := &words[row/rowsOfWord]
	x := *word
	if x>>rowsOfWord != epoch>>rowsOfWord {
		x = epoch
	}
	*word = x | 1<<(row%rowsOfWord)
	return int(^x >> (row % rowsOfWord) & 1)
}
