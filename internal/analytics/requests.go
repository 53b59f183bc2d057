package analytics

import (
	"encoding/binary"
	"sync"
	"time"
)

// Recent requests, which events refer to.
const (
	requestStripes = 64
	requestSets    = 1024 // of a stripe
	requestWays    = 4    // of a set

	// EventTime is how long after a search its events count at most.
	EventTime = 30 * time.Minute
)

// requests has the last searches by requestUid. It is a set-associative table: a search takes the place of the oldest one of its set.
type requests struct {
	stripes [requestStripes]requestStripe
}

type requestStripe struct {
	mu    sync.Mutex
	slots []request // requestWays a set; nil: none yet
}

// request is a search. It contains no pointers, so that the garbage collector does not scan it.
type request struct {
	uid        [16]byte
	key        uint64 // the hash of its query's key; 0: none
	at         int64  // seconds since 1970
	position   uint32
	clicked    bool
	conversion bool
}

// set returns where the set of a search is.
func (r *requests) set(uid *[16]byte, position int) (*requestStripe, int) {
	h := binary.LittleEndian.Uint64(uid[8:])>>8 + uint64(position)*0x9e3779b97f4a7c15 // the last bytes of a UUID of version 7 are random
	return &r.stripes[h%requestStripes], int(h / requestStripes % requestSets * requestWays)
}

// add notes a search whose query has a hash.
func (r *requests) add(q *Search, key uint64) {
	s, at := r.set(&q.Request, q.Position)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots == nil {
		s.slots = make([]request, requestSets*requestWays)
	}
	set := s.slots[at : at+requestWays]
	oldest := &set[0]
	for i := range set[1:] {
		if set[i+1].at < oldest.at {
			oldest = &set[i+1]
		}
	}
	*oldest = request{uid: q.Request, key: key, at: q.At.Unix(), position: uint32(q.Position)}
}

// EventKind is what a user did with a hit.
type EventKind uint8

// Kinds of events.
const (
	Click EventKind = iota
	Conversion
)

// Event is an action of a user on a hit of a search.
type Event struct {
	Request  [16]byte // the requestUid of the search
	Query    int      // Search.Position
	Kind     EventKind
	Position int // of the hit, from 1; 0: not given
}

// AddEvents counts events. Events of forgotten searches, or of searches in indexes that the caller does not reach, do not count.
func (r *Recorder) AddEvents(events []Event, reaches func(index string) bool) (counted, unknown int) {
	now := r.now()
	for i := range events {
		if r.addEvent(&events[i], now, reaches) {
			counted++
		}
	}
	unknown = len(events) - counted
	r.events.Add(uint64(counted))
	r.unknown.Add(uint64(unknown))
	return counted, unknown
}

func (r *Recorder) addEvent(e *Event, now time.Time, reaches func(index string) bool) bool {
	s, at := r.requests.set(&e.Request, e.Query)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots == nil {
		return false
	}
	var q *request
	for i := range s.slots[at : at+requestWays] {
		if slot := &s.slots[at+i]; slot.uid == e.Request && int(slot.position) == e.Query {
			q = slot
		}
	}
	if q == nil || q.key == 0 || now.Unix()-q.at > int64(EventTime/time.Second) {
		return false
	}
	key, ok := r.keyOf(q.key)
	if !ok {
		return false
	}
	if _, index, _ := splitKey(key); !reaches(index) {
		return false
	}
	var n Counts
	switch e.Kind {
	case Click:
		n.Clicks = 1
		if !q.clicked {
			n.Clicked = 1
		}
		if e.Position > 0 {
			n.Positioned, n.Positions = 1, uint64(e.Position)
		}
	case Conversion:
		n.Conversions = 1
		if !q.conversion {
			n.Converted = 1
		}
	}
	if _, ok := r.live.add([]byte(key), &n); !ok {
		return false
	}
	q.clicked = q.clicked || e.Kind == Click
	q.conversion = q.conversion || e.Kind == Conversion
	return true
}

// keyOf returns the key of a query of this hour or of the one before.
func (r *Recorder) keyOf(hash uint64) (key string, ok bool) {
	s := &r.live.stripes[hash%stripeCount]
	s.mu.Lock()
	e := s.entries[hash]
	s.mu.Unlock()
	if e != nil {
		return e.key, true
	}
	previous := r.previous.Load()
	if previous == nil {
		return "", false
	}
	key, ok = (*previous)[hash]
	return key, ok
}
