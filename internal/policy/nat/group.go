package nat

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
)

// end is one other end of a permission: a range, or what stands for one.
type end struct {
	text    string
	prefix  netip.Prefix // not valid of a group or a prefix list
	unknown bool         // nobody knows where it is
}

// maxEnds bounds what is drawn from one permission: prefix lists may be long.
const maxEnds = 1000

// outside are the ends of a permission that are not in the network.
func (n *network) outside(p *Permission) (out []end) {
	for _, r := range p.ranges {
		if !n.isInside(r) {
			out = append(out, end{text: r.String(), prefix: r})
		}
	}
	for _, l := range p.PrefixListIDs {
		if len(out) > maxEnds {
			return append(out, end{text: "and more", unknown: true})
		}
		out = append(out, n.listed(l.PrefixListID)...)
	}
	for _, g := range p.UserIDGroupPairs {
		switch {
		case g.VpcPeeringConnectionID != "" || g.PeeringStatus != "" || g.VpcID != "" && g.VpcID != n.id:
			out = append(out, end{text: g.GroupID + " of another network"})
		case !n.groups[g.GroupID]:
			out = append(out, end{text: g.GroupID, unknown: true})
		}
	}
	return out
}

// listed are the ends of a prefix list that are not in the network.
func (n *network) listed(id string) (out []end) {
	l := n.prefixLists[id]
	if l == nil {
		return []end{{text: id, unknown: true}}
	}
	for _, r := range l.ranges {
		if len(out) == maxEnds {
			return append(out, end{text: id, unknown: true})
		}
		if !n.isInside(r) {
			out = append(out, end{text: id + " " + r.String(), prefix: r})
		}
	}
	return out
}

// ports are those of a permission: all where it names none.
func (p *Permission) ports() Ports {
	if p.protocol != tcp && p.protocol != udp || p.FromPort == nil || p.ToPort == nil || *p.FromPort < 0 {
		return Ports{0, 65535}
	}
	return Ports{*p.FromPort, *p.ToPort}
}

func (p *Permission) covers(protocol, port int) bool {
	r := p.ports()
	return (p.protocol == all || p.protocol == protocol) && r.From <= port && port <= r.To
}

func (p *Permission) text(way string, e end) string {
	what := protocolName(p.protocol)
	if p.protocol == tcp || p.protocol == udp {
		what += " " + p.ports().String()
	}
	return way + " " + what + " " + e.text
}

// String writes one port as itself.
func (p Ports) String() string {
	if p.From == p.To {
		return strconv.Itoa(p.From)
	}
	return fmt.Sprintf("%d-%d", p.From, p.To)
}

const unsaid = "export describe-prefix-lists, and all groups of the network, or write ranges"

// judgeGroupOut: without a rule that lets it out a proxy reaches nobody.
func judgeGroupOut(n *network, s *sink) {
	if !n.know(s, "RouteTables", "SecurityGroups") {
		return
	}
	n.knowProxies(s)
	if len(n.proxies) == 0 && !slices.ContainsFunc(n.SecurityGroups, func(g SecurityGroup) bool { return len(n.letsOut(&g)) > 0 }) {
		s.fail(n.id, "", "let the proxies' group out to 0.0.0.0/0 on the ports that they need", "no group lets anything out")
	}
	for i := range n.SecurityGroups {
		g := &n.SecurityGroups[i]
		if !n.proxies[g.GroupID] {
			continue
		}
		out := n.letsOut(g)
		for _, port := range n.Ports {
			if known, there := out[port]; !there {
				s.fail(g.GroupID, fmt.Sprintf("out TCP %d", port), "let the proxies' group out to 0.0.0.0/0 on that port", "no rule lets it out")
			} else if !known {
				s.doubt(g.GroupID, unsaid, "whether TCP %d gets out is not known", port)
			}
		}
	}
}

// letsOut are the ports that a group lets out of the network, and whether that is
// known for certain.
func (n *network) letsOut(g *SecurityGroup) map[int]bool {
	out := map[int]bool{}
	for i := range g.IPPermissionsEgress {
		p := &g.IPPermissionsEgress[i]
		for _, e := range n.outside(p) {
			for _, port := range n.Ports {
				if p.covers(tcp, port) {
					out[port] = out[port] || !e.unknown
				}
			}
		}
	}
	return out
}

