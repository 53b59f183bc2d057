package task

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"svc/internal/index"
)

// The outermost steps of every batch.
var outerSteps = []string{"processing tasks", "writing tasks to disk"}

// Progress is the current step of a running batch, outermost step first.
type Progress struct{ Steps []index.Step }

// Percentage weighs each step by its share of the step around it: of the steps
// 0/2, 3/4, 5/20 the last one counts 5/(2·4·20).
func (p *Progress) Percentage() float32 {
	var sum, product float32 = 0, 1
	for _, s := range p.Steps {
		product *= float32(max(s.Total, 1))
		sum += float32(s.Finished) / product
	}
	return 100 * sum
}

func (p *Progress) appendJSON(b []byte) []byte {
	b = append(b, `{"steps":[`...)
	for i, s := range p.Steps {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"currentStep":`...)
		b = appendString(b, s.Name)
		b = append(b, `,"finished":`...)
		b = strconv.AppendInt(b, int64(s.Finished), 10)
		b = append(b, `,"total":`...)
		b = strconv.AppendInt(b, int64(s.Total), 10)
		b = append(b, '}')
	}
	b = append(b, `],"percentage":`...)
	b = strconv.AppendFloat(b, float64(p.Percentage()), 'f', -1, 32)
	return append(b, '}')
}

// progress follows a running batch and times its steps. Several goroutines may report at once.
type progress struct {
	changed func() // called after each change, without the lock; nil: none

	mu      sync.Mutex
	now     func() time.Time
	steps   []index.Step
	entered []time.Time // when the step of this level got its name
	trace   []traceEntry
	at      map[string]int // path → its place in trace
}

type traceEntry struct {
	path string // "a > b"
	took time.Duration
}

func newProgress(now func() time.Time) *progress {
	return &progress{now: now, at: map[string]int{}}
}

// outer enters one of outerSteps.
func (p *progress) outer(i int) {
	p.set(0, index.Step{Name: outerSteps[i], Finished: i, Total: len(outerSteps)})
}

// set enters a step or counts within it; entering a step drops all deeper ones.
func (p *progress) set(level int, s index.Step) {
	p.put(level, s)
	if p.changed != nil {
		p.changed()
	}
}

// put sets the step at a level and ends all deeper ones. A step that continues under the same name keeps its start time.
func (p *progress) put(level int, s index.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	level = min(level, len(p.steps))
	if level < len(p.steps) && p.steps[level].Name == s.Name {
		if level+1 < len(p.steps) && p.steps[level].Finished != s.Finished {
			p.leave(level + 1)
		}
		p.steps[level] = s
		return
	}
	p.leave(level)
	p.steps = append(p.steps, s)
	p.entered = append(p.entered, p.now())
}

// leave ends the steps from level on.
func (p *progress) leave(level int) {
	now := p.now()
	for i := len(p.steps) - 1; i >= level; i-- {
		path := p.path(i)
		at, ok := p.at[path]
		if !ok {
			at = len(p.trace)
			p.at[path] = at
			p.trace = append(p.trace, traceEntry{path: path})
		}
		p.trace[at].took += now.Sub(p.entered[i])
	}
	p.steps, p.entered = p.steps[:level], p.entered[:level]
}

// path names the steps down to a level, as traces of batches show them.
func (p *progress) path(level int) string {
	names := make([]string, level+1)
	for i := range names {
		names[i] = p.steps[i].Name
	}
	return strings.Join(names, " > ")
}

// inside reports the steps of what runs within the first outer step.
func (p *progress) inside(level int, s index.Step) { p.set(level+1, s) }

func (p *progress) current() *Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Progress{slices.Clone(p.steps)}
}

// times returns how long each step took until now.
func (p *progress) times() []traceEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	steps, entered := slices.Clone(p.steps), slices.Clone(p.entered)
	p.leave(0)
	p.steps, p.entered = steps, entered
	return p.trace
}

// shortDuration writes a duration with two decimals and one unit: 416.10ms.
func shortDuration(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"s", time.Second}, {"ms", time.Millisecond}, {"µs", time.Microsecond}}
	for _, u := range units {
		if d >= u.size {
			return strconv.FormatFloat(float64(d)/float64(u.size), 'f', 2, 64) + u.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + "ns"
}
