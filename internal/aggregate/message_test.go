package aggregate

import (
	"encoding/binary"
	"math"

	"svc/internal/numeric"
)

// message is a Reader without limits.
type message struct {
	left []byte
	bad  bool
	held int
}

func (m *message) Spoil() { m.left, m.bad = nil, true }

func (m *message) take(n int) []byte {
	if n > len(m.left) {
		m.Spoil()
		return nil
	}
	b := m.left[:n:n]
	m.left = m.left[n:]
	return b
}

func (m *message) Byte() byte {
	if b := m.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (m *message) number() uint64 {
	x, n := binary.Uvarint(m.left)
	if n <= 0 {
		m.Spoil()
		return 0
	}
	m.left = m.left[n:]
	return x
}

func (m *message) Int(most int) int {
	x := m.number()
	if x > uint64(most) {
		m.Spoil()
		return 0
	}
	return int(x)
}

func (m *message) Items(least int) int { return m.Int(len(m.left) / least) }
func (m *message) Text() []byte        { return m.take(m.Int(len(m.left))) }

func (m *message) Float() float64 {
	b := m.take(8)
	if b == nil {
		return 0
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if math.IsNaN(x) || math.IsInf(x, 0) {
		m.Spoil()
		return 0
	}
	return x
}

func (m *message) Exact() numeric.Value {
	x := numeric.Of(m.Float())
	rest := m.number()
	x.Rest = int16(rest>>1) ^ -int16(rest&1)
	return x
}

func (m *message) Hold(bytes int) error { m.held += bytes; return nil }
func (m *message) Step() error          { return nil }
