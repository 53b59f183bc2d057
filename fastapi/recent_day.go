package fastapi

import "time"

const (
	dayStepTime = 5 * time.Minute
	daySteps    = int(24 * time.Hour / dayStepTime) // whole ones, that are shown
	stepsPerDay = int64(dayStepTime / recentStep)   // steps of recent in a dayStep
)

// dayStep sums up steps of recent. Each step is added when its slot is needed for another one, so requests do not pay for it.
type dayStep struct {
	number                              int64 // as recent.number returns it for dayStepTime; 0: none yet
	requests, searches, refused, failed int64
	longest                             int64 // of searches, ns
	times                               [recentBuckets]uint32
	first                               *reading // the earliest
	firstAt                             int64    // the number of its step
	memory, tasks                       int64    // the most
}

// add takes up a step. Steps come in any order.
func (d *dayStep) add(s *step) {
	d.requests += s.requests.Load()
	d.searches += s.searches.Load()
	d.refused += s.refused.Load()
	d.failed += s.failed.Load()
	d.longest = max(d.longest, s.longest.Load())
	for i := range s.times {
		d.times[i] += s.times[i].Load()
	}
	start, at := s.start.Load(), s.number.Load()
	if d.first == nil || at < d.firstAt {
		d.first, d.firstAt = start, at
	}
	d.memory, d.tasks = max(d.memory, start.memory), max(d.tasks, start.tasks)
}

// keep adds a step whose slot is about to be reused to its dayStep. making is held.
func (r *recent) keep(s *step) {
	number := s.number.Load() / stepsPerDay
	d := &r.day[number%int64(len(r.day))]
	if number == 0 || number < d.number {
		return
	}
	if number > d.number {
		*d = dayStep{number: number}
	}
	d.add(s)
}

// dayView returns the complete steps of the last day, like view for the last minutes. Memory and tasks are the maximum within a step.
func (r *recent) dayView(now time.Duration, clock time.Time) []stepView {
	r.at(now)
	r.making.Lock()
	defer r.making.Unlock()
	last := r.number(now, dayStepTime)
	sum := func(number int64) (d dayStep) {
		if kept := &r.day[number%int64(len(r.day))]; kept.number == number {
			d = *kept
		}
		for i := range r.steps {
			if s := &r.steps[i]; s.number.Load()/stepsPerDay == number {
				d.add(s)
			}
		}
		return d
	}
	views := []stepView{}
	var open []int // views whose cache lookups are known with the next reading
	var from *reading
	for number := max(last-int64(daySteps), r.number(0, dayStepTime)); number <= last; number++ {
		d := sum(number)
		if d.first != nil {
			for _, i := range open {
				views[i].Hits, views[i].Misses = d.first.hits-from.hits, d.first.misses-from.misses
			}
			open = open[:0]
		}
		if number == last {
			break
		}
		v := stepView{At: r.start(number, dayStepTime, now, clock), Requests: d.requests, Refused: d.refused, Failed: d.failed, Searches: d.searches, SearchMs: percentiles(&d.times, time.Duration(d.longest))}
		if d.first != nil {
			v.Memory, v.Tasks = &d.memory, &d.tasks
			open, from = append(open, len(views)), d.first
		}
		views = append(views, v)
	}
	return views
}
