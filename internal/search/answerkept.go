package search

import (
	"time"

	"github.com/google/uuid"

	"svc/internal/index"
	"svc/internal/resultcache"
)

// A repeated search has the same answer while its view is current. The answer is cached as it was sent, without the number of the
// request and the time that it took. The caller chooses the key: the bytes of the request, and everything else that the answer
// depends on.

const (
	// keptAnswerBytes is the size of the largest answer that is cached.
	keptAnswerBytes = 64 << 10
	// answerEnd is the length of the value of requestUid and of what follows it.
	answerEnd = len(`00000000-0000-0000-0000-000000000000"}`)
)

// answers are cached with a view under the key of the request.
var answers = resultcache.NewKind[*KeptAnswer]("answers to searches")

// KeptAnswer is an answer that may be given again.
type KeptAnswer struct {
	members     []byte // all of them, up to the value of requestUid
	note        Note
	from, until int64 // the seconds since 1970 in which the order of hits stays the same
}

// Note is cached with an answer.
type Note interface {
	Bytes() int // that it takes
}

// Note returns what was cached with the answer, or nil.
func (k *KeptAnswer) Note() Note { return k.note }

// Answer returns the answer cached with a view under a key, or nil. at is the time of the search.
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

// Keep caches the answer with its view on the second request in a short time, if the answer does not depend on the time. members are
// as AppendMembers has appended them. note returns what is cached with the answer; nil: nothing.
func (r *Response) Keep(key, members []byte, note func() Note) {
	q := r.request
	if len(members) > keptAnswerBytes || r.Degraded() || r.result.kind != keyword || q.Hybrid != nil || q.Vector != nil || q.Media != nil ||
		q.Reorder != nil || q.Foreign != nil || q.Rules != nil || q.ShowPerformanceDetails || q.ExplainPlan || q.Metadata ||
		q.Suggest && r.None() { // the index of suggestions may have changed meanwhile
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
