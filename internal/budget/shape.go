package budget

// Shape estimates what takes JSON text apart needs in memory, from the text as it comes in: what stands in little text may take a lot.
// `[1,1,1` is a number and its place in a list for each two bytes, `{"a":{"a":` a table of members for each five. The estimate is of all
// that is taken on the way, what is garbage at once included.
type Shape struct {
	bytes  int64
	place  uint8 // of the next byte
	escape bool  // behind a backslash
}

// The places of a byte.
const (
	outside = iota
	inside  // a string
	behind  // a digit
)

// What one takes, in bytes, as encoding/json and the readers of parameters and filters have it: two tests measure them.
const (
	byteOf    = 6   // a byte of text, of which copies are made by those that split it and those that keep its parts
	valueOf   = 130 // an item of a list, a member of an object: its place, copied as the list grows, and what is there
	tableOf   = 240 // an object: its table of members
	nameOf    = 115 // a member's name, and its place in the table
	stringOf  = 20
	digitOf   = 2
	numberOf  = 110 // a number of a list that is not its first
	operandOf = 150 // a value or a condition of a filter, which is written in a string
)

// weights are what a byte adds at a place. Vectors are long lists of long numbers, of which no text is kept.
var weights = func() (w [3][256]int32) {
	for c := range 256 {
		w[outside][c], w[inside][c] = byteOf, byteOf
	}
	w[outside][','] += valueOf
	w[outside]['['] += valueOf
	w[outside]['{'] += valueOf + tableOf
	w[outside][':'] += nameOf
	w[outside]['"'] += stringOf
	w[behind] = w[outside]
	for _, c := range []byte("0123456789.") {
		w[behind][c] = digitOf
	}
	w[behind][','] = numberOf
	for _, c := range []byte(",=<>") {
		w[inside][c] += operandOf
	}
	return w
}()

// Add reads on. What is no JSON has an estimate, too, of no meaning.
func (s *Shape) Add(text []byte) {
	n, place, escape := s.bytes, s.place, s.escape
	for _, c := range text {
		n += int64(weights[place][c])
		if place != inside {
			switch {
			case c-'0' < 10, c == '.':
				place = behind
			case c == '"':
				place = inside
			default:
				place = outside
			}
			continue
		}
		switch {
		case escape:
			escape = false
		case c == '\\':
			escape = true
		case c == '"':
			place = outside
		}
	}
	s.bytes, s.place, s.escape = n, place, escape
}

// Bytes returns the estimate, the text itself included.
func (s *Shape) Bytes() int64 { return s.bytes }

// ShapeOf returns the estimate of a text.
func ShapeOf(text []byte) int64 {
	var s Shape
	s.Add(text)
	return s.Bytes()
}
