package search

import (
	"time"

	"github.com/google/uuid"

	"svc/internal/index"
	"svc/internal/resultcache"
)

// A search that comes again while its view is current has the same answer: it is kept as it was sent, but for the number of the request
// and the time that it took. Who kept it knows by which bytes it was asked for, and what else the answer depends on.

const (
	// keptAnswerBytes is how long an answer is at most that is kept.
	keptAnswerBytes = 64 << 10
	// answerEnd is how long the value of requestUid is, and what follows it.
	answerEnd = len(`00000000-0000-0000-0000-000000000000"}`)
)

// answers are kept with a view under what was asked.
var answers = resultcache.NewKind[*KeptAnswer]("answers to searches")

// KeptAnswer is an answer that may be given again.
type KeptAnswer struct {
	members     []byte // all of them, up to the value of requestUid
	note        Note
	from, until int64 // in which seconds since 1970 hits stay in their order
}

// Note is what is kept with an answer beside it.
type Note interface {
	Bytes() int // that it takes
}

// Note returns what was kept with the answer; nil: nothing.
func (k *KeptAnswer) Note() Note { return k.note }

// Answer returns the answer that is kept with a view under a key, for a search at a time; nil when there is none.
func Answer(v *index.View, key []byte, at time.Time) *KeptAnswer {
	kept, ok := answers.Get(v.Cache.Own(), key)
	if now := at.Unix(); !ok || now < kept.from || now >= kept.until {
		return nil
	}
	return kept
}

// Len returns how many bytes AppendMembers appends.
func (k *KeptAnswer) Len() int { return len(k.members) + answerEnd }

// AppendMembers appends the answer to the request with this number, without its opening brace.
func (k *KeptAnswer) AppendMembers(dst []byte, id uuid.UUID) []byte {
	dst = append(dst, k.members...)
	dst = append(dst, id.String()...)
	return append(dst, `"}`...)
}

// Keep keeps the answer with its view if it is asked for the second time of late, and the same whenever it is asked for. members are as
// AppendMembers has appended them. note makes what is kept beside it; nil: nothing is.
func (r *Response) Keep(key, members []byte, note func() Note) {
	q := r.request
	if len(members) > keptAnswerBytes || r.Degraded() || r.result.kind != keyword || q.Hybrid != nil || q.Vector != nil || q.Media != nil ||
		q.Reorder != nil || q.Foreign != nil || q.Rules != nil || q.ShowPerformanceDetails || q.ExplainPlan || q.Metadata ||
		q.Suggest && r.None() { // an index of suggestions has changed meanwhile, maybe
		return
	}
	scope := r.view.Cache.Own()
	if !answers.Admit(scope, key) {
		return
	}
	end := len(members) - answerEnd
	kept := append(make([]byte, 0, end), members[:r.took.begin]...)
	kept = append(append(kept, '0'), members[r.took.end:end]...)
	answer := &KeptAnswer{members: kept}
	answer.from, answer.until = r.scoring.lasts()
	size := cap(kept) + 64
	if note != nil {
		answer.note = note()
		size += answer.note.Bytes()
	}
	answers.PutSpare(scope, key, answer, size)
}
