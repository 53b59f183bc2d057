package binfmt

// MendBit finds the one bit of p without which right does not hold, and turns it; it reports whether right holds at the end. right
// is asked len(p) × 8 times at most, and compares p with a checksum, which may lie in p.
func MendBit(p []byte, right func() bool) bool {
	if right() {
		return true
	}
	for i := range p {
		for bit := range 8 {
			p[i] ^= 1 << bit
			if right() {
				return true
			}
			p[i] ^= 1 << bit
		}
	}
	return false
}
