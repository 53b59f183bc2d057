package segment

import "runtime"

// A lookup of the number of a row misses the cache twice: for the ordinal, and for the number. If many rows are looked up, it is
// faster to first read both parts of the column in address order, because processors prefetch that.

// cacheLine is the size of what processors fetch.
const cacheLine = 64

// How many lines are read in the time of one lookup. The lookups of ordinals follow the order of rows and are independent, so many of
// their misses overlap. Lookups of numbers wait for the ordinals. (Variables, so that tests can change them.)
var (
	linesPerNumber  = 4
	linesPerOrdinal = 1
)

// PreloadNumbers loads the data for looking up the numbers of so many rows into the cache, if that saves time.
func (c *Column) PreloadNumbers(rows int) {
	c.need(partRowNumbers)
	c.need(partNumbers)
	preload(c.rowNumbers.ords, rows*linesPerOrdinal)
	preload(c.numbers, rows*linesPerNumber)
}

// PreloadOrdinals is PreloadNumbers for the ordinals of numbers or strings alone.
func (c *Column) PreloadOrdinals(strings bool, rows int) {
	f := &c.rowNumbers
	if strings {
		c.need(partRowStrings)
		f = &c.rowStrings
	} else {
		c.need(partRowNumbers)
	}
	preload(f.ords, rows*linesPerOrdinal)
}

// preload reads a byte of each line, unless there are more lines than most.
func preload(p []byte, most int) (done bool) {
	if len(p)/cacheLine > most {
		return false
	}
	var sum byte
	for i := 0; i < len(p); i += cacheLine {
		sum += p[i]
	}
	runtime.KeepAlive(sum) // so that the reads are not optimized away
	return true
}
