package segment

import "runtime"

// A lookup of the number of a row misses the cache twice: for the ordinal, and for the number. If many rows are looked up, it takes less
// time to read both parts of the column first, in the order of memory, which processors fetch ahead.

// cacheLine is the size of what processors fetch.
const cacheLine = 64

// Lines that are read in the time that a lookup takes. Ordinals are read in the order of rows and independently, so that many of their
// misses overlap. Numbers wait for them. (Variables, so that tests can change them.)
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
