package template

import (
	"bytes"
	"math"

	"svc/internal/budget"
	"svc/internal/jsontext"
)

// Work is what a rendering belongs to. The zero Work has no account and does not end early.
type Work struct {
	// Account is charged for everything that the rendering allocates, before the allocation, garbage included. At the end all of it
	// is returned except for the rendered text.
	Account *budget.Account
	// Yield is called at short intervals. It may wait, to let others work. Its error ends the rendering. nil: no yielding.
	Yield func() error
}

// The work of a rendering is counted in steps. Allocations count as steps by their bytes, so the limit of steps also limits memory:
// workLimit*workBytes bytes, plus a few times the size of the document. Reading the document a few times is paid for.
const (
	workLimit = 2 << 20
	workBytes = 32 // bytes that are made in a step
	reads     = 4  // times that a document can be read beyond workLimit

	yieldEvery = 256      // steps
	holdBytes  = 16 << 10 // that the account is asked for at once, at least
)

// Approximate bytes that parsing allocates. A test measures the most expensive templates.
const (
	pieceBytes = 100 // with what finding it makes
	nodeBytes  = 220 // of an output or tag without its tokens
	tokenBytes = 170
)

// Bytes of the parts of values. A test compares them with the types.
const (
	valueBytes  = 96
	memberBytes = 112
	objectBytes = 48
	indexBytes  = 160 // of a member in an index, which doubles as it grows
	numberBytes = 336 // of the longest number as it is printed
)

// newParseMeter returns the meter for parsing a template. Only the size of the source limits it.
func newParseMeter(w Work) *meter { return &meter{Work: w, left: math.MaxInt, yielded: math.MaxInt} }

// meter counts the work of a rendering. The first error stays: from then on nothing is allocated, and results are nil. So functions
// on values need not return it; their callers check it before the next step.
type meter struct {
	Work
	left    int   // steps that may still be done
	yielded int   // left when Yield was called last
	made    int   // bytes
	held    int   // bytes that the account has given
	err     error // errWork, or one of Yield or the account
}

// newMeter returns the meter of a rendering of an input of size bytes.
func newMeter(w Work, size int) *meter {
	left := workLimit + reads*size/workBytes
	return &meter{Work: w, left: left, yielded: left}
}

// work counts steps that are about to be done.
func (m *meter) work(steps int) error {
	if m.err != nil {
		return m.err
	}
	if steps > m.left {
		m.err = errWork
		return m.err
	}
	m.left -= steps
	if m.yielded-m.left >= yieldEvery && m.Yield != nil {
		m.yielded = m.left
		m.err = m.Yield()
	}
	return m.err
}

// make counts bytes that are about to be made.
func (m *meter) make(bytes int) error {
	if m.work((bytes+workBytes-1)/workBytes) != nil {
		return m.err
	}
	m.made += bytes
	if more := m.made - m.held; more > 0 {
		more = max(more, holdBytes, m.held/4)
		if m.err = m.Account.Hold(int64(more)); m.err == nil {
			m.held += more
		}
	}
	return m.err
}

// makeList makes room for n values.
func (m *meter) makeList(n int) []value {
	if m.make(n*valueBytes) != nil {
		return nil
	}
	return make([]value, 0, n)
}

// end returns what the account was charged, except for stays bytes. The error is why the rendering ended early, if it did.
func (m *meter) end(stays int) error {
	if m.err != nil {
		stays = 0
	}
	_ = m.Account.Hold(int64(stays - m.held)) // which never fails: it was held before
	m.held = stays
	return m.err
}

// failed is the error of a rendering that nothing stays of.
func (m *meter) failed(err error) error {
	if ended := m.end(0); ended != nil && ended != errWork {
		return ended
	}
	return err
}

// room makes room for n more bytes in a buffer. If it returns false, the buffer must not be appended to.
func (m *meter) room(dst []byte, n int) ([]byte, bool) {
	if m.err != nil {
		return dst, false
	}
	if cap(dst)-len(dst) >= n {
		return dst, true
	}
	grown := max(2*cap(dst), len(dst)+n, 64)
	if m.make(grown) != nil {
		return dst, false
	}
	return append(make([]byte, 0, grown), dst...), true
}

// appendText appends a text.
func (m *meter) appendText(dst []byte, s string) []byte {
	dst, ok := m.room(dst, len(s))
	if !ok {
		return dst
	}
	return append(dst, s...)
}

// appendBytes appends bytes.
func (m *meter) appendBytes(dst, b []byte) []byte {
	dst, ok := m.room(dst, len(b))
	if !ok {
		return dst
	}
	return append(dst, b...)
}

// appendQuoted appends a text as a JSON string.
func (m *meter) appendQuoted(dst []byte, s string) []byte {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ':
			n += len(`\u0000`) - 1
		case c == '"', c == '\\':
			n++
		}
	}
	dst, ok := m.room(dst, n)
	if !ok {
		return dst
	}
	return jsontext.AppendQuoted(dst, s)
}

// unquoted returns the text of a JSON string.
func (m *meter) unquoted(raw []byte) string {
	if len(raw) < 2 {
		return ""
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return m.string(inner)
	}
	if m.make(len(inner)) != nil {
		return ""
	}
	return m.string(jsontext.AppendUnescaped(make([]byte, 0, len(inner)), inner))
}

// string copies bytes.
func (m *meter) string(b []byte) string {
	if m.make(len(b)) != nil {
		return ""
	}
	return string(b)
}
