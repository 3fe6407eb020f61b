package nat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/nat"
)

// failing is one change to the mended network, and what is said of it.
type failing struct {
	name                       string
	change                     func(t *testing.T, x object)
	check, resource, rule, why string
	state                      nat.State
	options                    nat.Options
}

func (f failing) run(t *testing.T) {
	t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
		x := export(t)
		f.change(t, x)
		r := audit(t, x, f.options)
		state := f.state
		if state == nat.Unknown {
			state = nat.Failed
		}
		if f.state == nat.Passed {
			if c := check(t, r, f.check); c.State != nat.Passed {
				t.Errorf("%+v", c)
			}
			return
		}
		says(t, check(t, r, f.check), state, f.resource, f.rule, f.why)
		if r.State != nat.Failed {
			t.Errorf("the whole is %v", r.State)
		}
	})
}

func gate(t *testing.T, x object) object { return one(t, x, "NatGateways", gateway) }
func addressOf(g object) object          { return g["NatGatewayAddresses"].([]any)[0].(object) }

// FP1 and FP2 of section 3.2, and its criterion of a static address.
func TestGatewayAndAddress(t *testing.T) {
	for _, f := range []failing{
		{"FP1 deleting", func(t *testing.T, x object) { gate(t, x)["State"] = "deleting" }, "gateway", gateway, "", "it is deleting", 0, nat.Options{}},
		{"FP1 failed with its reason", func(t *testing.T, x object) {
			gate(t, x)["State"], gate(t, x)["FailureMessage"] = "failed", "Network has no Internet gateway attached"
		}, "gateway", gateway, "", "no Internet gateway attached", 0, nat.Options{}},
		{"FP1 no state", func(t *testing.T, x object) { delete(gate(t, x), "State") }, "gateway", gateway, "", "it is ", 0, nat.Options{}},
		{"FP1 not there", func(t *testing.T, x object) { drop(x, "NatGateways", object{"NatGatewayId": gateway}) }, "gateway", gateway, "", "it is not there", 0, nat.Options{}},
		{"FP1 private", func(t *testing.T, x object) { gate(t, x)["ConnectivityType"] = "private" }, "gateway", gateway, "", "leads to no internet", 0, nat.Options{}},
		{"FP1 not routed to", func(t *testing.T, x object) {
			drop(one(t, x, "RouteTables", proxyRTB), "Routes", object{"NatGatewayId": gateway})
		}, "gateway", vpc, "", "no route names a NAT gateway", 0, nat.Options{}},
		{"FP2 not associated", func(t *testing.T, x object) {
			a := one(t, x, "Addresses", eip)
			delete(a, "AssociationId")
			delete(a, "NetworkInterfaceId")
		}, "address", eip, "", "not associated", 0, nat.Options{}},
		{"FP2 associated elsewhere", func(t *testing.T, x object) { one(t, x, "Addresses", eip)["NetworkInterfaceId"] = "eni-0" }, "address", eip, "", "not associated", 0, nat.Options{}},
		{"FP2 released", func(t *testing.T, x object) { x["Addresses"] = []any{} }, "address", eip, "", "no such address", 0, nat.Options{}},
		{"FP2 another one", func(t *testing.T, x object) { one(t, x, "Addresses", eip)["PublicIp"] = "203.0.113.46" }, "address", eip, "", "it is 203.0.113.46", 0, nat.Options{}},
		{"FP2 association failed", func(t *testing.T, x object) { addressOf(gate(t, x))["Status"] = "failed" }, "address", gateway, eip, "is failed", 0, nat.Options{}},
		{"FP2 none", func(t *testing.T, x object) { gate(t, x)["NatGatewayAddresses"] = []any{} }, "address", gateway, "", "no address", 0, nat.Options{}},
		{"FP2 no allocation", func(t *testing.T, x object) { delete(addressOf(gate(t, x)), "AllocationId") }, "address", gateway, "203.0.113.45", "no allocation", 0, nat.Options{}},
		{"AC2 chosen by a service", func(t *testing.T, x object) { one(t, x, "Addresses", eip)["ServiceManaged"] = "rnat" }, "address_static", eip, "", "managed by a service", 0, nat.Options{}},
		{"AC2 not the account's", func(t *testing.T, x object) { x["Addresses"] = []any{} }, "address_static", gateway, eip, "keeps no such address", 0, nat.Options{}},
	} {
		f.run(t)
	}
	x := export(t)
	gate(t, x)["AvailabilityMode"] = "regional"
	if c := check(t, audit(t, x, nat.Options{}), "address_static"); c.State != nat.Unknown {
		t.Errorf("a regional gateway: %+v", c)
	}
}

