package fetch

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPublic(t *testing.T) {
	for ip, want := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "8.8.8.8": true, "172.32.0.1": true, "100.128.0.1": true, "11.0.0.1": true,
		"2606:4700:4700::1111": true, "2a00:1450:4001:81c::200e": true, "64:ff9b::808:808": true, "2002:808:808::1": true, "::ffff:8.8.8.8": true,

		"127.0.0.1": false, "127.255.255.254": false, "0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "172.16.0.1": false,
		"172.31.255.255": false, "192.168.1.1": false, "169.254.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"100.100.100.200": false, "100.127.255.255": false, "168.63.129.16": false, "192.0.0.192": false, "192.0.2.1": false, "198.18.0.1": false,
		"198.19.255.255": false, "198.51.100.7": false, "203.0.113.9": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false,
		"255.255.255.255": false, "192.88.99.1": false,
		"::": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false,
		"fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::808:808": false, "2002:7f00:1::": false, "2002:a00:1::1": false,
		"2001::1": false, "2001:db8::1": false, "100::1": false, "3fff::1": false, "4000::1": false,
	} {
		require.Equal(t, want, Public(netip.MustParseAddr(ip)), ip)
	}
	require.False(t, Public(netip.Addr{}))
}

// No form of an IPv4 address inside an IPv6 one is a way around its own rule.
func FuzzPublic_CarriedIPv4(f *testing.F) {
	f.Add(uint32(0x7f000001))
	f.Add(uint32(0x08080808))
	f.Add(uint32(0xa9fea9fe))
	f.Fuzz(func(t *testing.T, n uint32) {
		b := [4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
		want := Public(netip.AddrFrom4(b))
		mapped := netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: b[0], 13: b[1], 14: b[2], 15: b[3]})
		nat := netip.AddrFrom16([16]byte{0: 0, 1: 0x64, 2: 0xff, 3: 0x9b, 12: b[0], 13: b[1], 14: b[2], 15: b[3]})
		six := netip.AddrFrom16([16]byte{0: 0x20, 1: 0x02, 2: b[0], 3: b[1], 4: b[2], 5: b[3]})
		for _, ip := range []netip.Addr{mapped, nat, six} {
			if Public(ip) && !want {
				t.Fatalf("%s is public, %v is not", ip, b)
			}
		}
	})
}
