// Package budget counts the bytes that requests hold: of their bodies, and of answers that are made or wait to be taken.
// All of them together have a limit, and so has each answer.
package budget

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Budget is what all requests together may hold.
type Budget struct {
	limit int64
	used  atomic.Int64
	lines atomic.Int64 // large requests that wait

	// relieve has requests that wait for slow clients end. It does not wait for that.
	relieve func()
}

// Errors of accounts.
var (
	ErrFull  = errors.New("all memory for requests is in use")
	ErrLarge = errors.New("the answer exceeds the size limit")
)

const (
	// SmallBytes is what a request may hold as long as there is anything of the reserve: large requests
	// that use the budget up do not keep small ones out.
	SmallBytes = 64 << 10
	// reserve is the share of the limit that is there for small requests, in addition to it.
	reserve = 2
	// patience is how long a request waits until others have given back what it needs.
	patience = 500 * time.Millisecond
	// maxWaiting is how many large requests may wait; others fail at once.
	maxWaiting = 16
	// pollEvery is how long it sleeps between two looks.
	pollEvery = 25 * time.Millisecond
)

// New makes a budget of so many bytes. relieve may be nil; it is called when a request does not find what it needs.
func New(limit int64, relieve func()) *Budget {
	if relieve == nil {
		relieve = func() {}
	}
	return &Budget{limit: limit, relieve: relieve}
}

// Limit returns how many bytes there are.
func (b *Budget) Limit() int64 { return b.limit }

// Used returns how many bytes are held.
func (b *Budget) Used() int64 { return b.used.Load() }

// take takes n bytes for an account that then holds so many.
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

// Account is what one request holds. A nil account has no limits. It may be used by several goroutines.
type Account struct {
	budget *Budget
	most   int64 // bytes of an answer
	held   atomic.Int64
	answer atomic.Int64 // the part of held that is the answer
	closed atomic.Bool

	of     *Account // whose bytes these are; nil: its own
	worker Worker   // who takes them; nil: nobody who holds anything up
}

// Worker is told when it has to wait for bytes: what it has and others need, it gives back meanwhile.
type Worker interface {
	Idle(wait func())
}

// For makes w an account, which is new, for one that works for the request: the bytes are those of a.
func (a *Account) For(w *Account, worker Worker) {
	if a != nil {
		w.budget, w.most, w.of, w.worker = a.budget, a.most, a, worker
	}
}

// own returns the account that counts.
func (a *Account) own() *Account {
	if a != nil && a.of != nil {
		return a.of
	}
	return a
}

// Open opens an account whose answer may have so many bytes.
func (b *Budget) Open(answerBytes int64) *Account {
	a := new(Account)
	b.OpenAs(a, answerBytes)
	return a
}

// OpenAs opens an account that is part of something else, and new.
func (b *Budget) OpenAs(a *Account, answerBytes int64) { a.budget, a.most = b, answerBytes }

// Held returns how many bytes the request holds.
func (a *Account) Held() int64 {
	if a = a.own(); a == nil {
		return 0
	}
	return a.held.Load()
}

// Room returns how many bytes an answer may have.
func (a *Account) Room() int64 {
	if a == nil {
		return math.MaxInt64
	}
	return a.most
}

// Limit returns how many bytes all requests together may hold.
func (a *Account) Limit() int64 {
	if a == nil {
		return math.MaxInt64
	}
	return a.budget.limit
}

// Hold takes n bytes, or gives −n back. It may wait for a moment; the error is ErrFull.
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

// TryHold takes n bytes if they are there, without waiting and without having caches give up what they keep. It is for what a request can
// do without.
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

// await waits for n bytes of an account that then holds so many.
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

// add counts n bytes that were taken from the budget, or −n that were given back. A closed account keeps nothing: goroutines that still
// work for a request that has ended neither use up the budget nor give back what Close gave back.
func (a *Account) add(n int64) {
	a.held.Add(n)
	if a.closed.Load() {
		a.budget.used.Add(-a.held.Swap(0))
	}
}

// Answer takes n bytes that the answer has grown by, or gives −n back. The error is ErrLarge or ErrFull.
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

// Settle says that of all that was held n bytes are left: those of the finished answer, which are there, whatever the limits say.
func (a *Account) Settle(n int64) {
	if a = a.own(); a == nil {
		return
	}
	a.answer.Store(n)
	a.budget.used.Add(n - a.held.Swap(n))
}

// Close gives everything back, and what is held later at once.
func (a *Account) Close() {
	if own := a.own(); own != nil {
		own.closed.Store(true)
		own.Settle(0)
	}
}

// Meter charges an account for an answer that is appended to, as it grows.
type Meter struct {
	account *Account
	charged int
	next    int // length from which on the account hears of it
}

// Step is by how many bytes an answer grows before the account hears of it.
const Step = 16 << 10

// NewMeter returns the meter of an answer of which so many bytes are charged already.
func NewMeter(a *Account, charged int) Meter {
	if a == nil {
		return Meter{next: math.MaxInt}
	}
	return Meter{a, charged, charged + Step}
}

// Due reports whether the account is to hear of an answer of this length. It is inlined wherever it is called, which Grown is not.
func (m *Meter) Due(length int) bool { return length >= m.next }

// Grown says how long the answer is now.
func (m *Meter) Grown(length int) error {
	if !m.Due(length) {
		return nil
	}
	grown := int64(length - m.charged)
	m.charged, m.next = length, length+Step
	return m.account.Answer(grown)
}

// Hold takes n bytes for what is beside the answer.
func (m *Meter) Hold(n int) error { return m.account.Hold(int64(n)) }

// Room is what an account holds for one thing after the other and a copy of it: as much as the largest of them takes.
type Room struct {
	account *Account
	held    int64
}

// NewRoom returns a room without anything in it.
func NewRoom(a *Account) Room { return Room{account: a} }

// Hold has room for something of so many bytes.
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

// key is the place of the account among the values of a context.
type key struct{}

// Key is the key under which a context has the account of its request.
var Key any = key{}

// Of returns the account of a context's request, nil when it has none.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(Key).(*Account)
	return a
}
