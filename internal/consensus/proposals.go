package consensus

import (
	"encoding/binary"
	"sync"

	"github.com/hashicorp/raft"
)

// proposals are the changes on their way to raft's goroutine, which may append them much later: in another term, or when nobody waits for
// them any more. Then they must not get into the log, because they do not include what was committed meanwhile. Raft cannot withdraw a
// proposal, so an entry that does nothing is appended instead.
type proposals struct {
	mu   sync.Mutex
	last uint64               // id of the newest one
	all  map[uint64]*proposal // by id
}

// proposal is a change from Node.Propose until raft knows its end.
type proposal struct {
	term  uint64 // in which it may be appended
	taken bool   // it is appended, or about to be
}

// add adds a proposal and returns the Extensions by which take knows it.
func (p *proposals) add(term uint64) (id uint64, extensions []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[uint64]*proposal{}
	}
	p.last++
	p.all[p.last] = &proposal{term: term}
	return p.last, binary.BigEndian.AppendUint64(nil, p.last)
}

// take reports whether an entry may be appended, and clears its Extensions.
func (p *proposals) take(l *raft.Log) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := l.Extensions
	l.Extensions = nil
	if len(id) != 8 {
		return false
	}
	x := p.all[binary.BigEndian.Uint64(id)]
	if x == nil || x.term != l.Term {
		return false
	}
	x.taken = true
	return true
}

// abandon prevents that a proposal is appended later.
func (p *proposals) abandon(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.all[id]; x != nil && !x.taken {
		delete(p.all, id)
	}
}

// end removes a proposal, and reports whether it was taken.
func (p *proposals) end(id uint64) (taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.all[id]
	delete(p.all, id)
	return x != nil && x.taken
}

// pending reports whether proposals are taken whose end is unknown.
func (p *proposals) pending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.all {
		if x.taken {
			return true
		}
	}
	return false
}

// forget removes all proposals: none of them can be appended any more.
func (p *proposals) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.all)
}
