// Package budget counts the bytes that requests hold: for their bodies, and for answers that are built or wait to be read by the
// client. All requests together have a limit, and so has each answer.
package budget

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Budget is the memory that all requests together may hold.
type Budget struct {
	limit int64
	used  atomic.Int64
	lines atomic.Int64 // large requests that wait for memory

	// relieve starts to cut off requests that wait for slow clients. It returns at once.
	relieve func()
}

// Errors of accounts.
var (
	ErrFull  = errors.New("all memory for requests is in use")
	ErrLarge = errors.New("the answer exceeds the size limit")
)

const (
	// SmallBytes is how much a request may take from the reserve, so that large requests that use up the budget do not block small
	// ones.
	SmallBytes = 64 << 10
	// reserve divides the limit: small requests may take limit / reserve bytes beyond it.
	reserve = 2
	// patience is how long a request waits for others to release memory.
	patience = 500 * time.Millisecond
	// maxWaiting is how many large requests may wait; others fail at once.
	maxWaiting = 16
	// pollEvery is how long a waiting request sleeps between attempts.
	pollEvery = 25 * time.Millisecond
)

// New returns a budget of limit bytes. relieve is called when a request does not get the memory it needs; it may be nil.
func New(limit int64, relieve func()) *Budget {
	if relieve == nil {
		relieve = func() {}
	}
	return &Budget{limit: limit, relieve: relieve}
}

// Limit returns the size of the budget in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// Used returns how many bytes are held.
func (b *Budget) Used() int64 { return b.used.Load() }

// take takes n bytes for an account that then holds the given number of bytes.
func (b *Budget) take(n, holds int64) bool {
	limit := b.limit
	if holds <= SmallBytes {
		limit += limit / reserve
	}
	if b.used.Add(n) <= limit {
		return true
	}
	b.used.Add(-n)
	return false
}

// Account has the bytes that one request holds. A nil account has no limits. It is safe for concurrent use.
type Account struct {
	budget *Budget
	most   int64 // limit of the answer
	held   atomic.Int64
	answer atomic.Int64 // the part of held that is the answer
	closed atomic.Bool

	of     *Account // the account that is charged; nil: this one
	worker Worker   // whose turn is released while Hold waits; nil: none
}

// Worker is told when Hold has to wait for memory. Idle runs wait and meanwhile releases what others need, such as a turn.
type Worker interface {
	Idle(wait func())
}

// For sets up w, a zero account, for a worker of the request: it charges a.
func (a *Account) For(w *Account, worker Worker) {
	if a != nil {
		w.budget, w.most, w.of, w.worker = a.budget, a.most, a, worker
	}
}

// own returns the account that is charged.
func (a *Account) own() *Account {
	if a != nil && a.of != nil {
		return a.of
	}
	return a
}

// Open returns a new account whose answer may have up to answerBytes bytes.
func (b *Budget) Open(answerBytes int64) *Account {
	a := new(Account)
	b.OpenAs(a, answerBytes)
	return a
}

// OpenAs is Open for a zero account that is part of another value.
func (b *Budget) OpenAs(a *Account, answerBytes int64) { a.budget, a.most = b, answerBytes }

// Held returns how many bytes the request holds.
func (a *Account) Held() int64 {
	if a = a.own(); a == nil {
		return 0
	}
	return a.held.Load()
}

// Room returns the limit of the answer in bytes.
func (a *Account) Room() int64 {
	if a == nil {
		return math.MaxInt64
	}
	return a.most
}

// Limit returns the limit of all requests together in bytes.
func (a *Account) Limit() int64 {
	if a == nil {
		return math.MaxInt64
	}
	return a.budget.limit
}

// Hold takes n bytes, or returns −n. It may wait up to patience. The error is ErrFull.
func (a *Account) Hold(n int64) error {
	worker := (Worker)(nil)
	if a != nil && a.of != nil {
		a, worker = a.of, a.worker
	}
	if a == nil || n == 0 {
		return nil
	}
	if n < 0 {
		a.budget.used.Add(n)
		a.add(n)
		return nil
	}
	holds := a.held.Load() + n
	if a.budget.take(n, holds) {
		a.add(n)
		return nil
	}
	if holds > SmallBytes && a.budget.lines.Add(1) > maxWaiting {
		a.budget.lines.Add(-1)
		a.budget.relieve()
		return ErrFull
	}
	if worker == nil {
		return a.await(n, holds)
	}
	var err error
	worker.Idle(func() { err = a.await(n, holds) })
	return err
}

