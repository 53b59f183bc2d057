package synonym

import (
	"bytes"
	"testing"
)

// TestMend checks that a single flipped bit is repaired, that a sound file does not change, and that two flipped bits of a part stay.
func TestMend(t *testing.T) {
	good := smallFile().Encode()
	for at := range good {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		if !Mend(bad) || !bytes.Equal(bad, good) {
			t.Errorf("a flipped bit of byte %d is not repaired", at)
		}
	}
	settings, synonyms, err := Parts(good)
	if c := smallFile(); err != nil || !bytes.Equal(settings, c.Settings) || !bytes.Equal(synonyms, c.Synonyms) {
		t.Errorf("the parts are %q and %q (%v)", settings, synonyms, err)
	}
	for _, at := range []int{0, headBytes} {
		bad := bytes.Clone(good)
		bad[at] ^= 1
		bad[at+3] ^= 1
		if Mend(bad) {
			t.Errorf("two flipped bits from byte %d on are repaired", at)
		}
	}
	if Mend(good[:headBytes-1]) || Mend(good[:len(good)-1]) {
		t.Error("a truncated file is repaired")
	}
}
