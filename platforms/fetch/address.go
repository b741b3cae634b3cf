package fetch

import (
	"net/netip"
)

// refused are the ranges that are no place of the public internet, beside those that netip names itself.
var refused = prefixes(
	"0.0.0.0/8",         // this network
	"100.64.0.0/10",     // shared address space (CGNAT); the metadata service of Alibaba is in it
	"168.63.129.16/32",  // the host agent and metadata service of Azure, in a public range
	"192.0.0.0/24",      // IETF protocol assignments; the metadata service of Oracle is in it
	"192.0.2.0/24",      // documentation
	"192.88.99.0/24",    // 6to4 relays
	"198.18.0.0/15",     // benchmarks
	"198.51.100.0/24",   // documentation
	"203.0.113.0/24",    // documentation
	"240.0.0.0/4",       // reserved, broadcast
	"2001::/23",         // IETF protocol assignments, Teredo
	"2001:db8::/32",     // documentation
	"3fff::/20",         // documentation
	"64:ff9b:1::/48",    // NAT64 for local use
	"2620:4f:8000::/48", // AS112 sinks
)

// global6 is all that is assigned of IPv6 to the public internet.
var global6 = netip.MustParsePrefix("2000::/3")

// Ranges of IPv6 whose addresses stand for an IPv4 address, with the byte at which it begins.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Public reports whether an address is one of the public internet: a place that a stranger may name.
func Public(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsValid() || ip.Zone() != "" || !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, c := range carriers {
		if c.prefix.Contains(ip) {
			b := ip.As16()
			return Public(netip.AddrFrom4([4]byte(b[c.at : c.at+4])))
		}
	}
	for _, p := range refused {
		if p.Contains(ip) {
			return false
		}
	}
	return ip.Is4() || global6.Contains(ip)
}
