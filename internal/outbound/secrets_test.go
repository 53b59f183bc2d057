package outbound

import "testing"

func TestHideSecrets(t *testing.T) {
	const text = "key canary is wrong, and so is canary at abc"
	if got, want := HideSecrets(text, []string{"", "abc", "canary"}), "key XXX... is wrong, and so is XXX... at abc"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
