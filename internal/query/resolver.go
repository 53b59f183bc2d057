package query

// resolver resolves one node of a query. When time is over it stops: its results then lack words or rows, and are not cached. It
// still finds a word as written. Each node has a resolver of its own, so that each gets some work done however late it is: a phrase
// is at least searched in the first documents.
type resolver struct {
	*Index
	pace
}

// pace checks the clock now and then during long work, by steps done, so that short work is always completed. A step is one document
// whose positions are read, or as much work.
type pace struct {
	stop  func() bool // whether time is over
	steps int         // since the clock was looked at
	over  bool
}

const (
	wordSteps  = 16   // of a word looked at
	indexWords = 32   // words of the dictionary that cost as much as one step when an automaton walks it
	phraseRows = 2048 // documents whose positions are looked at in one go
)

// paceSteps is the number of steps between two checks of the clock, which take less than a millisecond. (A variable, so that tests
// can lower it.)
var paceSteps = 1 << 14

// spend counts steps of work and reports whether to continue.
func (p *pace) spend(steps int) bool {
	if p.steps += steps; p.steps >= paceSteps && !p.over {
		p.steps = 0
		p.over = p.stop()
	}
	return !p.over
}
