package outbound

import (
	"net/url"
	"slices"
	"testing"
)

func TestHideSecrets(t *testing.T) {
	const text = "key canary is wrong, and so is canary at abc"
	if got, want := HideSecrets(text, []string{"", "abc", "canary"}), "key XXX... is wrong, and so is XXX... at abc"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSecretsOf(t *testing.T) {
	for address, want := range map[string][]string{
		"https://a.test/x":                {},
		"https://me:p%40ss@a.test/?k=v&k": {"", "me:p%40ss", "p@ss", "v"},
		"https://me@a.test":               {"", "me"},
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(slices.Values(SecretsOf(u))); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