// FP3 of section 3.2.
func TestRoutes(t *testing.T) {
	swap := func(dest, key, target string) func(*testing.T, object) {
		return func(t *testing.T, x object) {
			rt := one(t, x, "RouteTables", proxyRTB)
			drop(rt, "Routes", object{"DestinationCidrBlock": dest})
			put(rt, "Routes", object{"DestinationCidrBlock": dest, key: target, "Origin": "CreateRoute", "State": "active"})
		}
	}
	more := func(table string, route object) func(*testing.T, object) {
		return func(t *testing.T, x object) {
			route["Origin"], route["State"] = "CreateRoute", "active"
			put(one(t, x, "RouteTables", table), "Routes", route)
		}
	}
	const all, beside = "0.0.0.0/0", "beside the NAT gateway"
	for _, f := range []failing{
		{"FP3 missing", func(t *testing.T, x object) {
			drop(one(t, x, "RouteTables", proxyRTB), "Routes", object{"DestinationCidrBlock": all})
		}, "route", proxyRTB, all, "no route to the NAT gateway", 0, nat.Options{}},
		{"FP3 internet gateway", swap(all, "GatewayId", "igw-0a1b2c3d4e5f60004"), "route", proxyRTB, all, beside, 0, nat.Options{}},
		{"FP3 instance", func(t *testing.T, x object) {
			rt := one(t, x, "RouteTables", proxyRTB)
			drop(rt, "Routes", object{"DestinationCidrBlock": all})
			put(rt, "Routes", object{"DestinationCidrBlock": all, "InstanceId": "i-0", "InstanceOwnerId": "123456789012", "NetworkInterfaceId": "eni-0", "State": "active"})
		}, "route", proxyRTB, all, "it leads to i-0", 0, nat.Options{}},
		{"FP3 transit gateway", swap(all, "TransitGatewayId", "tgw-0"), "route", proxyRTB, all, beside, 0, nat.Options{}},
		{"FP3 black hole", func(t *testing.T, x object) {
			swap(all, "NatGatewayId", gateway)(t, x)
			one(t, x, "RouteTables", proxyRTB)["Routes"].([]any)[1].(object)["State"] = "blackhole"
		}, "route", proxyRTB, all, "is blackhole", 0, nat.Options{}},
		{"FP3 half of it elsewhere", more(proxyRTB, object{"DestinationCidrBlock": "128.0.0.0/1", "GatewayId": "igw-0"}), "route", proxyRTB, "128.0.0.0/1", beside, 0, nat.Options{}},
		{"FP3 two halves", func(t *testing.T, x object) {
			rt := one(t, x, "RouteTables", proxyRTB)
			drop(rt, "Routes", object{"DestinationCidrBlock": all})
			for _, half := range []string{"0.0.0.0/1", "128.0.0.0/1"} {
				put(rt, "Routes", object{"DestinationCidrBlock": half, "NatGatewayId": gateway, "State": "active"})
			}
		}, "route", proxyRTB, all, "no route to the NAT gateway", 0, nat.Options{}},
		{"FP3 peering", more(proxyRTB, object{"DestinationCidrBlock": "10.9.0.0/16", "VpcPeeringConnectionId": "pcx-0"}), "route", proxyRTB, "10.9.0.0/16", beside, 0, nat.Options{}},
		{"FP3 IPv6 by an egress-only gateway", more(proxyRTB, object{"DestinationIpv6CidrBlock": "::/0", "EgressOnlyInternetGatewayId": "eigw-0"}), "route", proxyRTB, "::/0", beside, 0, nat.Options{}},
		{"FP3 IPv6 by the internet gateway", more(proxyRTB, object{"DestinationIpv6CidrBlock": "::/0", "GatewayId": "igw-0"}), "route", proxyRTB, "::/0", beside, 0, nat.Options{}},
		{"FP3 prefix list to an endpoint", more(proxyRTB, object{"DestinationPrefixListId": "pl-6ea54007", "GatewayId": "vpce-0"}), "route", proxyRTB, "pl-6ea54007", beside, 0, nat.Options{}},
		{"FP3 workload has a way out", more(workRTB, object{"DestinationCidrBlock": all, "NatGatewayId": gateway}), "route", workRTB, all, "workloads have a route out", 0, nat.Options{}},
		{"FP3 workload has an endpoint", more(workRTB, object{"DestinationPrefixListId": "pl-6ea54007", "GatewayId": "vpce-0"}), "route", workRTB, "pl-6ea54007", "workloads have a route out", 0, nat.Options{}},
		{"FP3 workload without its tag", func(t *testing.T, x object) { one(t, x, "RouteTables", workRTB)["Tags"] = []any{} }, "route", workRTB, all, "no route to the NAT gateway", 0, nat.Options{}},
		{"FP3 gateway's subnet without internet", func(t *testing.T, x object) {
			drop(one(t, x, "RouteTables", natRTB), "Routes", object{"DestinationCidrBlock": all})
		}, "route", natRTB, all, "no route to the internet", 0, nat.Options{}},
		{"FP3 gateway's subnet to itself", func(t *testing.T, x object) {
			rt := one(t, x, "RouteTables", natRTB)
			drop(rt, "Routes", object{"DestinationCidrBlock": all})
			put(rt, "Routes", object{"DestinationCidrBlock": all, "NatGatewayId": gateway, "State": "active"})
		}, "route", natRTB, all, "leads to " + gateway, 0, nat.Options{}},
		{"FP3 a machine beside the gateway", func(t *testing.T, x object) {
			put(one(t, x, "RouteTables", natRTB), "Associations", object{"Main": false, "SubnetId": "subnet-new", "AssociationState": object{"State": "associated"}})
		}, "route", natRTB, all, beside, 0, nat.Options{}},
		{"FP3 main table for a new subnet", func(t *testing.T, x object) {
			put(one(t, x, "NetworkAcls", proxyACL), "Associations", object{"SubnetId": "subnet-new", "NetworkAclId": proxyACL})
		}, "route", mainRTB, all, "no route to the NAT gateway", 0, nat.Options{}},
		{"FP3 association under way", func(t *testing.T, x object) {
			one(t, x, "RouteTables", proxyRTB)["Associations"].([]any)[0].(object)["AssociationState"] = object{"State": "disassociated"}
		}, "route", mainRTB, all, "no route to the NAT gateway", 0, nat.Options{}},
		{"to a machine inside", more(proxyRTB, object{"DestinationCidrBlock": "10.0.2.0/24", "NetworkInterfaceId": "eni-0"}), "route", "", "", "", nat.Passed, nat.Options{}},
		{"NAT64 by the gateway", more(proxyRTB, object{"DestinationIpv6CidrBlock": "64:ff9b::/96", "NatGatewayId": gateway}), "route", "", "", "", nat.Passed, nat.Options{}},
	} {
		f.run(t)
	}
	x := export(t)
	more(proxyRTB, object{"DestinationPrefixListId": "pl-1", "NatGatewayId": gateway})(t, x)
	if c := check(t, audit(t, x, nat.Options{}), "route"); c.State != nat.Unknown {
		t.Errorf("a prefix list to the gateway: %+v", c)
	}
	x = export(t)
	drop(x, "RouteTables", object{"RouteTableId": mainRTB})
	put(one(t, x, "NetworkAcls", proxyACL), "Associations", object{"SubnetId": "subnet-new", "NetworkAclId": proxyACL})
	if c := check(t, audit(t, x, nat.Options{}), "route"); c.State != nat.Unknown {
		t.Errorf("a subnet without a table: %+v", c)
	}
}

