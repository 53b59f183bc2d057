package audit

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"
)

const (
	// refusedTime is how long the log counts refused requests before it writes their summary.
	refusedTime = time.Minute

	// Limits in that time: entries of single requests, of one sender and together, and senders that are told apart.
	maxOfSender = 8
	maxRefused  = 32
	maxSenders  = 32
)

// sender is who sent refused requests: a key at an address without its port. IPv6 addresses count by their first 64 bits, because one
// host has all addresses below.
type sender struct{ key, address string }

// refusals counts refused requests.
type refusals struct {
	by      map[sender]*refusal
	written int // entries of single requests
	others  int // requests of further senders
	timer   *time.Timer
}

// refusal counts the refused requests of a sender.
type refusal struct{ written, more int }

// Refuse writes the entry of a request that was refused because of its key, if it is among the first ones in a minute. It counts the
// others: at the end of the minute, and in Close, the log gets one entry for each sender. So a stranger cannot fill the log, which
// removes its oldest files.
func (l *Log) Refuse(e Entry) error {
	by := sender{e.Key, host(e.Address)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("cannot write to the audit log: it is closed")
	}
	if l.refused == nil {
		l.refused = &refusals{by: map[sender]*refusal{}, timer: time.AfterFunc(refusedTime, l.endMinute)}
	}
	r := l.refused
	n := r.by[by]
	switch {
	case n == nil && len(r.by) == maxSenders:
		r.others++
		return nil
	case n == nil:
		n = &refusal{}
		r.by[by] = n
	}
	if n.written == maxOfSender || r.written == maxRefused {
		n.more++
		return nil
	}
	if err := l.write(e); err != nil {
		return err
	}
	n.written++
	r.written++
	return nil
}

// endMinute writes the summaries of refused requests. If it fails, it tries again after another minute.
func (l *Log) endMinute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != nil && l.summarize() != nil {
		l.refused.timer.Reset(refusedTime)
	}
}

// summarize writes the summaries of refused requests. Those that it has written are no longer counted after an error. l.mu is held.
func (l *Log) summarize() error {
	r := l.refused
	senders := slices.SortedFunc(maps.Keys(r.by), func(a, b sender) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.address, b.address))
	})
	for _, by := range senders {
		if err := l.writeSummary(by, r.by[by].more); err != nil {
			return err
		}
		r.by[by].more = 0
	}
	if err := l.writeSummary(sender{}, r.others); err != nil {
		return err
	}
	r.timer.Stop()
	l.refused = nil
	return nil
}

// writeSummary writes the number of further refused requests of a sender, if there are any. l.mu is held.
func (l *Log) writeSummary(by sender, n int) error {
	if n == 0 {
		return nil
	}
	return l.write(Entry{Time: time.Now(), Key: by.key, Address: by.address, Outcome: Refused, Count: n})
}

// host returns an address without its port, or the network of an IPv6 host.
func host(address string) string {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	a := ap.Addr().Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a.String()
	}
	return p.String()
}
