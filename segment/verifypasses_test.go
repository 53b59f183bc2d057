package segment

import (
	"bytes"
	"testing"

	"svc/internal/apierr"
)

// TestVerifyInPasses checks prefixes for a range of rows at a time, as Verify does for many rows. A posting that lacks an occurrence of
// its words must be found.
func TestVerifyInPasses(t *testing.T) {
	most := unionBytes
	defer func() { unionBytes = most }()
	data := bytes.Clone(baseSegment())
	s := sectionOf(data, tagPrefixPosts)
	found := 0
	for at := s.offset; at < s.offset+s.length; at += max(1, s.length/40) {
		data[at] ^= 1
		fixChecksums(data)
		unionBytes = most
		want := apierr.IsCorruption(openAndVerify(t, data)) // padding is not verified
		if want {
			found++
		}
		for _, unionBytes = range []int{20, 300} {
			if err := openAndVerify(t, data); apierr.IsCorruption(err) != want {
				t.Fatalf("%d bytes at once, byte %d: %v", unionBytes, at-s.offset, err)
			}
		}
		data[at] ^= 1
	}
	fixChecksums(data)
	for _, unionBytes = range []int{20, 300} {
		if err := openAndVerify(t, data); err != nil {
			t.Errorf("%d bytes at once: %v", unionBytes, err)
		}
	}
	if found < 20 {
		t.Errorf("only %d changes were found", found)
	}
}
