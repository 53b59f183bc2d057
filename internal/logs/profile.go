package logs

import (
	"encoding/json"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"
)

// profile writes JSON objects without anything between them, each with one key:
//
//	NewCallsite {call_id, name, module_path, file, line, target}
//	NewThread   {thread_id, name}
//	NewSpan     {id, call_id, parent_id, thread_id}
//	SpanEnter, SpanExit {id, time, memory}; SpanClose {id, time}
//	Event       {call_id, thread_id, parent_id, time, memory}
//
// Times count from the start, as {secs, nanos}; memory is null or {resident} in
// bytes. A span is written when it has ended, with the times of its beginning and its end.
type profile struct {
	start  time.Time
	memory bool
	sites  map[callsite]int
	spans  int
}

type callsite struct {
	*origin
	name string
}

func newProfile(memory bool) *profile {
	return &profile{start: time.Now(), memory: memory, sites: map[callsite]int{}}
}

type (
	profileTime struct {
		Secs  int64 `json:"secs"`
		Nanos int64 `json:"nanos"`
	}
	profileMemory struct {
		Resident uint64 `json:"resident"`
	}
	newCallsite struct {
		CallID     int    `json:"call_id"`
		Name       string `json:"name"`
		ModulePath string `json:"module_path"`
		File       string `json:"file"`
		Line       int    `json:"line"`
		Target     string `json:"target"`
	}
	newThread struct {
		ThreadID int    `json:"thread_id"`
		Name     string `json:"name"`
	}
	newSpan struct {
		ID       int  `json:"id"`
		CallID   int  `json:"call_id"`
		ParentID *int `json:"parent_id"`
		ThreadID int  `json:"thread_id"`
	}
	spanMoment struct {
		ID     int            `json:"id"`
		Time   profileTime    `json:"time"`
		Memory *profileMemory `json:"memory"`
	}
	spanClose struct {
		ID   int         `json:"id"`
		Time profileTime `json:"time"`
	}
	event struct {
		CallID   int            `json:"call_id"`
		ThreadID int            `json:"thread_id"`
		ParentID *int           `json:"parent_id"`
		Time     profileTime    `json:"time"`
		Memory   *profileMemory `json:"memory"`
	}
)

// thread is the only thread in profiles, because goroutines have none of their own.
const thread = 1

func (p *profile) append(dst []byte, r *record) []byte {
	put := func(name string, v any) {
		b, err := json.Marshal(map[string]any{name: v})
		if err == nil { // numbers and strings always can
			dst = append(dst, b...)
		}
	}
	if len(p.sites) == 0 {
		put("NewThread", newThread{thread, root})
	}
	site := callsite{r.origin, r.span.Key}
	call, known := p.sites[site]
	if !known {
		call = len(p.sites) + 1
		p.sites[site] = call
		name := r.span.Key
		if name == "" {
			name = r.message
		}
		put("NewCallsite", newCallsite{call, name, r.target, r.file, r.line, r.target})
	}
	var memory *profileMemory
	if p.memory {
		memory = &profileMemory{residentBytes()}
	}
	took, isSpan := r.busy()
	if !isSpan {
		put("Event", event{call, thread, nil, p.since(r.time), memory})
		return dst
	}
	p.spans++
	end := p.since(r.time)
	put("NewSpan", newSpan{p.spans, call, nil, thread})
	put("SpanEnter", spanMoment{p.spans, p.since(r.time.Add(-took)), memory})
	put("SpanExit", spanMoment{p.spans, end, memory})
	put("SpanClose", spanClose{p.spans, end})
	return dst
}

// since is the time from the start on; what began before counts from the start.
func (p *profile) since(t time.Time) profileTime {
	d := max(t.Sub(p.start), 0)
	return profileTime{int64(d / time.Second), int64(d % time.Second)}
}

// busy returns how long the record's span took.
func (r *record) busy() (took time.Duration, ok bool) {
	if r.span.Key == "" {
		return 0, false
	}
	for _, a := range r.fields {
		if a.Key == busy && a.Value.Kind() == slog.KindDuration {
			return a.Value.Duration(), true
		}
	}
	return 0, false
}

// residentBytes returns the resident memory of the process, or 0 if the system does not report it.
func residentBytes() uint64 {
	b, err := os.ReadFile("/proc/self/statm") // Linux: pages of virtual memory, then resident pages
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
