package nat

import (
	"fmt"
	"net/netip"
	"slices"
)

// talk is what an interface of the network and an address outside said to each
// other: one flow in each direction.
type talk struct {
	eni             string
	protocol        int
	in, out         netip.Addr
	inPort, outPort int
}

// said is what flow logs have of a talk, of what was accepted.
type said struct{ in, out half }

// half is one way of a talk.
type half struct {
	seen  bool
	start int64 // of the first packet
	begun bool  // a SYN without an ACK went so
}

// add takes an accepted flow.
func (h *half) add(r record) {
	if !h.seen || r.start < h.start {
		h.start = r.start
	}
	h.seen, h.begun = true, h.begun || r.protocol == tcp && r.flags&0x12 == 0x02
}

// judgeAccepted: what was let in from outside must answer something that went out
// before it at the same interface. A group lets in only answers where no rule of
// it lets in more; a list, and with it a log, cannot tell.
func judgeAccepted(n *network, s *sink) {
	if !n.know(s, "RouteTables", "NatGateways", "SecurityGroups", "FlowLogs", "events") {
		return
	}
	n.judgeLogs(s)
	f, err := n.format()
	if err != nil {
		s.doubt(n.id, "let all flow logs of the network have one format, which has the fields of the default one", "the lines of flow logs cannot be read: %v", err)
		return
	}
	talks, skipped := n.listen(s, f)
	keys := make([]talk, 0, len(talks))
	for k, v := range talks {
		if v.in.seen {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, order)
	gates, openings := n.gates(), n.openings()
	for _, k := range keys {
		admitted := !gates[k.eni] && admits(openings, k.out, k.protocol, k.inPort)
		n.judgeTalk(s, k, talks[k], gates[k.eni], skipped[k.eni], admitted)
	}
}

// judgeLogs wants everything of the network recorded.
func (n *network) judgeLogs(s *sink) {
	covered := map[string]bool{}
	for _, l := range n.FlowLogs {
		if l.FlowLogStatus == "ACTIVE" && l.DeliverLogsStatus != "FAILED" && (l.TrafficType == "ALL" || l.TrafficType == "ACCEPT") {
			covered[l.ResourceID] = true
		}
	}
	if covered[n.id] {
		return
	}
	if len(n.subnets) == 0 {
		s.doubt(n.id, "make a flow log of the whole network, of all traffic", "no flow log records it, or delivers what it records")
	}
	for _, sub := range n.subnets {
		if !covered[sub] {
			s.doubt(sub, "make a flow log of the whole network, of all traffic", "no flow log records it, or delivers what it records")
		}
	}
}

// listen puts the lines together, and says at which interfaces some are missing.
func (n *network) listen(s *sink, f *format) (map[talk]said, map[string]bool) {
	talks, skipped := map[talk]said{}, map[string]bool{}
	bad, strange, read := 0, 0, 0
	for _, line := range n.lines {
		if isHeader(line) {
			other, err := formatOf(line)
			if err != nil {
				s.doubt(n.id, "export lines with the fields of the default format", "the lines of flow logs cannot be read: %v", err)
				return nil, nil
			}
			f = other
			continue
		}
		r, ok := f.parse(line)
		switch {
		case !ok:
			bad++
			continue
		case r.status == "SKIPDATA":
			skipped[r.eni] = true
		case r.status == "NODATA", r.action == "REJECT":
		default:
			if !n.hear(talks, r) {
				strange++
			}
		}
		read++
	}
	if read == 0 {
		s.doubt(n.id, "export the events of a day or more", "there is no line of a flow log that can be read, so that nothing is known of what was let in")
	}
	if bad > 0 {
		s.doubt(n.id, "export the flow logs again, and change nothing in them", "%d lines of flow logs cannot be read", bad)
	}
	if strange > 0 {
		s.doubt(n.id, "keep the flow logs of one network in a log group of its own", "%d accepted flows have no end in this network", strange)
	}
	s.note("%d lines of flow logs were read", read)
	return talks, skipped
}

// hear adds an accepted flow. It returns false where neither end is of the
// network; what stays inside is nothing to look at.
func (n *network) hear(talks map[talk]said, r record) bool {
	from, to := n.isInsideAddr(r.src), n.isInsideAddr(r.dst)
	if from == to {
		return from
	}
	k := talk{r.eni, r.protocol, r.src, r.dst, r.srcPort, r.dstPort}
	if to {
		k = talk{r.eni, r.protocol, r.dst, r.src, r.dstPort, r.srcPort}
	}
	v := talks[k]
	if to {
		v.in.add(r)
	} else {
		v.out.add(r)
	}
	talks[k] = v
	return true
}

// gates are the interfaces of NAT gateways.
func (n *network) gates() map[string]bool {
	out := map[string]bool{}
	for _, g := range n.NatGateways {
		for _, a := range g.NatGatewayAddresses {
			if a.NetworkInterfaceID != "" {
				out[a.NetworkInterfaceID] = true
			}
		}
	}
	return out
}

const (
	whyIn  = "find the rule that let it in: the group of this interface, then the list of its subnet"
	moreIn = "add ${tcp-flags} to the format of the flow log, or export a longer time of it"
)

// judgeTalk judges what came in at one interface.
func (n *network) judgeTalk(s *sink, k talk, v said, gate, skipped, admitted bool) {
	low := 32768
	if gate {
		low = 1024
	}
	client := k.inPort >= low && (k.outPort < 32768 || gate)
	tell := func(state State, hint, why string) {
		s.add(Finding{State: state, Resource: k.eni, Rule: "in " + protocolName(k.protocol), Hint: hint,
			Why: fmt.Sprintf("%s from %s port %d to %s port %d", why, k.out, k.outPort, k.in, k.inPort)})
	}
	fail := func(why string) { tell(Failed, whyIn, why) }
	doubt := func(why string) { tell(Unknown, moreIn, why) }
	switch {
	case gate && !v.out.seen && n.noise(k):
		// The list must let it in, the log says so, and the gateway drops it.
		n.dropped(s)
	case v.in.begun:
		fail("a connection that began outside was accepted,")
	case !v.out.seen && k.protocol == icmp && !admitted, !v.out.seen && k.protocol == icmpv6 && !admitted:
		// A word about the network's own packets: no group lets in more.
	case !v.out.seen && skipped:
		doubt("something was accepted, and of its interface lines are missing,")
	case !v.out.seen:
		fail("something was accepted that nothing inside had asked for,")
	case v.out.begun || v.out.start < v.in.start:
	case v.out.start == v.in.start && client && !admitted:
	case client:
		doubt("nobody knows who began what was accepted")
	default:
		fail("something was accepted before anything went out,")
	}
}

// noise says whether something that came to a gateway is what its list must let
// in, as answers look so.
func (n *network) noise(k talk) bool {
	may, _ := n.answers(home)
	switch k.protocol {
	case tcp, udp:
		return may.From <= k.inPort && k.inPort <= may.To
	}
	return k.protocol == icmp
}

func (n *network) dropped(s *sink) {
	const words = "some of what came to the NAT gateway's own interface answers nothing: its list, and so the log, accepts what looks like an answer, and the gateway drops it"
	if !slices.Contains(s.check.Notes, words) {
		s.note(words)
	}
}

func order(a, b talk) int {
	if c := a.out.Compare(b.out); c != 0 {
		return c
	}
	if c := a.in.Compare(b.in); c != 0 {
		return c
	}
	for _, p := range [][2]int{{a.inPort, b.inPort}, {a.outPort, b.outPort}, {a.protocol, b.protocol}} {
		if p[0] != p[1] {
			return p[0] - p[1]
		}
	}
	switch {
	case a.eni < b.eni:
		return -1
	case a.eni > b.eni:
		return 1
	}
	return 0
}
