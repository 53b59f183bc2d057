package search

import "svc/internal/numeric"

// peerStates reads the states of accumulators for package aggregate.
type peerStates struct{ *peerReader }

func (p peerStates) Byte() byte           { return p.byte() }
func (p peerStates) Int(most int) int     { return p.int(most) }
func (p peerStates) Items(least int) int  { return p.count(least) }
func (p peerStates) Text() []byte         { return p.text() }
func (p peerStates) Float() float64       { return p.float() }
func (p peerStates) Exact() numeric.Value { return p.exact() }
func (p peerStates) Spoil()               { p.left, p.bad = nil, true }
func (p peerStates) Hold(bytes int) error { return p.make(bytes) }
func (p peerStates) Step() error          { return p.step() }
