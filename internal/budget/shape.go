package budget

// Shape estimates what takes JSON text apart needs in memory, from the text as it comes in: what stands in little text may take a lot.
// `[1,1,1` is a number and its place in a list for each two bytes, `{"a":{"a":` a table of members for each five. The estimate is of all
// that is taken on the way, what is garbage at once included.
type Shape struct {
	bytes  int64
	quoted bool // inside a string
	escape bool // behind its backslash
}

// What one takes, in bytes, as encoding/json and the readers of parameters and filters have it: two tests measure them.
const (
	byteOf    = 6   // a byte of text, of which copies are made by those that split it and those that keep its parts
	valueOf   = 130 // an item of a list, a member of an object: its place, copied as the list grows, and what is there
	tableOf   = 240 // an object: its table of members
	nameOf    = 115 // a member's name, and its place in the table
	stringOf  = 20
	operandOf = 150 // a value or a condition of a filter, which is written in a string
)

// weights are what a byte adds, outside of strings and inside.
var weights = func() (w [2][256]int32) {
	for c := range 256 {
		w[0][c], w[1][c] = byteOf, byteOf
	}
	w[0][','] += valueOf
	w[0]['['] += valueOf
	w[0]['{'] += valueOf + tableOf
	w[0][':'] += nameOf
	w[0]['"'] += stringOf
	for _, c := range []byte(",=<>") {
		w[1][c] += operandOf
	}
	return w
}()

// Add reads on. What is no JSON has an estimate, too, of no meaning.
func (s *Shape) Add(text []byte) {
	n, quoted, escape := s.bytes, s.quoted, s.escape
	for _, c := range text {
		if !quoted {
			n += int64(weights[0][c])
			quoted = c == '"'
			continue
		}
		n += int64(weights[1][c])
		switch {
		case escape:
			escape = false
		case c == '\\':
			escape = true
		case c == '"':
			quoted = false
		}
	}
	s.bytes, s.quoted, s.escape = n, quoted, escape
}

// Bytes returns the estimate, the text itself included.
func (s *Shape) Bytes() int64 { return s.bytes }

// ShapeOf returns the estimate of a text.
func ShapeOf(text []byte) int64 {
	var s Shape
	s.Add(text)
	return s.Bytes()
}
