package aggregate

import (
	"encoding/binary"
	"math"

	"svc/internal/numeric"
)

// Reader reads the message of a remote. It remembers when the message is truncated or invalid. From then on it returns zero values.
type Reader interface {
	Byte() byte
	Int(most int) int     // up to most
	Items(least int) int  // number of items that follow; each takes at least least bytes
	Text() []byte         // valid as long as the message
	Float() float64       // finite
	Exact() numeric.Value // as appendNumber appends it
	Spoil()               // records that the data is invalid
	Hold(bytes int) error // charges memory before it is allocated
	Step() error          // is called for each item; its error ends the reading
}

func appendText[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendFloat(dst []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
}

// appendNumber appends a number exactly.
func appendNumber(dst []byte, x numeric.Value) []byte {
	return binary.AppendVarint(appendFloat(dst, x.Float), int64(x.Rest))
}
