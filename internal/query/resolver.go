package query

// resolver resolves one node of a query. When time is over it leaves off: what it makes then lacks words or rows,
// and is not kept for other queries. A word is still found as it is written. Each node has a resolver of its own,
// so that all get some work done however late it is: a phrase is found among the first documents, where all of them are
// looked for first.
type resolver struct {
	*Index
	pace
}

// pace has the clock looked at now and then during long work: by steps done, so that little work is always
// done in full, whatever the clock says. A step is a document whose positions are read, or as much work.
type pace struct {
	stop  func() bool // whether time is over
	steps int         // since the clock was looked at
	over  bool
}

const (
	wordSteps  = 16   // of a word looked at
	indexWords = 32   // of the dictionary that are as much work as one step, where it is walked with an automaton
	phraseRows = 2048 // documents whose positions are looked at in one go
)

// paceSteps is after how many steps the clock is looked at, less than a millisecond. (A variable, so that tests can lower it.)
var paceSteps = 1 << 14

// spend notes so many steps of work and reports whether to go on.
func (p *pace) spend(steps int) bool {
	if p.steps += steps; p.steps >= paceSteps && !p.over {
		p.steps = 0
		p.over = p.stop()
	}
	return !p.over
}