func permission(proto string, from, to int, ends ...string) object {
	p := object{"IpProtocol": proto, "IpRanges": []any{}, "Ipv6Ranges": []any{}, "PrefixListIds": []any{}, "UserIdGroupPairs": []any{}}
	if from >= 0 {
		p["FromPort"], p["ToPort"] = from, to
	}
	for _, e := range ends {
		switch {
		case strings.HasPrefix(e, "pl-"):
			put(p, "PrefixListIds", object{"PrefixListId": e})
		case strings.HasPrefix(e, "sg-"):
			put(p, "UserIdGroupPairs", object{"GroupId": e, "UserId": "123456789012"})
		case strings.Contains(e, ":"):
			put(p, "Ipv6Ranges", object{"CidrIpv6": e})
		default:
			put(p, "IpRanges", object{"CidrIp": e})
		}
	}
	return p
}

// FP4 and AC5 of section 3.2, and its open egress.
func TestGroups(t *testing.T) {
	add := func(group, way string, p object) func(*testing.T, object) {
		return func(t *testing.T, x object) { put(one(t, x, "SecurityGroups", group), way, p) }
	}
	none := func(group string) func(*testing.T, object) {
		return func(t *testing.T, x object) { one(t, x, "SecurityGroups", group)["IpPermissionsEgress"] = []any{} }
	}
	const in, out, world = "IpPermissions", "IpPermissionsEgress", "0.0.0.0/0"
	for _, f := range []failing{
		{"FP4 no rule out", none(proxySG), "group_egress", proxySG, "out TCP 443", "no rule lets it out", 0, nat.Options{}},
		{"FP4 only to workloads", func(t *testing.T, x object) {
			none(proxySG)(t, x)
			add(proxySG, out, permission("-1", -1, -1, "10.0.0.0/16", workSG))(t, x)
		}, "group_egress", proxySG, "out TCP 443", "no rule lets it out", 0, nat.Options{}},
		{"FP4 over UDP alone", func(t *testing.T, x object) {
			none(proxySG)(t, x)
			add(proxySG, out, permission("udp", 443, 443, world))(t, x)
		}, "group_egress", proxySG, "out TCP 443", "no rule lets it out", 0, nat.Options{}},
		{"FP4 another port that is needed", func(*testing.T, object) {}, "group_egress", proxySG, "out TCP 8443", "no rule lets it out", 0, nat.Options{Ports: []int{443, 8443}}},
		{"FP4 no group at all", func(t *testing.T, x object) {
			none(proxySG)(t, x)
			one(t, x, "SecurityGroups", proxySG)["Tags"] = []any{}
		}, "group_egress", vpc, "", "no group lets anything out", 0, nat.Options{}},
		{"open egress of workloads", add(workSG, out, permission("-1", -1, -1, world)), "egress_closed", workSG, "out every protocol " + world, "reaches out", 0, nat.Options{}},
		{"open egress over IPv6", add(workSG, out, permission("tcp", 443, 443, "::/0")), "egress_closed", workSG, "out TCP 443 ::/0", "reaches out", 0, nat.Options{}},
		{"open egress half of the world", add(workSG, out, permission("tcp", 443, 443, "128.0.0.0/1")), "egress_closed", workSG, "out TCP 443 128.0.0.0/1", "reaches out", 0, nat.Options{}},
		{"open egress beyond the network", add(workSG, out, permission("tcp", 443, 443, "10.0.0.0/8")), "egress_closed", workSG, "out TCP 443 10.0.0.0/8", "reaches out", 0, nat.Options{}},
		{"open egress to a listed service", func(t *testing.T, x object) {
			add(workSG, out, permission("tcp", 443, 443, "pl-6ea54007"))(t, x)
			x["PrefixLists"] = []any{object{"PrefixListId": "pl-6ea54007", "PrefixListName": "com.amazonaws.eu-central-1.s3", "Cidrs": []any{"198.51.100.0/24"}}}
		}, "egress_closed", workSG, "out TCP 443 pl-6ea54007 198.51.100.0/24", "reaches out", 0, nat.Options{}},
		{"open egress to a peered group", func(t *testing.T, x object) {
			p := permission("tcp", 443, 443, "sg-peer")
			p["UserIdGroupPairs"].([]any)[0].(object)["VpcPeeringConnectionId"] = "pcx-0"
			add(workSG, out, p)(t, x)
		}, "egress_closed", workSG, "out TCP 443 sg-peer of another network", "reaches out", 0, nat.Options{}},
		{"the proxy reaches every port", add(proxySG, out, permission("tcp", 0, 65535, world)), "egress_closed", proxySG, "out TCP 0-65535 " + world, "more than TCP 443", 0, nat.Options{}},
		{"the proxy asks every resolver", add(proxySG, out, permission("udp", 53, 53, world)), "egress_closed", proxySG, "out UDP 53 " + world, "more than TCP 443", 0, nat.Options{}},
		{"the proxy pings", add(proxySG, out, permission("icmp", 8, -1, world)), "egress_closed", proxySG, "out ICMP " + world, "more than TCP 443", 0, nat.Options{}},
		{"the proxy asks one resolver", add(proxySG, out, permission("udp", 53, 53, "192.0.2.53/32")), "egress_closed", "", "", "", nat.Passed, nat.Options{}},
		{"the proxy reaches what it needs", add(proxySG, out, permission("tcp", 8443, 8443, world)), "egress_closed", "", "", "", nat.Passed, nat.Options{Ports: []int{443, 8443}}},
		{"workloads reach each other and the link", add(workSG, out, permission("-1", -1, -1, workSG, "10.0.2.0/24", "169.254.169.253/32")), "egress_closed", "", "", "", nat.Passed, nat.Options{}},
		{"AC5 open to the world", add(proxySG, in, permission("tcp", 22, 22, world)), "ingress_closed", proxySG, "in TCP 22 " + world, "lets in", 0, nat.Options{}},
		{"AC5 open over IPv6", add(workSG, in, permission("tcp", 443, 443, "::/0")), "ingress_closed", workSG, "in TCP 443 ::/0", "lets in", 0, nat.Options{}},
		{"AC5 open to one address", add(workSG, in, permission("-1", -1, -1, "198.51.100.7/32")), "ingress_closed", workSG, "in every protocol 198.51.100.7/32", "lets in", 0, nat.Options{}},
		{"AC5 pings", add(workSG, in, permission("icmp", -1, -1, world)), "ingress_closed", workSG, "in ICMP " + world, "lets in", 0, nat.Options{}},
		{"AC5 protocol by number", add(workSG, in, permission("50", -1, -1, world)), "ingress_closed", workSG, "in protocol 50 " + world, "lets in", 0, nat.Options{}},
		{"AC5 group of the same network", add(workSG, in, permission("tcp", 443, 443, proxySG)), "ingress_closed", "", "", "", nat.Passed, nat.Options{}},
	} {
		f.run(t)
	}
	for name, change := range map[string]func(*testing.T, object){
		"a prefix list that is not in the export": add(workSG, out, permission("tcp", 443, 443, "pl-6ea54007")),
		"a group that is not in the export":       add(workSG, out, permission("tcp", 443, 443, "sg-elsewhere")),
		"no group is the proxies'":                func(t *testing.T, x object) { one(t, x, "SecurityGroups", proxySG)["Tags"] = []any{} },
	} {
		x := export(t)
		change(t, x)
		if c := check(t, audit(t, x, nat.Options{}), "egress_closed"); c.State != nat.Unknown || c.Findings[0].Hint == "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	x := export(t)
	one(t, x, "SecurityGroups", proxySG)["Tags"] = []any{}
	if r := audit(t, x, nat.Options{Proxies: []string{proxySG}}); r.State != nat.Passed {
		t.Errorf("the proxies' group by its id: %+v", r.Checks)
	}
}

// Findings beyond the bound are counted, and what is quoted is clipped.
func TestFindingsAreBounded(t *testing.T) {
	x := export(t)
	g := one(t, x, "SecurityGroups", workSG)
	g["GroupId"] = strings.Repeat("s", 5000)
	for i := range 60 {
		put(g, "IpPermissions", permission("tcp", i, i, "0.0.0.0/0"))
	}
	c := check(t, audit(t, x, nat.Options{}), "ingress_closed")
	if len(c.Findings) != nat.MaxFindings || c.More != 10 || c.State != nat.Failed {
		t.Errorf("%d findings and %d more", len(c.Findings), c.More)
	}
	for _, f := range c.Findings {
		if n := len(fmt.Sprint(f)); n > 500 {
			t.Errorf("a finding of %d bytes", n)
		}
	}
}
