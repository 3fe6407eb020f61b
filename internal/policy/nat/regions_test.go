package nat

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestRegionsMissNothing holds the excesses, which look at one packet of each
// region, against packets drawn at random: none gets through a list that the
// excesses do not tell, by the rule that lets it through; and what they tell,
// they have seen.
func TestRegionsMissNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	prefixes := []string{"0.0.0.0/0", "10.0.0.0/16", "10.0.0.0/8", "10.0.1.0/24", "0.0.0.0/1", "128.0.0.0/1", "198.51.100.0/24", "198.51.100.7/32", "255.255.255.255/32", "::/0", "2001:db8::/32"}
	edges := []int{0, 22, 53, 443, 1023, 1024, 32767, 32768, 60999, 61000, 65535}
	n := &network{Export: &Export{}, Options: Options{Ports: []int{443}, Return: Ports{32768, 60999}}, inside: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}}
	through := 0
	for range 400 {
		l := &NetworkAcl{}
		for i := range 1 + rng.IntN(8) {
			e := Entry{RuleNumber: i + 1, Egress: rng.IntN(4) == 0, RuleAction: []string{"allow", "deny"}[rng.IntN(2)], protocol: []int{all, tcp, udp, icmp, icmpv6, 47}[rng.IntN(6)], prefix: netip.MustParsePrefix(prefixes[rng.IntN(len(prefixes))])}
			if a, b := edges[rng.IntN(len(edges))], edges[rng.IntN(len(edges))]; e.protocol == tcp || e.protocol == udp {
				e.PortRange = &struct{ From, To int }{min(a, b), max(a, b)}
			}
			if (e.protocol == icmp || e.protocol == icmpv6) && rng.IntN(2) == 0 {
				e.IcmpTypeCode = &struct{ Type, Code int }{rng.IntN(10) - 1, rng.IntN(3) - 1}
			}
			l.Entries = append(l.Entries, e)
		}
		p := path{part: part(rng.IntN(3)), in: l.way(false), out: l.way(true)}
		told := n.excesses(p)
		for range 300 {
			k := drawn(rng, prefixes, edges)
			if n.isInsideAddr(k.addr) {
				continue
			}
			ok, e := p.in.judge(k)
			if !ok || n.mayCome(p, k) {
				continue
			}
			through++
			if !slices.ContainsFunc(told, func(x excess) bool { return x.entry == e }) {
				t.Fatalf("%+v gets through by %s, and nothing is told of it: %+v", k, e.text(), told)
			}
		}
		for _, x := range told {
			if x.entry == nil || x.entry.RuleAction != "allow" || x.entry.Egress || len(x.words) == 0 {
				t.Fatalf("told of %+v", x)
			}
		}
	}
	if through < 1000 {
		t.Errorf("only %d packets got through", through)
	}
}

func drawn(rng *rand.Rand, prefixes []string, edges []int) packet {
	p := netip.MustParsePrefix(prefixes[rng.IntN(len(prefixes))])
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= byte(rng.IntN(2)) << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	port := edges[rng.IntN(len(edges))]
	if rng.IntN(2) == 0 {
		port = rng.IntN(65536)
	}
	return packet{addr: a, protocol: []int{tcp, udp, icmp, icmpv6, 47, 50}[rng.IntN(6)], port: port, kind: rng.IntN(12), code: rng.IntN(4)}
}

// mayCome is what a list may let in, said once more and in another way.
func (n *network) mayCome(p path, k packet) bool {
	low := map[part]int{home: 1024, behind: 32768, alone: 1 << 20}[p.part]
	switch {
	case p.part == alone:
		return false
	case k.protocol == tcp:
		return k.port >= low
	case k.protocol == udp:
		ask, _ := p.out.judge(packet{addr: k.addr, protocol: udp, port: 53})
		return k.port >= low && ask
	case k.protocol == icmp && k.addr.Is4():
		return k.kind == 3
	case k.protocol == icmpv6 && k.addr.Is6():
		return k.kind >= 1 && k.kind <= 3
	}
	return false
}

func TestLastOfARange(t *testing.T) {
	for from, to := range map[string]string{"10.0.0.0/8": "10.255.255.255", "0.0.0.0/0": "255.255.255.255", "192.0.2.7/32": "192.0.2.7", "10.0.0.128/25": "10.0.0.255", "2001:db8::/33": "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff"} {
		if got := last(netip.MustParsePrefix(from)).String(); got != to {
			t.Errorf("the last of %s is %s", from, got)
		}
	}
}

// Every command that is named is one of EC2's or of CloudWatch Logs'.
func TestCommandsAreKnown(t *testing.T) {
	for _, m := range []string{"RouteTables", "NatGateways", "Addresses", "SecurityGroups", "NetworkAcls", "FlowLogs", "PrefixLists", "events"} {
		if c := command(m); !strings.HasPrefix(c, "aws ec2 describe-") && c != "aws logs filter-log-events" {
			t.Errorf("%s is printed by %q", m, c)
		}
	}
}