func (n *network) knowProxies(s *sink) {
	if len(n.proxies) == 0 {
		s.doubt(n.id, "name it with --proxy, or tag it with "+roleTag+" = "+roleProxy, "which group is the proxies' is not said")
	}
}

// judgeEgressClosed: what need not use the proxy is not held by it.
func judgeEgressClosed(n *network, s *sink) {
	if !n.know(s, "RouteTables", "SecurityGroups") {
		return
	}
	n.knowProxies(s)
	for i := range n.SecurityGroups {
		g := &n.SecurityGroups[i]
		for j := range g.IPPermissionsEgress {
			p := &g.IPPermissionsEgress[j]
			for _, e := range n.outside(p) {
				n.judgeWayOut(s, g, p, e)
			}
		}
	}
}

func (n *network) judgeWayOut(s *sink, g *SecurityGroup, p *Permission, e end) {
	proxy := n.proxies[g.GroupID]
	fits := n.proxyNeeds(p, e)
	switch {
	case proxy && fits && !e.unknown:
	case e.unknown:
		s.doubt(g.GroupID, unsaid, "where %s is, is not known", clip(e.text))
	case len(n.proxies) == 0 && fits:
		// It may be the proxies' own, of which nothing is said.
	case proxy:
		s.fail(g.GroupID, p.text("out", e), "let the proxies out on the ports that they need, and to single resolvers on 53", "the proxies reach more than TCP %s", portList(n.Ports))
	default:
		s.fail(g.GroupID, p.text("out", e), "let it reach the proxies' group alone: what gets out by itself, the proxy does not see", "it reaches out of the network, and is not the proxies'")
	}
}

// proxyNeeds says whether a way out is one that proxies need: their ports over
// TCP, and single resolvers.
func (n *network) proxyNeeds(p *Permission, e end) bool {
	r := p.ports()
	if p.protocol != tcp && p.protocol != udp || r.From > r.To {
		return false
	}
	if r == (Ports{53, 53}) && e.prefix.IsSingleIP() {
		return true
	}
	if p.protocol != tcp || r.To-r.From >= len(n.Ports) {
		return false
	}
	for port := r.From; port <= r.To; port++ {
		if !slices.Contains(n.Ports, port) {
			return false
		}
	}
	return true
}

func portList(ports []int) (out string) {
	for i, p := range ports {
		if i > 0 {
			out += ", "
		}
		out += strconv.Itoa(p)
	}
	return out
}

// judgeIngressClosed: a group that lets nobody in needs no rule that denies, and
// there is none that could.
func judgeIngressClosed(n *network, s *sink) {
	if !n.know(s, "RouteTables", "SecurityGroups") {
		return
	}
	for i := range n.SecurityGroups {
		g := &n.SecurityGroups[i]
		for j := range g.IPPermissions {
			p := &g.IPPermissions[j]
			for _, e := range n.outside(p) {
				if e.unknown {
					s.doubt(g.GroupID, unsaid, "where %s is, is not known", clip(e.text))
					continue
				}
				s.fail(g.GroupID, p.text("in", e), "take the rule away, or narrow it to the network's own range; there are no rules that deny", "it lets in what is not of the network")
			}
		}
	}
}

// opening is a permission of some group that lets something in from outside.
type opening struct {
	*Permission
	ends []end
}

// openings are all of them. Beyond maxOpenings nothing is told apart any more.
func (n *network) openings() (out []opening) {
	for i := range n.SecurityGroups {
		for j := range n.SecurityGroups[i].IPPermissions {
			p := &n.SecurityGroups[i].IPPermissions[j]
			if ends := n.outside(p); len(ends) > 0 {
				out = append(out, opening{p, ends})
			}
		}
	}
	return out
}

const maxOpenings = 50

// admits says whether one of them may let this in.
func admits(openings []opening, from netip.Addr, protocol, port int) bool {
	if len(openings) > maxOpenings {
		return true
	}
	for _, o := range openings {
		if !o.covers(protocol, port) {
			continue
		}
		if len(o.ends) > maxOpenings || slices.ContainsFunc(o.ends, func(e end) bool { return !e.prefix.IsValid() || e.prefix.Contains(from) }) {
			return true
		}
	}
	return false
}
