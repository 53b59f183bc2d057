package aggregate

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"svc/internal/numeric"
)

// numberIndex finds keys by their numbers: a hash table with linear probing, at most half full. For the few hundred keys of a search
// it is several times as fast as a map.
type numberIndex struct {
	slots []numberSlot // a power of two
	n     int
}

// numberSlot is a key, found by the bits of its number as a float64.
type numberSlot struct {
	float uint64
	rest  int16
	place uint32 // of the key + 1; 0: the slot is empty
}

// Random seeds of the hash, so that nobody can construct documents whose numbers collide.
var indexSeed, indexFactor = rand.Uint64(), rand.Uint64() | 1

// slot returns the slot of a number, or the empty one where it belongs. The index is not empty.
func (t *numberIndex) slot(x numeric.Value) *numberSlot {
	float, mask := math.Float64bits(x.Float+0), uint64(len(t.slots)-1) // −0 + 0 is 0
	high, low := bits.Mul64(float^uint64(uint16(x.Rest))<<48^indexSeed, indexFactor)
	for at := high ^ low; ; at++ {
		if s := &t.slots[at&mask]; s.place == 0 || s.float == float && s.rest == x.Rest {
			return s
		}
	}
}

// find returns the place of the key of a number.
func (t *numberIndex) find(x numeric.Value) (place uint32, ok bool) {
	if t.n == 0 {
		return 0, false
	}
	s := t.slot(x)
	return s.place - 1, s.place != 0
}

// put notes the place of the key of a number, instead of another place.
func (t *numberIndex) put(x numeric.Value, place uint32) {
	if 2*t.n >= len(t.slots) {
		const first = 64
		old := t.slots
		t.slots = make([]numberSlot, max(first, 2*len(old)))
		for i := range old {
			if s := &old[i]; s.place != 0 {
				*t.slot(numeric.Value{Float: math.Float64frombits(s.float), Rest: s.rest}) = *s
			}
		}
	}
	s := t.slot(x)
	if s.place == 0 {
		t.n++
	}
	*s = numberSlot{math.Float64bits(x.Float + 0), x.Rest, place + 1}
}
