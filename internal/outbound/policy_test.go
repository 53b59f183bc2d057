package outbound

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func policy(t *testing.T, text string) Policy {
	t.Helper()
	var p Policy
	if err := p.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGlobal checks the first and last address of each special network, and the addresses next to it.
func TestGlobal(t *testing.T) {
	var p Policy
	for addresses, want := range map[string]bool{
		"0.0.0.0 0.255.255.255":                     false,
		"1.0.0.0 9.255.255.255 11.0.0.0":            true,
		"10.0.0.0 10.255.255.255":                   false,
		"100.63.255.255 100.128.0.0":                true,
		"100.64.0.0 100.127.255.255":                false,
		"126.255.255.255 128.0.0.0":                 true,
		"127.0.0.1 127.255.255.255":                 false,
		"169.253.255.255 169.255.0.0":               true,
		"169.254.0.0 169.254.169.254":               false,
		"172.15.255.255 172.32.0.0":                 true,
		"172.16.0.0 172.31.255.255":                 false,
		"192.0.0.0 192.0.0.8 192.0.0.255":           false,
		"192.0.0.9 192.0.0.10 192.0.1.0":            true,
		"192.0.2.1 198.51.100.1 203.0.113.1":        false,
		"192.167.255.255 192.169.0.0":               true,
		"192.168.0.0 192.168.255.255":               false,
		"198.17.255.255 198.20.0.0":                 true,
		"198.18.0.0 198.19.255.255":                 false,
		"223.255.255.255":                           true,
		"224.0.0.1 240.0.0.0 255.255.255.255":       false,
		":: ::1 ::ffff:8.8.8.8 ::ffff:10.0.0.1":     false,
		"::127.0.0.1 ::8.8.8.8":                     false,
		"64:ff9b::8.8.8.8":                          true,
		"64:ff9b::10.0.0.1 64:ff9b::127.0.0.1":      false,
		"64:ff9b:1::1 100::1":                       false,
		"2001::1 2001:1ff:ffff::1":                  false,
		"2001:1::1 2001:3::1 2001:20::1 2001:30::1": true,
		"2001:200::1 2606:4700::1111":               true,
		"2001:db8::1 3fff::1 3fff:fff::1":           false,
		"3fff:1000::1":                              true,
		"2002:a00:1::1 5f00::1":                     false,
		"fc00::1 fdff::1 fe80::1 fe80::1%eth0":      false,
		"fec0::1 ff02::1":                           false,
	} {
		for text := range strings.FieldsSeq(addresses) {
			if got := p.Allows(netip.MustParseAddr(text)); got != want {
				t.Errorf("%s: %t", text, got)
			}
		}
	}
	if p.Allows(netip.Addr{}) {
		t.Error("an empty address is allowed")
	}
}

func TestListedNetworks(t *testing.T) {
	for _, tt := range []struct{ networks, allowed, refused string }{
		{"", "8.8.8.8", "127.0.0.1 10.0.0.1"},
		{"any", "8.8.8.8 127.0.0.1 fe80::1%eth0 ::1", ""},
		{"10.0.0.0/8,any", "127.0.0.1", ""},
		{"10.0.0.0/8, 127.0.0.0/8", "10.1.2.3 127.0.0.1 ::ffff:10.1.2.3", "8.8.8.8 192.168.0.1 ::1 2606:4700::1111"},
		{"10.1.2.3/8", "10.9.9.9", "11.0.0.1"},
		{"fe80::/10", "fe80::1%eth0 fe80::1", "127.0.0.1 fc00::1"},
		{"0.0.0.0/0", "127.0.0.1 8.8.8.8", "::1"},
	} {
		p := policy(t, tt.networks)
		for text := range strings.FieldsSeq(tt.allowed) {
			if !p.Allows(netip.MustParseAddr(text)) {
				t.Errorf("%q refuses %s", tt.networks, text)
			}
		}
		for text := range strings.FieldsSeq(tt.refused) {
			if p.Allows(netip.MustParseAddr(text)) {
				t.Errorf("%q allows %s", tt.networks, text)
			}
		}
	}
	for _, text := range []string{"10.0.0.1", "10.0.0.0/33", "everything", "localhost", "10.0.0.0/8;any", "::ffff:10.0.0.0/104"} {
		if err := new(Policy).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestTransport connects to addresses, to a name, and through a redirect.
func TestTransport(t *testing.T) {
	reached := false
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer inner.Close()
	byName := strings.Replace(inner.URL, "127.0.0.1", "localhost", 1)
	client := func(p Policy) *http.Client {
		tr := p.Transport()
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	for _, url := range []string{inner.URL, byName} {
		_, err := client(Policy{}).Get(url)
		if refused := new(RefusedError); !errors.As(err, &refused) || !refused.Addr.IsLoopback() {
			t.Errorf("%s: %v", url, err)
		}
	}
	if reached {
		t.Fatal("a refused server was reached")
	}
	res, err := client(policy(t, "127.0.0.0/8")).Get(inner.URL)
	if err != nil || !reached {
		t.Fatalf("an allowed server: %v", err)
	}
	res.Body.Close()

	// The first address is allowed, but it redirects to another.
	redirects := 0
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		redirects++
		http.Redirect(w, r, strings.Replace(inner.URL, "127.0.0.1", "127.0.0.2", 1), http.StatusTemporaryRedirect)
	}))
	defer outer.Close()
	_, err = client(policy(t, "127.0.0.1/32")).Get(outer.URL)
	if refused := new(RefusedError); !errors.As(err, &refused) || refused.Addr != netip.MustParseAddr("127.0.0.2") || redirects != 1 {
		t.Errorf("after %d redirects: %v", redirects, err)
	}
}
