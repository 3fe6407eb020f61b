package nat_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/nat"
)

// mended is what the command line of AWS printed of the network that
// deploy/aws-nat makes, with documentation's ids and addresses.
const mended = "testdata/mended.json"

// object is a part of an export that a test changes.
type object = map[string]any

// export reads the recorded one to be changed.
func export(t *testing.T) object {
	t.Helper()
	b, err := os.ReadFile(mended)
	if err != nil {
		t.Fatal(err)
	}
	var x object
	if err := json.Unmarshal(b, &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// one is the member's object that has an id.
func one(t *testing.T, x object, member, id string) object {
	t.Helper()
	for _, o := range x[member].([]any) {
		for _, v := range o.(object) {
			if v == id {
				return o.(object)
			}
		}
	}
	t.Fatalf("%s has no %s", member, id)
	return nil
}

func put(o object, member string, more ...object) {
	list, _ := o[member].([]any)
	for _, m := range more {
		list = append(list, m)
	}
	o[member] = list
}

// drop takes out of a list what has these members.
func drop(o object, member string, like object) {
	o[member] = slices.DeleteFunc(o[member].([]any), func(e any) bool {
		for k, v := range like {
			if e.(object)[k] != v {
				return false
			}
		}
		return true
	})
}

func read(t *testing.T, x object) *nat.Export {
	t.Helper()
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	e, err := nat.Read(nat.Part{Name: "export.json", Data: b})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func audit(t *testing.T, x object, o nat.Options) *nat.Report {
	t.Helper()
	r, err := nat.Audit(read(t, x), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func check(t *testing.T, r *nat.Report, name string) nat.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %s", name)
	return nat.Check{}
}

// says wants a check's findings to have one with these words in it, and a hint.
func says(t *testing.T, c nat.Check, state nat.State, resource, rule, why string) {
	t.Helper()
	if c.State != state {
		t.Errorf("%s is %v: %+v", c.Name, c.State, c.Findings)
	}
	for _, f := range c.Findings {
		if f.Hint == "" {
			t.Errorf("%s: no hint: %+v", c.Name, f)
		}
		if f.State == state && f.Resource == resource && f.Rule == rule && strings.Contains(f.Why, why) {
			return
		}
	}
	t.Errorf("%s does not say %q of %s %q: %+v", c.Name, why, resource, rule, c.Findings)
}

const (
	vpc      = "vpc-0a1b2c3d4e5f60004"
	gateway  = "nat-0a1b2c3d4e5f60001"
	eip      = "eipalloc-0a1b2c3d4e5f60001"
	gateENI  = "eni-0a1b2c3d4e5f60001"
	proxyENI = "eni-0a1b2c3d4e5f60002"
	mainRTB  = "rtb-0a1b2c3d4e5f60000"
	natRTB   = "rtb-0a1b2c3d4e5f60001"
	proxyRTB = "rtb-0a1b2c3d4e5f60002"
	workRTB  = "rtb-0a1b2c3d4e5f60003"
	natACL   = "acl-0a1b2c3d4e5f60001"
	proxyACL = "acl-0a1b2c3d4e5f60002"
	workACL  = "acl-0a1b2c3d4e5f60003"
	proxySG  = "sg-0a1b2c3d4e5f60002"
	workSG   = "sg-0a1b2c3d4e5f60003"
	workNet  = "subnet-0a1b2c3d4e5f60003"
)

func TestTheMendedNetworkPasses(t *testing.T) {
	r := audit(t, export(t), nat.Options{})
	if r.State != nat.Passed || r.Network != vpc || len(r.Checks) != 12 {
		t.Fatalf("%s is %v with %d checks: %+v", r.Network, r.State, len(r.Checks), r.Checks)
	}
	for _, c := range r.Checks {
		if c.State != nat.Passed || len(c.Findings) != 0 || c.Must == "" || c.Spec == "" {
			t.Errorf("%+v", c)
		}
	}
}

// What an export lacks is not known, and what is not known does not pass.
func TestWhatIsMissingIsUnknown(t *testing.T) {
	for member, checks := range map[string][]string{
		"RouteTables":    {"gateway", "address", "address_static", "route", "group_egress", "egress_closed", "ingress_closed", "list_outbound", "list_inbound", "return_tcp", "return_udp", "no_inbound"},
		"NatGateways":    {"gateway", "address", "address_static", "route", "list_outbound", "list_inbound", "return_tcp", "return_udp", "no_inbound"},
		"Addresses":      {"address", "address_static"},
		"SecurityGroups": {"group_egress", "egress_closed", "ingress_closed", "no_inbound"},
		"NetworkAcls":    {"route", "list_outbound", "list_inbound", "return_tcp", "return_udp"},
		"FlowLogs":       {"no_inbound"},
		"events":         {"no_inbound"},
	} {
		for _, null := range []bool{false, true} {
			x := export(t)
			delete(x, member)
			if null {
				x[member] = nil
			}
			r := audit(t, x, nat.Options{})
			if r.State != nat.Unknown {
				t.Errorf("without %s: %v", member, r.State)
			}
			for _, c := range r.Checks {
				want := nat.Passed
				if slices.Contains(checks, c.Name) {
					want = nat.Unknown
				}
				if c.State != want {
					t.Errorf("without %s: %s is %v: %+v", member, c.Name, c.State, c.Findings)
				}
				if want == nat.Unknown && !slices.ContainsFunc(c.Findings, func(f nat.Finding) bool {
					return strings.Contains(f.Why, "has no "+member) && strings.Contains(f.Hint, "`aws ")
				}) {
					t.Errorf("without %s: %s does not say so: %+v", member, c.Name, c.Findings)
				}
			}
		}
	}
	if r := audit(t, object{}, nat.Options{}); r.State != nat.Unknown {
		t.Errorf("nothing at all: %v", r.State)
	}
	for _, member := range []string{"RouteTables", "NatGateways", "SecurityGroups", "NetworkAcls", "FlowLogs", "events"} {
		x := export(t)
		x[member] = []any{}
		if r := audit(t, x, nat.Options{Network: vpc}); r.State == nat.Passed {
			t.Errorf("with no %s it passes", member)
		}
	}
}

// TestTheDocumentsOwnNetworkIsRefused: section 3.2 as it is written, on which
// findings.md 3.8 item 13 says what is wrong.
func TestTheDocumentsOwnNetworkIsRefused(t *testing.T) {
	x := export(t)
	out := func(g object) {
		g["IpPermissionsEgress"] = []any{object{"IpProtocol": "-1", "IpRanges": []any{object{"CidrIp": "0.0.0.0/0"}}}}
	}
	out(one(t, x, "SecurityGroups", workSG))
	out(one(t, x, "SecurityGroups", proxySG))
	one(t, x, "RouteTables", workRTB)["Tags"] = []any{}
	put(one(t, x, "RouteTables", workRTB), "Routes", object{"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": gateway, "Origin": "CreateRoute", "State": "active"})
	for _, id := range []string{proxyACL, workACL} {
		one(t, x, "NetworkAcls", id)["Entries"] = []any{
			entry(100, false, "allow", "-1", "10.0.0.0/16"),
			ports(entry(110, false, "allow", "6", "0.0.0.0/0"), 1024, 65535),
			entry(120, false, "deny", "-1", "0.0.0.0/0"),
			entry(100, true, "allow", "-1", "0.0.0.0/0"),
		}
	}
	r := audit(t, x, nat.Options{})
	says(t, check(t, r, "list_inbound"), nat.Failed, workACL, "110 in", "TCP 1024-32767")
	says(t, check(t, r, "list_inbound"), nat.Failed, proxyACL, "110 in", "TCP 1024-32767")
	says(t, check(t, r, "return_udp"), nat.Failed, workACL, "120 in", "an answer to port 32768 does not come in")
	says(t, check(t, r, "egress_closed"), nat.Failed, workSG, "out every protocol 0.0.0.0/0", "it reaches out of the network")
	says(t, check(t, r, "egress_closed"), nat.Failed, proxySG, "out every protocol 0.0.0.0/0", "more than TCP 443")
	for _, name := range []string{"gateway", "address", "route", "group_egress", "ingress_closed", "list_outbound", "return_tcp"} {
		if c := check(t, r, name); c.State != nat.Passed {
			t.Errorf("%s: %+v", name, c.Findings)
		}
	}
}

func entry(number int, out bool, action, protocol, cidr string) object {
	o := object{"RuleNumber": number, "Egress": out, "RuleAction": action, "Protocol": protocol}
	if strings.Contains(cidr, ":") {
		o["Ipv6CidrBlock"] = cidr
	} else {
		o["CidrBlock"] = cidr
	}
	return o
}

func ports(e object, from, to int) object {
	e["PortRange"] = object{"From": from, "To": to}
	return e
}

// kindOf is the kind of an error that must have a hint.
func kindOf(t *testing.T, err error) holdfast.Kind {
	t.Helper()
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Hint == "" || e.Why == "" {
		t.Fatalf("%v is no letter", err)
	}
	return e.Kind
}

func TestOptionsThatAreNone(t *testing.T) {
	x := read(t, export(t))
	for _, bad := range []nat.Options{
		{Ports: []int{0}}, {Ports: []int{65536}}, {Return: nat.Ports{From: 1, To: 65535}}, {Return: nat.Ports{From: 40000, To: 30000}},
		{Return: nat.Ports{From: 40000, To: 70000}}, {Network: "vpc-0"}, {Proxies: []string{"sg-0"}},
	} {
		_, err := nat.Audit(x, bad)
		if kindOf(t, err) == "" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Of several networks one is named, and nothing of another counts.
func TestOneNetworkOfSeveral(t *testing.T) {
	x := export(t)
	put(x, "SecurityGroups", object{"GroupId": "sg-other", "VpcId": "vpc-other", "IpPermissions": []any{}, "IpPermissionsEgress": []any{
		object{"IpProtocol": "-1", "IpRanges": []any{object{"CidrIp": "0.0.0.0/0"}}}}})
	_, err := nat.Audit(read(t, x), nat.Options{})
	if kindOf(t, err) != holdfast.KindValue || !strings.Contains(err.(*holdfast.Error).Hint, vpc) {
		t.Errorf("two networks: %v", err)
	}
	if r := audit(t, x, nat.Options{Network: vpc}); r.State != nat.Passed {
		t.Errorf("%+v", r)
	}
	if r := audit(t, x, nat.Options{Network: "vpc-other"}); r.State == nat.Passed || r.Network != "vpc-other" {
		t.Errorf("%+v", r)
	}
}
