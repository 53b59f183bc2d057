package group

import (
	"cmp"
	"slices"
	"time"

	"svc/internal/index"
)

// Status is what a member knows of its group.
type Status struct {
	Name     string         `json:"name"`
	Group    string         `json:"group"`
	Member   string         `json:"member"`
	Role     Role           `json:"role"`
	Term     uint32         `json:"term"`
	Position string         `json:"position"`
	Reader   *ReaderStatus  `json:"reader,omitempty"`  // of a reader
	Voter    *VoterStatus   `json:"voter,omitempty"`   // of a voter
	Members  []MemberStatus `json:"members,omitempty"` // of a writer: its readers; of a voter: all voters
	Log      *LogStatus     `json:"log,omitempty"`     // of a writer

	// These are set by the process that has the indexes of the member open.
	MissingModels []index.MissingModel `json:"missingModels,omitempty"`
}

// LogStatus is how the log of a writer stands.
type LogStatus struct {
	FilesHeld int    `json:"filesHeld"` // removed ones that readers may still fetch
	Problem   string `json:"problem,omitempty"`
}

// ReaderStatus is how a reader stands to its writer.
type ReaderStatus struct {
	Writer           string   `json:"writer"` // its address
	State            State    `json:"state"`
	Lag              *uint64  `json:"lagEntries"`       // entries that it has not applied; null: unknown
	StalenessSeconds *float64 `json:"stalenessSeconds"` // null: unknown
	AnswersReads     bool     `json:"answersReads"`     // from its own data; if not, it forwards all requests
	CopiedBytes      int64    `json:"copiedBytes"`
	TotalBytes       int64    `json:"totalBytes"`
	Problem          string   `json:"problem,omitempty"`
}

// MemberStatus is how the writer sees a reader.
type MemberStatus struct {
	Member     string    `json:"member"`
	Address    string    `json:"address"`
	Role       Role      `json:"role,omitempty"` // among voters: reader, of those that only follow
	Votes      bool      `json:"votes,omitempty"`
	Version    string    `json:"version"`
	State      State     `json:"state"`
	Position   string    `json:"position"`
	Lag        *uint64   `json:"lagEntries"` // null: it has no position of this log
	LagSeconds float64   `json:"lagSeconds"`
	Seen       time.Time `json:"seenAt"`
}

// Status returns what the writer knows.
func (w *Writer) Status() *Status {
	held := w.fs.count()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &Status{Name: w.id.Name, Group: w.id.Group, Member: w.id.Member, Role: RoleWriter, Term: w.id.Term, Position: w.pos.String(), Members: []MemberStatus{}, Log: &LogStatus{FilesHeld: held}}
	if w.broken != nil {
		s.Log.Problem = w.broken.Error()
	}
	now := time.Now()
	for _, m := range w.members {
		x := MemberStatus{Member: m.Member, Address: m.addr, Version: m.Version, State: StateFollows, Position: m.pos.String(), Seen: m.seen.UTC()}
		switch {
		case now.Sub(m.seen) >= w.o.AwayTime:
			x.State = StateAway
		case m.copies:
			x.State = StateCopies
		}
		if m.pos.SameLog(w.pos) {
			lag := w.pos.Index - m.pos.Index
			x.Lag = &lag
			if lag > 0 && m.entryAt > 0 {
				x.LagSeconds = max(0, now.Sub(time.Unix(0, m.entryAt)).Seconds())
			}
		}
		s.Members = append(s.Members, x)
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return cmp.Compare(a.Member, b.Member) })
	return s
}

// Status returns what the reader knows.
func (r *Reader) Status() *Status {
	addr := r.source.address()
	staleness, known := r.Staleness()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Status{Name: r.id.Name, Group: r.id.Group, Member: r.id.Member, Role: RoleReader, Term: r.id.Term, Position: r.pos.String()}
	s.Reader = &ReaderStatus{Writer: addr, State: r.prog.state, CopiedBytes: r.prog.copied, TotalBytes: r.prog.toCopy}
	if known {
		seconds := staleness.Seconds()
		s.Reader.StalenessSeconds = &seconds
	}
	if r.prog.end.SameLog(r.pos) {
		lag := max(r.prog.end.Index, r.pos.Index) - r.pos.Index
		s.Reader.Lag = &lag
	}
	if r.prog.problem != nil {
		s.Reader.Problem = r.prog.problem.Error()
	}
	return s
}