// TryHold takes n bytes if they are available. It does not wait and does not call relieve. It is for memory that a request can do
// without.
func (a *Account) TryHold(n int64) bool {
	if a = a.own(); a == nil {
		return true
	}
	if !a.budget.take(n, a.held.Load()+n) {
		return false
	}
	a.add(n)
	return true
}

// await waits for n bytes for an account that then holds the given number of bytes.
func (a *Account) await(n, holds int64) error {
	if holds > SmallBytes {
		defer a.budget.lines.Add(-1)
	}
	for waited := time.Duration(0); !a.budget.take(n, holds); waited += pollEvery {
		if waited >= patience || holds > a.budget.limit {
			return ErrFull
		}
		a.budget.relieve()
		time.Sleep(pollEvery)
	}
	a.add(n)
	return nil
}

// add counts n bytes that were taken from the budget, or −n that were returned. A closed account holds nothing: goroutines that still
// work for a finished request neither use up the budget nor return bytes twice.
func (a *Account) add(n int64) {
	a.held.Add(n)
	if a.closed.Load() {
		a.budget.used.Add(-a.held.Swap(0))
	}
}

// Answer takes n bytes for the growth of the answer, or returns −n. The error is ErrLarge or ErrFull.
func (a *Account) Answer(n int64) error {
	own := a.own()
	if own == nil || n == 0 {
		return nil
	}
	if own.answer.Add(n) > own.most && n > 0 {
		own.answer.Add(-n)
		return ErrLarge
	}
	if err := a.Hold(n); err != nil {
		own.answer.Add(-n)
		return err
	}
	return nil
}

// Settle replaces the held bytes by n, the size of the finished answer. It exceeds limits if necessary, because the answer exists.
func (a *Account) Settle(n int64) {
	if a = a.own(); a == nil {
		return
	}
	a.answer.Store(n)
	a.budget.used.Add(n - a.held.Swap(n))
}

// Close returns all bytes, and from then on whatever is taken at once.
func (a *Account) Close() {
	if own := a.own(); own != nil {
		own.closed.Store(true)
		own.Settle(0)
	}
}

// Meter charges an account for an answer as it grows by appending.
type Meter struct {
	account *Account
	charged int
	next    int // length from which on the account is charged again
}

// Step is by how many bytes an answer grows between two charges.
const Step = 16 << 10

// NewMeter returns the meter of an answer, charged bytes of which are charged already.
func NewMeter(a *Account, charged int) Meter {
	if a == nil {
		return Meter{next: math.MaxInt}
	}
	return Meter{a, charged, charged + Step}
}

// Due reports whether an answer of this length has to be charged with Grown. Unlike Grown, it is inlined.
func (m *Meter) Due(length int) bool { return length >= m.next }

// Grown charges the account for an answer of this length.
func (m *Meter) Grown(length int) error {
	if !m.Due(length) {
		return nil
	}
	grown := int64(length - m.charged)
	m.charged, m.next = length, length+Step
	return m.account.Answer(grown)
}

// Hold takes n bytes for something other than the answer.
func (m *Meter) Hold(n int) error { return m.account.Hold(int64(n)) }

// Room charges an account for values that are held one at a time, each with a copy. It holds as much as the largest one needs.
type Room struct {
	account *Account
	held    int64
}

// NewRoom returns an empty room.
func NewRoom(a *Account) Room { return Room{account: a} }

// Hold makes room for a value of this size in bytes.
func (r *Room) Hold(bytes int) error {
	more := 2*int64(bytes) - r.held
	if more <= 0 {
		return nil
	}
	err := r.account.Hold(more)
	if err == nil {
		r.held += more
	}
	return err
}

// Empty gives back what is held.
func (r *Room) Empty() {
	_ = r.account.Hold(-r.held) // which never fails
	r.held = 0
}

// key is the type of Key.
type key struct{}

// Key is the key under which a context has the account of its request.
var Key any = key{}

// Of returns the account of a context's request, or nil if it has none.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(Key).(*Account)
	return a
}
