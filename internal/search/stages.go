package search

import (
	"context"
	"strconv"
	"time"

	"svc/internal/jsontext"
	"svc/internal/rank"
	"svc/internal/trace"
)

// stages records the time of a request's stages, for performanceDetails and for a trace. A nil one records nothing.
type stages struct {
	span trace.Span
	list []stage
	last time.Time // when the stage before ended
}

// stage is one entry of performanceDetails: a path of names with " > " between them.
type stage struct {
	path string
	took time.Duration
}

// newStages starts recording if the stages are requested. The first stage, waiting for a slot, is already over.
func newStages(ctx context.Context, shown bool, waited time.Duration) *stages {
	span := trace.Of(ctx)
	if !shown && !span.Recorded() {
		return nil
	}
	s := &stages{span: span, last: time.Now()}
	s.add("wait in queue", waited)
	return s
}

// of returns a function that ends stages below a path, or nil if nothing is recorded.
func (s *stages) of(path string) func(name string) {
	if s == nil {
		return nil
	}
	return func(name string) { s.done(path + name) }
}

// done ends a stage that began where the one before it ended.
func (s *stages) done(path string) {
	if s == nil {
		return
	}
	now := time.Now()
	s.add(path, now.Sub(s.last))
	s.last = now
}

// timed starts the next stage now, and returns a function that records the time from now as a stage around those that end meanwhile.
func (s *stages) timed(path string) func() {
	if s == nil {
		return func() {}
	}
	begin := time.Now()
	s.last = begin
	return func() { s.add(path, time.Since(begin)) }
}

// add records a stage with its duration. Repeated ones are added up.
func (s *stages) add(path string, took time.Duration) {
	if s == nil {
		return
	}
	now := time.Now()
	s.span.Record(path, now.Add(-took), now)
	for i := range s.list {
		if s.list[i].path == path {
			s.list[i].took += took
			return
		}
	}
	s.list = append(s.list, stage{path, took})
}

// appendJSON appends the stages in the order in which they first ended, and the access paths of a plan, which may be nil.
func (s *stages) appendJSON(dst []byte, plan *rank.Plan) []byte {
	dst = append(dst, '{')
	for i, e := range s.list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsontext.AppendQuoted(dst, e.path), ':', '"')
		dst = append(appendDuration(dst, e.took), '"')
	}
	if plan != nil {
		for i := range plan.Steps {
			p := &plan.Steps[i]
			path := "search > rank > "
			if p.Rule != "" {
				path += p.Rule + " > "
			}
			dst = append(jsontext.AppendQuoted(append(dst, ','), path+p.Path), ':', '"')
			dst = append(appendDuration(dst, p.Took), '"')
		}
	}
	return append(dst, '}')
}

// appendPlan appends the steps of a plan.
func appendPlan(dst []byte, plan *rank.Plan) []byte {
	dst = append(dst, '[')
	for i := range plan.Steps {
		p := &plan.Steps[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendQuoted(append(dst, `{"rule":`...), p.Rule)
		dst = jsontext.AppendQuoted(append(dst, `,"path":`...), p.Path)
		dst = appendInt(dst, `,"calls":`, p.Calls)
		dst = appendInt(dst, `,"rowsIn":`, p.In)
		dst = appendInt(dst, `,"rowsOut":`, p.Out)
		dst = append(appendDuration(append(dst, `,"took":"`...), p.Took), `"}`...)
	}
	return append(dst, ']')
}

// appendDuration appends a duration with two decimals, in the largest unit that makes it at least one.
func appendDuration(dst []byte, d time.Duration) []byte {
	for _, u := range [...]struct {
		of   time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= u.of {
			return append(strconv.AppendFloat(dst, float64(d)/float64(u.of), 'f', 2, 64), u.name...)
		}
	}
	return append(strconv.AppendFloat(dst, float64(d), 'f', 2, 64), "ns"...)
}
