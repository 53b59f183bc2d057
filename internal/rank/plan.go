package rank

import "time"

// Plan records the access paths that a search takes, in the order of their first use. A nil Plan records nothing.
type Plan struct {
	Steps []Step
	open  []openStep // one within the other
}

// Step is an access path and what it did in a search.
type Step struct {
	Rule  string // the rule that needs costs; "" for paths that find documents
	Path  string
	Calls int
	In    int           // rows that the path was given
	Out   int           // rows that it found, or split by cost
	Took  time.Duration // without nested paths
}

type openStep struct {
	step  int // in Steps
	since time.Time
}

// accessPath is the name of a way to find documents, or to compute their costs under a rule.
type accessPath string

// Access paths. A path that only one rule uses may be declared in the rule's file. Tests range over all paths: the random searches
// that are compared with the oracle must take each one.
const (
	allowedRows     accessPath = "allowed documents"
	matchedRows     accessPath = "allowed documents with the words"
	filteredMatches accessPath = "documents with the words, filtered"
	lazyTypos       accessPath = "frequent words without typos"
	cachedHits      accessPath = "cached first hits"
	madeClasses     accessPath = "costs of all documents"
	cachedClasses   accessPath = "cached costs"
	cachedFirst     accessPath = "cached first documents"
	rowByRow        accessPath = "row by row"
	termSets        accessPath = "sets of terms"
	levelSets       accessPath = "sets of typos"
	singleCost      accessPath = "one cost for all"
	costSums        accessPath = "sums of costs"
	byBounds        accessPath = "pairs, nearest first"
	neighbourSets   accessPath = "sets of neighbours"
	pairsInOrder    accessPath = "pairs in the order of attributes"
	scanInOrder     accessPath = "positions, first documents first"
	allRows         accessPath = "positions of all rows"
	startsWith      accessPath = "fields that start with the word"
	wordStarts      accessPath = "first documents that start with the word"
	phraseStarts    accessPath = "first documents that start with the phrase"
	misplaced       accessPath = "known to be elsewhere"
	knownStarts     accessPath = "known to start with the word"
	wordPlaces      accessPath = "places of words"
	wordSets        accessPath = "sets of words"
	lookUpValues    accessPath = "values of rows"
	leadingFirst    accessPath = "first documents by their accents"
	distinctRetry   accessPath = "first documents, without duplicates"
	fewKept         accessPath = "as many documents as are counted"
	groupPrune      accessPath = "documents of open groups"
	groupRounds     accessPath = "first documents of groups"
	denseDistance   accessPath = "distances in all rows of a range"
	densePlaces     accessPath = "displacements in all rows of a range"
)

// begin records that a path is taken over in rows. The step lasts until end; resume continues it.
func (p *Plan) begin(rule string, path accessPath, in int) (step int) {
	if p == nil {
		return -1
	}
	now := time.Now()
	p.pause(now)
	step = -1
	for i := range p.Steps {
		if p.Steps[i].Rule == rule && p.Steps[i].Path == string(path) {
			step = i
		}
	}
	if step < 0 {
		step = len(p.Steps)
		p.Steps = append(p.Steps, Step{Rule: rule, Path: string(path)})
	}
	p.Steps[step].Calls++
	p.Steps[step].In += in
	p.open = append(p.open, openStep{step, now})
	return step
}

// resume continues a step after its end.
func (p *Plan) resume(step int) {
	if p == nil {
		return
	}
	now := time.Now()
	p.pause(now)
	p.open = append(p.open, openStep{step, now})
}

// note records that a path is taken, without rows and time.
func (p *Plan) note(rule string, path accessPath) {
	if p != nil {
		p.begin(rule, path, 0)
		p.end(0)
	}
}

// endClasses is end for the documents of some classes.
func (p *Plan) endClasses(c *costClasses) {
	if p == nil {
		return
	}
	n := 0
	if c != nil {
		for _, r := range c.rows {
			n += r.count()
		}
	}
	p.end(n)
}

// pause adds what has passed to the step that is open.
func (p *Plan) pause(now time.Time) {
	if n := len(p.open); n > 0 {
		o := &p.open[n-1]
		p.Steps[o.step].Took += now.Sub(o.since)
		o.since = now
	}
}

// watch returns the parts of a split and records the time of each.
func (p *Plan) watch(rule string, in int, s split) func() (*bucket, verdict) {
	if p == nil {
		return s.next
	}
	step := -1
	return func() (sub *bucket, said verdict) {
		if step < 0 {
			step = p.begin(rule, s.path, in)
		} else {
			p.resume(step)
		}
		if sub, said = s.next(); sub == nil {
			p.end(0)
		} else {
			p.end(sub.n)
		}
		return sub, said
	}
}

// end ends the step that started last. out is its number of resulting rows.
func (p *Plan) end(out int) {
	if p == nil {
		return
	}
	now := time.Now()
	p.pause(now)
	n := len(p.open) - 1
	p.Steps[p.open[n].step].Out += out
	if p.open = p.open[:n]; n > 0 {
		p.open[n-1].since = now
	}
}
