package nat_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/nat"
)

// FP5, AC4 and AC6 of section 3.2, its rule 110, and the answers over UDP that it
// forgot. The lowest number that fits decides.
func TestLists(t *testing.T) {
	add := func(list string, entries ...object) func(*testing.T, object) {
		return func(t *testing.T, x object) { put(one(t, x, "NetworkAcls", list), "Entries", entries...) }
	}
	without := func(list string, number int, out bool) func(*testing.T, object) {
		return func(t *testing.T, x object) {
			drop(one(t, x, "NetworkAcls", list), "Entries", object{"RuleNumber": float64(number), "Egress": out})
		}
	}
	kind := func(e object, typ, code int) object {
		e["IcmpTypeCode"] = object{"Type": typ, "Code": code}
		return e
	}
	const world = "0.0.0.0/0"
	for _, f := range []failing{
		{"FP5 no rule lets out", without(proxyACL, 110, true), "list_outbound", proxyACL, "32767 out", "TCP 443 does not leave", 0, nat.Options{}},
		{"FP5 no rule at all", func(t *testing.T, x object) { one(t, x, "NetworkAcls", proxyACL)["Entries"] = []any{} }, "list_outbound", proxyACL, "out", "no rule fits", 0, nat.Options{}},
		{"FP5 denied before it is allowed", add(proxyACL, entry(109, true, "deny", "-1", world)), "list_outbound", proxyACL, "109 out", "deny every protocol 0.0.0.0/0", 0, nat.Options{}},
		{"FP5 that port denied before", add(proxyACL, ports(entry(1, true, "deny", "6", world), 443, 443)), "list_outbound", proxyACL, "1 out", "deny TCP 443", 0, nat.Options{}},
		{"FP5 denied in two halves", add(proxyACL, entry(1, true, "deny", "6", "0.0.0.0/1"), entry(2, true, "deny", "6", "128.0.0.0/1")), "list_outbound", proxyACL, "2 out", "does not leave", 0, nat.Options{}},
		{"FP5 before the gateway", without(natACL, 110, true), "list_outbound", natACL, "32767 out", "TCP 443 does not leave", 0, nat.Options{}},
		{"FP5 the gateway hears nobody", without(natACL, 100, false), "list_outbound", natACL, "in", "lets nothing in from the network", 0, nat.Options{}},
		{"denied behind what allows", add(proxyACL, entry(111, true, "deny", "-1", world)), "list_outbound", "", "", "", nat.Passed, nat.Options{}},
		{"denied of UDP", add(proxyACL, entry(1, true, "deny", "17", world)), "list_outbound", "", "", "", nat.Passed, nat.Options{}},
		{"denied to a few", add(proxyACL, entry(1, true, "deny", "-1", "198.51.100.0/24")), "list_outbound", "", "", "", nat.Passed, nat.Options{}},

		{"rule 110 as the document has it", add(proxyACL, ports(entry(109, false, "allow", "6", world), 1024, 65535)), "list_inbound", proxyACL, "109 in", "TCP 1024-32767", 0, nat.Options{}},
		{"AC6 all of it", add(proxyACL, entry(1, false, "allow", "-1", world)), "list_inbound", proxyACL, "1 in", "ICMP, TCP 0-32767, UDP 0-65535, other protocols", 0, nat.Options{}},
		{"AC6 one port", add(proxyACL, ports(entry(1, false, "allow", "6", world), 22, 22)), "list_inbound", proxyACL, "1 in", "TCP 22 ", 0, nat.Options{}},
		{"AC6 from one address", add(proxyACL, ports(entry(1, false, "allow", "6", "198.51.100.7/32"), 22, 22)), "list_inbound", proxyACL, "1 in", "TCP 22 ", 0, nat.Options{}},
		{"AC6 below what was narrowed", func(*testing.T, object) {}, "list_inbound", proxyACL, "110 in", "TCP 32768-39999, TCP 50001-60999", 0, nat.Options{Return: nat.Ports{From: 40000, To: 50000}}},
		{"AC6 over IPv6", add(proxyACL, entry(1, false, "allow", "-1", "::/0")), "list_inbound", proxyACL, "1 in", "ICMPv6, TCP 0-32767", 0, nat.Options{}},
		{"AC6 pings", add(proxyACL, kind(entry(1, false, "allow", "1", world), 8, -1)), "list_inbound", proxyACL, "1 in", "ICMP ", 0, nat.Options{}},
		{"AC6 an odd type", add(proxyACL, kind(entry(1, false, "allow", "1", world), 13, 7)), "list_inbound", proxyACL, "1 in", "ICMP ", 0, nat.Options{}},
		{"AC6 ICMP without a type", add(proxyACL, entry(1, false, "allow", "1", world)), "list_inbound", proxyACL, "1 in", "ICMP ", 0, nat.Options{}},
		{"AC6 another protocol", add(proxyACL, entry(1, false, "allow", "47", world)), "list_inbound", proxyACL, "1 in", "other protocols", 0, nat.Options{}},
		{"AC6 workloads from outside", add(workACL, ports(entry(90, false, "allow", "6", world), 32768, 60999)), "list_inbound", workACL, "90 in", "TCP 32768-60999", 0, nat.Options{}},
		{"AC6 UDP that nobody asked", add(proxyACL, ports(entry(90, false, "allow", "17", world), 32768, 60999)), "list_inbound", proxyACL, "90 in", "UDP 32768-60999", 0, nat.Options{}},
		{"AC6 below the gateway's ports", add(natACL, ports(entry(89, false, "allow", "6", world), 0, 65535)), "list_inbound", natACL, "89 in", "TCP 0-1023", 0, nat.Options{}},
		{"let in behind what denies", add(proxyACL, entry(1, false, "deny", "6", world), ports(entry(2, false, "allow", "6", world), 22, 22)), "return_tcp", proxyACL, "1 in", "deny TCP", 0, nat.Options{}},
		{"too big over IPv6", add(proxyACL, kind(entry(1, false, "allow", "58", "::/0"), 2, 0)), "list_inbound", "", "", "", nat.Passed, nat.Options{}},
		{"let in and denied before", add(proxyACL, ports(entry(1, false, "deny", "6", world), 0, 32767), ports(entry(2, false, "allow", "6", world), 1024, 65535)), "list_inbound", "", "", "", nat.Passed, nat.Options{}},

		{"AC4 no answer comes in", without(proxyACL, 110, false), "return_tcp", proxyACL, "32767 in", "answers to port 32768", 0, nat.Options{}},
		{"AC4 some answers do not", func(t *testing.T, x object) {
			without(proxyACL, 110, false)(t, x)
			add(proxyACL, ports(entry(110, false, "allow", "6", world), 32768, 50000))(t, x)
		}, "return_tcp", proxyACL, "32767 in", "answers to port 50001", 0, nat.Options{}},
		{"AC4 the gateway hears no answer", without(natACL, 110, false), "return_tcp", natACL, "32767 in", "answers to port 1024", 0, nat.Options{}},
		{"AC4 the gateway gives none", without(natACL, 100, true), "return_tcp", natACL, "out", "gives no answer back", 0, nat.Options{}},

		{"UDP asked and not heard", add(proxyACL, ports(entry(90, true, "allow", "17", "192.0.2.53/32"), 53, 53)), "return_udp", proxyACL, "32767 in", "UDP 53 leaves (rule 90 out)", 0, nat.Options{}},
		{"UDP heard from another", add(proxyACL, ports(entry(90, true, "allow", "17", "192.0.2.53/32"), 53, 53), ports(entry(90, false, "allow", "17", "192.0.2.54/32"), 32768, 60999)), "return_udp", proxyACL, "32767 in", "UDP 53 leaves", 0, nat.Options{}},
		{"UDP asked and heard", add(proxyACL, ports(entry(90, true, "allow", "17", "192.0.2.53/32"), 53, 53), ports(entry(90, false, "allow", "17", "192.0.2.53/32"), 32768, 60999)), "return_udp", "", "", "", nat.Passed, nat.Options{}},
		{"UDP heard is no fault", add(proxyACL, ports(entry(90, true, "allow", "17", "192.0.2.53/32"), 53, 53), ports(entry(90, false, "allow", "17", "192.0.2.53/32"), 32768, 60999)), "list_inbound", "", "", "", nat.Passed, nat.Options{}},
	} {
		f.run(t)
	}
	x := export(t)
	drop(x, "NetworkAcls", object{"NetworkAclId": proxyACL})
	for _, name := range []string{"list_outbound", "list_inbound", "return_tcp"} {
		c := check(t, audit(t, x, nat.Options{}), name)
		if c.State != nat.Unknown || !strings.Contains(c.Findings[0].Why, "no network list") {
			t.Errorf("%s without the list: %+v", name, c)
		}
	}
}
