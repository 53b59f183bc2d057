package outbound

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Policy says which addresses are allowed for connections. The zero Policy allows global addresses. A Policy with networks allows
// only these.
type Policy struct {
	networks []netip.Prefix
	any      bool
}

// Any allows every address.
func Any() Policy { return Policy{any: true} }

// UnmarshalText reads networks such as 10.0.0.0/8, separated by commas. The word any instead allows every address, and an empty text
// the global ones.
func (p *Policy) UnmarshalText(text []byte) error {
	read := Policy{}
	for piece := range strings.SplitSeq(string(text), ",") {
		switch piece = strings.TrimSpace(piece); piece {
		case "":
		case "any":
			read.any = true
		default:
			network, err := netip.ParsePrefix(piece)
			if err != nil {
				return fmt.Errorf("%q is not a network: use one such as 10.0.0.0/8 or fd00::/8, several separated by commas, or any", piece)
			}
			if network.Addr().Is4In6() {
				return fmt.Errorf("%q is an IPv4 network in IPv6 notation: use IPv4 notation", piece)
			}
			read.networks = append(read.networks, network)
		}
	}
	*p = read
	return nil
}

// Allows reports whether a may be connected to.
func (p Policy) Allows(a netip.Addr) bool {
	a = a.WithZone("") // a prefix contains no address with a zone
	switch {
	case p.any:
		return true
	case len(p.networks) > 0:
		return within(p.networks, a.Unmap())
	}
	return global(a)
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// The registries of special-purpose addresses (RFC 6890 and its updates) list the addresses that are not globally reachable, and the
// few within them that are.
var (
	special = prefixes(
		"0.0.0.0/8",       // this network
		"10.0.0.0/8",      // private
		"100.64.0.0/10",   // shared by the customers of a carrier
		"127.0.0.0/8",     // loopback
		"169.254.0.0/16",  // link local; clouds answer questions about the machine there
		"172.16.0.0/12",   // private
		"192.0.0.0/24",    // protocol assignments
		"192.0.2.0/24",    // documentation
		"192.168.0.0/16",  // private
		"198.18.0.0/15",   // benchmarks
		"198.51.100.0/24", // documentation
		"203.0.113.0/24",  // documentation
		"224.0.0.0/4",     // multicast
		"240.0.0.0/4",     // reserved, and broadcast

		"::/96",         // unspecified, loopback, and IPv4 addresses as they were once written
		"::ffff:0:0/96", // mapped IPv4
		"64:ff9b:1::/48",
		"100::/64", // discarded
		"100:0:0:1::/64",
		"2001::/23",     // protocol assignments
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4: carries any IPv4 address
		"3fff::/20",     // documentation
		"5f00::/16",     // segment routing
		"fc00::/7",      // unique local
		"fe80::/10",     // link local
		"fec0::/10",     // site local, of old
		"ff00::/8",      // multicast
	)
	reachable = prefixes(
		"192.0.0.9/32", "192.0.0.10/32",
		"2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:3::/32", "2001:4:112::/48", "2001:20::/28", "2001:30::/28",
	)
	// translated addresses end in the IPv4 address that a gateway connects to (RFC 6052).
	translated = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// global reports whether a is reachable from everywhere.
func global(a netip.Addr) bool {
	if !a.IsValid() {
		return false
	}
	if translated.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	return !within(special, a) || within(reachable, a)
}
