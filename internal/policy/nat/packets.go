package nat

import (
	"net/netip"
	"slices"
)

// part is what a subnet is for, as its route table says.
type part int

const (
	alone part = iota // no way out, and so no answers from outside
	behind
	home // of the NAT gateway itself
)

// path is a subnet and the list that stands before it.
type path struct {
	subnet  string
	part    part
	in, out *way
}

// answers are the ports to which answers may come, and must.
func (n *network) answers(p part) (may, must Ports) {
	switch p {
	case home:
		return Ports{1024, 65535}, Ports{1024, 65535}
	case behind:
		if n.Return == (Ports{32768, 60999}) {
			return Ports{32768, 65535}, n.Return
		}
		return n.Return, n.Return
	}
	return Ports{1, 0}, Ports{1, 0}
}

// paths are the subnets with their lists, one for each list and part.
func (n *network) paths(s *sink) (out []path) {
	type pair struct {
		list *NetworkAcl
		part part
	}
	seen := map[pair]bool{}
	for _, sub := range n.subnets {
		l, t := n.lists[sub], n.tableOf[sub]
		switch {
		case l == nil:
			s.doubt(sub, "export the network lists of the whole network", "no network list of the export is this subnet's")
			continue
		case t == nil:
			s.doubt(sub, "export the main route table, too", "no table of the export is this subnet's")
			continue
		}
		p := path{subnet: sub, in: l.way(false), out: l.way(true)}
		switch {
		case t.home:
			p.part = home
		case t.out && !t.workload:
			p.part = behind
		}
		if !seen[pair{l, p.part}] {
			seen[pair{l, p.part}] = true
			out = append(out, p)
		}
	}
	if len(n.subnets) == 0 {
		s.doubt(n.id, "export the network lists of the whole network", "the export names no subnet")
	}
	return out
}

// judgeListOut: what a list stops on the way out does not leave.
func judgeListOut(n *network, s *sink) {
	if !n.know(s, "RouteTables", "NatGateways", "NetworkAcls") {
		return
	}
	ways := 0
	for _, p := range n.paths(s) {
		if p.part == alone {
			continue
		}
		ways++
		for _, port := range n.Ports {
			n.judgeOut(s, p, port)
		}
		if p.part == home && !n.any(p.in, n.insides(p.in), tcp, n.Ports[0]) {
			s.fail(p.in.list.NetworkAclID, "in", "let TCP in from the proxies' subnet, on the ports that they reach outside", "the list of the gateway's subnet lets nothing in from the network")
		}
	}
	if ways == 0 && !s.unknown {
		s.fail(n.id, "", "mend the routes first", "no subnet has a way out")
	}
}

// judgeOut wants some address outside to be reached, and tells what is not.
func (n *network) judgeOut(s *sink, p path, port int) {
	var denied []*Entry
	reached := false
	for _, a := range n.addresses(false, p.out) {
		ok, e := p.out.judge(packet{addr: a, protocol: tcp, port: port})
		reached = reached || ok
		if !ok && !slices.Contains(denied, e) {
			denied = append(denied, e)
		}
	}
	id := p.out.list.NetworkAclID
	for _, e := range denied {
		if !reached {
			s.fail(id, p.out.ruleName(e), "allow TCP to 0.0.0.0/0 on that port, with a lower number than what denies it", "TCP %d does not leave: %s", port, e.text())
		} else if e != nil {
			s.note("%s rule %s: TCP %d does not leave everywhere: %s", clip(id), p.out.ruleName(e), port, e.text())
		}
	}
}

// any says whether a way lets through one of the addresses on that port.
func (n *network) any(w *way, addrs []netip.Addr, protocol, port int) bool {
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool {
		ok, _ := w.judge(packet{addr: a, protocol: protocol, port: port})
		return ok
	})
}

// insides are addresses of the network, one of each region.
func (n *network) insides(w *way) (out []netip.Addr) {
	for _, p := range n.inside {
		out = append(out, p.Addr())
		for _, e := range w.rules {
			if p.Contains(e.prefix.Addr()) {
				out = append(out, e.prefix.Addr())
			}
			if next := last(e.prefix).Next(); next.IsValid() && p.Contains(next) {
				out = append(out, next)
			}
		}
	}
	return slices.DeleteFunc(out, func(a netip.Addr) bool { return !a.Is4() })
}

// judgeReturnTCP: a list knows no connections, and must let answers in as what
// they look like.
func judgeReturnTCP(n *network, s *sink) {
	if !n.know(s, "RouteTables", "NatGateways", "NetworkAcls") {
		return
	}
	for _, p := range n.paths(s) {
		if p.part == alone {
			continue
		}
		n.judgeAnswers(s, p)
		if _, must := n.answers(behind); p.part == home && !n.any(p.out, n.insides(p.out), tcp, must.From) {
			s.fail(p.out.list.NetworkAclID, "out", "let TCP out to the proxies' subnet, on the ports that answers come to", "the list of the gateway's subnet gives no answer back to the network")
		}
	}
}

// judgeAnswers wants some address outside that can be asked to be heard on every
// port that an answer comes to.
func (n *network) judgeAnswers(s *sink, p path) {
	_, must := n.answers(p.part)
	edges := within(portEdges(tcp, []Ports{must}, p.in), must)
	var why *Entry
	bad, asked := 0, false
	for _, a := range n.addresses(false, p.in, p.out) {
		if ok, _ := p.out.judge(packet{addr: a, protocol: tcp, port: n.Ports[0]}); !ok {
			continue
		}
		heard := true
		for _, port := range edges {
			if ok, e := p.in.judge(packet{addr: a, protocol: tcp, port: port}); !ok {
				if !asked {
					why, bad = e, port
				}
				heard = false
				break
			}
		}
		if heard {
			return
		}
		asked = true
	}
	if asked {
		s.fail(p.in.list.NetworkAclID, p.in.ruleName(why), "allow TCP in from 0.0.0.0/0 to "+must.String()+", with a lower number than what denies it", "answers to port %d do not come in: %s", bad, why.text())
	}
}

// judgeReturnUDP: the document's lists let UDP out everywhere, and its answers in
// from nowhere.
func judgeReturnUDP(n *network, s *sink) {
	if !n.know(s, "RouteTables", "NatGateways", "NetworkAcls") {
		return
	}
	asks := false
	for _, p := range n.paths(s) {
		if p.part == alone {
			continue
		}
		_, must := n.answers(p.part)
		edges := within(portEdges(udp, []Ports{must}, p.in), must)
		seen := map[*Entry]bool{}
		for _, a := range n.addresses(false, p.in, p.out) {
			ok, out := p.out.judge(packet{addr: a, protocol: udp, port: 53})
			if !ok {
				continue
			}
			asks = true
			for _, port := range edges {
				if ok, e := p.in.judge(packet{addr: a, protocol: udp, port: port}); !ok && !seen[e] {
					seen[e] = true
					s.fail(p.in.list.NetworkAclID, p.in.ruleName(e), "let resolvers be asked by address, and let UDP in from them to "+must.String()+"; the network's own resolver needs no rule",
						"UDP 53 leaves (rule %s), and an answer to port %d does not come in: %s", p.out.ruleName(out), port, e.text())
				}
			}
		}
	}
	if !asks && !s.unknown {
		s.note("no list lets UDP 53 out; the network's own resolver is asked beside lists and groups")
	}
}
