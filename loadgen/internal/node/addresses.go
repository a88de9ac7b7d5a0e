package node

import (
	"encoding/binary"
	"net/netip"
)

// podNetworkBase and hostNetwork are the first addresses of the pod network and of the node network. No traffic is
// routed to these networks.
const (
	podNetworkBase = 10<<24 | 128<<16 // 10.128.0.0/10
	podNetworkBits = 22               // number of host bits of the pod network
	hostNetwork    = 10<<24 | 192<<16 // 10.192.0.0/10
)

func (p *plan) podCIDR(i int) netip.Prefix {
	return netip.PrefixFrom(address(podNetworkBase+uint32(i)<<p.podBits), 32-p.podBits)
}

func hostIP(i int) netip.Addr { return address(hostNetwork + uint32(i) + 1) }

func address(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

// addresses assigns the pod addresses of one node. It cycles through the range, so that a freed address is reused as
// late as possible: an EndpointSlice may still list the address.
type addresses struct {
	prefix netip.Prefix
	used   []uint64 // bitmap of the addresses in use
	next   uint32
}

func (a *addresses) size() uint32 { return 1 << (32 - a.prefix.Bits()) }

func (a *addresses) base() uint32 {
	b := a.prefix.Addr().As4()
	return binary.BigEndian.Uint32(b[:])
}

// take returns a free address, or false when all are in use.
func (a *addresses) take() (netip.Addr, bool) {
	for range a.size() {
		i := a.next % a.size()
		a.next = i + 1
		if a.claim(i) {
			return address(a.base() + i), true
		}
	}
	return netip.Addr{}, false
}

func (a *addresses) adopt(ip netip.Addr) bool {
	return a.prefix.Contains(ip) && a.claim(a.index(ip))
}

func (a *addresses) claim(i uint32) bool {
	if a.used == nil {
		a.used = make([]uint64, (a.size()+63)/64)
	}
	if a.used[i/64]&(1<<(i%64)) != 0 {
		return false
	}
	a.used[i/64] |= 1 << (i % 64)
	return true
}

func (a *addresses) release(ip netip.Addr) {
	if a.used != nil && a.prefix.Contains(ip) {
		i := a.index(ip)
		a.used[i/64] &^= 1 << (i % 64)
	}
}

func (a *addresses) index(ip netip.Addr) uint32 {
	b := ip.As4()
	return binary.BigEndian.Uint32(b[:]) - a.base()
}
