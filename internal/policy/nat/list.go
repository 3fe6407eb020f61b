package nat

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
)

// packet is what a network list looks at. Of ICMP kind and code stand for its
// type and code, and the port is not looked at; of other protocols neither is.
type packet struct {
	addr       netip.Addr // the other end
	protocol   int
	port       int // of the destination
	kind, code int
}

// way is the rules of a network list in one direction, by number.
type way struct {
	list  *NetworkAcl
	name  string // in or out
	rules []*Entry
}

func (l *NetworkAcl) way(out bool) *way {
	w := &way{list: l, name: "in"}
	if out {
		w.name = "out"
	}
	for i := range l.Entries {
		if l.Entries[i].Egress == out {
			w.rules = append(w.rules, &l.Entries[i])
		}
	}
	slices.SortFunc(w.rules, func(a, b *Entry) int { return cmp.Compare(a.RuleNumber, b.RuleNumber) })
	return w
}

// judge returns whether a packet passes, and the rule that decided: the one with
// the lowest number that fits it. Where none fits it is nil, and the packet does
// not pass.
func (w *way) judge(p packet) (bool, *Entry) {
	for _, e := range w.rules {
		if e.fits(p) {
			return e.RuleAction == "allow", e
		}
	}
	return false, nil
}

func (e *Entry) fits(p packet) bool {
	if !e.prefix.Contains(p.addr) {
		return false
	}
	if e.protocol == all {
		return true
	}
	if e.protocol != p.protocol {
		return false
	}
	switch p.protocol {
	case tcp, udp:
		return e.PortRange == nil || e.PortRange.From <= p.port && p.port <= e.PortRange.To
	case icmp, icmpv6:
		t := e.IcmpTypeCode
		return t == nil || (t.Type == all || t.Type == p.kind) && (t.Code == all || t.Code == p.code)
	}
	return true
}

// name is how a rule is told: its number and direction.
func (w *way) ruleName(e *Entry) string {
	if e == nil {
		return w.name
	}
	return strconv.Itoa(e.RuleNumber) + " " + w.name
}

func (e *Entry) text() string {
	if e == nil {
		return "no rule fits, and so it is denied"
	}
	what := protocolName(e.protocol)
	if (e.protocol == tcp || e.protocol == udp) && e.PortRange != nil {
		what += " " + Ports{e.PortRange.From, e.PortRange.To}.String()
	}
	return fmt.Sprintf("%s %s %s", e.RuleAction, what, e.prefix)
}

// The tables below are cut into regions in which every packet is judged alike, so
// that one of each stands for all: a rule begins or ends nowhere else.

// addresses are one address of each region outside of the network, of one family.
func (n *network) addresses(v6 bool, ways ...*way) []netip.Addr {
	zero := netip.IPv4Unspecified()
	if v6 {
		zero = netip.IPv6Unspecified()
	}
	edges := []netip.Addr{zero}
	edge := func(p netip.Prefix) {
		if p.Addr().Is6() == v6 {
			edges = append(edges, p.Addr())
			if next := last(p).Next(); next.IsValid() {
				edges = append(edges, next)
			}
		}
	}
	for _, w := range ways {
		for _, e := range w.rules {
			edge(e.prefix)
		}
	}
	for _, p := range n.inside {
		edge(p)
	}
	edge(netip.MustParsePrefix("169.254.0.0/16"))
	edge(netip.MustParsePrefix("fe80::/10"))
	slices.SortFunc(edges, netip.Addr.Compare)
	return slices.DeleteFunc(slices.Compact(edges), n.isInsideAddr)
}

// last is the last address of a range.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// portEdges are one port of each region, and the edges of ranges besides.
func portEdges(protocol int, ranges []Ports, ways ...*way) []int {
	edges := []int{0}
	add := func(r Ports) {
		edges = append(edges, r.From)
		if r.To < 65535 {
			edges = append(edges, r.To+1)
		}
	}
	for _, r := range ranges {
		add(r)
	}
	for _, w := range ways {
		for _, e := range w.rules {
			if e.PortRange != nil && (e.protocol == protocol || e.protocol == all) {
				add(Ports{e.PortRange.From, e.PortRange.To})
			}
		}
	}
	slices.Sort(edges)
	return slices.Compact(edges)
}

// within are the edges that lie in a range; its beginning is one of them.
func within(edges []int, r Ports) []int {
	return slices.DeleteFunc(slices.Clone(edges), func(p int) bool { return p < r.From || p > r.To })
}

// kinds are one packet of each region of ICMP, without an address.
func kinds(protocol int, w *way) (out []packet) {
	types, codes := []int{}, []int{}
	for _, e := range w.rules {
		if t := e.IcmpTypeCode; t != nil && e.protocol == protocol {
			types, codes = append(types, t.Type), append(codes, t.Code)
		}
	}
	types, codes = append(types, 0, 1, 2, 3, 4, 8, 128), append(codes, 0, 4)
	for _, list := range []*[]int{&types, &codes} {
		free := 0
		for slices.Contains(*list, free) {
			free++
		}
		*list = append(*list, free)
		slices.Sort(*list)
		*list = slices.DeleteFunc(slices.Compact(*list), func(n int) bool { return n < 0 || n > 255 })
	}
	for _, t := range types {
		for _, c := range codes {
			out = append(out, packet{protocol: protocol, kind: t, code: c})
		}
	}
	return out
}

// others are one protocol of each region beside those with ports and ICMP.
func others(w *way) []int {
	out := []int{}
	for _, e := range w.rules {
		if !slices.Contains([]int{all, tcp, udp, icmp, icmpv6}, e.protocol) {
			out = append(out, e.protocol)
		}
	}
	free := 0
	for slices.Contains(out, free) || slices.Contains([]int{tcp, udp, icmp, icmpv6}, free) {
		free++
	}
	return slices.Compact(slices.Sorted(slices.Values(append(out, free))))
}
