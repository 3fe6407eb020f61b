package nat

import (
	"fmt"
	"net/netip"
	"slices"
)

// excess is what one rule lets in and should not.
type excess struct {
	entry *Entry
	words []string
}

// judgeListIn: rule 110 of the document lets every TCP packet in from anywhere to
// the ports above 1023. A list cannot tell answers from what is none, and so the
// least it can do is to let in only what looks like one, and only where one is
// expected; what it says is the same rule by rule, so that a rule with a lower
// number that denies makes one behind it harmless.
func judgeListIn(n *network, s *sink) {
	if !n.know(s, "RouteTables", "NatGateways", "NetworkAcls") {
		return
	}
	for _, p := range n.paths(s) {
		for _, x := range n.excesses(p) {
			s.fail(p.in.list.NetworkAclID, p.in.ruleName(x.entry), hintOf(n, p.part), "it lets in from outside %s (%s; subnet %s)", listOf(x.words), x.entry.text(), clip(p.subnet))
		}
		if may, _ := n.answers(p.part); p.part != alone {
			s.note("%s: whatever comes from outside to TCP %s looks like an answer to a list, which keeps no connections; the group behind it, or the gateway, drops it", clip(p.in.list.NetworkAclID), may)
		}
	}
}

func hintOf(n *network, p part) string {
	may, _ := n.answers(p)
	if p == alone {
		return "let in the network's own ranges alone: no answer from outside comes to a subnet without a way out"
	}
	return "let in from outside TCP " + may.String() + ", UDP there from single resolvers, and ICMP of type 3, and nothing else"
}

// excesses are the rules that let in too much, by number.
func (n *network) excesses(p path) (out []excess) {
	note := func(e *Entry, words string) {
		i := slices.IndexFunc(out, func(x excess) bool { return x.entry == e })
		if i < 0 {
			i, out = len(out), append(out, excess{entry: e})
		}
		if !slices.Contains(out[i].words, words) {
			out[i].words = append(out[i].words, words)
		}
	}
	for _, v6 := range []bool{false, true} {
		addrs := n.addresses(v6, p.in, p.out)
		for _, proto := range []int{tcp, udp} {
			n.portExcess(p, addrs, proto, note)
		}
		n.kindExcess(p, addrs, v6, note)
		for _, proto := range others(p.in) {
			for _, a := range addrs {
				if ok, e := p.in.judge(packet{addr: a, protocol: proto}); ok {
					note(e, "other protocols")
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b excess) int { return a.entry.RuleNumber - b.entry.RuleNumber })
	return out
}

// portExcess tells, for each rule, the lowest and highest port that it lets in
// and to which no answer comes.
func (n *network) portExcess(p path, addrs []netip.Addr, proto int, note func(*Entry, string)) {
	may, _ := n.answers(p.part)
	edges := portEdges(proto, []Ports{may}, p.in)
	found := map[*Entry][]Ports{}
	for _, a := range addrs {
		ask, _ := p.out.judge(packet{addr: a, protocol: proto, port: 53})
		for i, port := range edges {
			answer := may.From <= port && port <= may.To && (proto == tcp || ask)
			if answer {
				continue
			}
			ok, e := p.in.judge(packet{addr: a, protocol: proto, port: port})
			if !ok {
				continue
			}
			to := 65535
			if i+1 < len(edges) {
				to = edges[i+1] - 1
			}
			found[e] = append(found[e], Ports{port, to})
		}
	}
	for e, ranges := range found {
		for _, r := range merged(ranges) {
			note(e, fmt.Sprintf("%s %s", protocolName(proto), r))
		}
	}
}

// merged are ranges without those that touch or lie in each other.
func merged(r []Ports) (out []Ports) {
	slices.SortFunc(r, func(a, b Ports) int { return a.From - b.From })
	for _, p := range r {
		if k := len(out) - 1; k >= 0 && p.From <= out[k].To+1 {
			out[k].To = max(out[k].To, p.To)
			continue
		}
		out = append(out, p)
	}
	return out
}

// kindExcess tells which rules let in ICMP that is no word about one's own
// packets: beyond "unreachable", and of IPv6 "too big" and "time exceeded".
func (n *network) kindExcess(p path, addrs []netip.Addr, v6 bool, note func(*Entry, string)) {
	proto, may := icmp, []int{3}
	if v6 {
		proto, may = icmpv6, []int{1, 2, 3}
	}
	for _, k := range kinds(proto, p.in) {
		if p.part != alone && slices.Contains(may, k.kind) {
			continue
		}
		for _, a := range addrs {
			k.addr = a
			if ok, e := p.in.judge(k); ok {
				note(e, protocolName(proto))
			}
		}
	}
	// The other family's number means nothing there, and is another protocol.
	for _, k := range kinds(icmp+icmpv6-proto, p.in) {
		for _, a := range addrs {
			k.addr = a
			if ok, e := p.in.judge(k); ok {
				note(e, "other protocols")
			}
		}
	}
}

func listOf(words []string) (out string) {
	slices.Sort(words)
	for i, w := range words {
		switch {
		case i == 4:
			return out + " and more"
		case i > 0:
			out += ", "
		}
		out += w
	}
	return out
}
