package nat_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/nat"
)

// copied is a resource of an export once more.
func copied(t *testing.T, o object) (out object) {
	t.Helper()
	if err := json.Unmarshal(encode(t, o), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// before puts a resource in front of all others of its member.
func before(x object, member string, o object) { x[member] = append([]any{o}, x[member].([]any)...) }

// An export that says a thing twice, or less than the command line prints, is no
// export: what it leaves out is not judged as if it were not there.
func TestExportsThatSayLessOrMore(t *testing.T) {
	world := object{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-0", "State": "active"}
	without := func(member, id, name string) func(*testing.T, object) {
		return func(t *testing.T, x object) { delete(one(t, x, member, id), name) }
	}
	twice := func(member, id string, change func(object)) func(*testing.T, object) {
		return func(t *testing.T, x object) {
			again := copied(t, one(t, x, member, id))
			change(again)
			before(x, member, again)
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, object)
		says   string
	}{
		"a table twice":    {twice("RouteTables", proxyRTB, func(o object) { o["Routes"] = []any{world} }), "stands there twice"},
		"a gateway twice":  {twice("NatGateways", gateway, func(o object) { o["State"] = "failed" }), "stands there twice"},
		"an address twice": {twice("Addresses", eip, func(o object) { o["ServiceManaged"] = "rnat" }), "stands there twice"},
		"a list twice":     {twice("NetworkAcls", proxyACL, func(o object) { o["Entries"] = []any{} }), "stands there twice"},
		"a group twice":    {twice("SecurityGroups", workSG, func(object) {}), "stands there twice"},
		"a subnet of two tables": {twice("RouteTables", proxyRTB, func(o object) {
			o["RouteTableId"], o["Routes"] = "rtb-other", []any{world}
		}), "both rtb-other and"},
		"a subnet of two lists":     {twice("NetworkAcls", proxyACL, func(o object) { o["NetworkAclId"], o["Entries"] = "acl-other", []any{} }), "both acl-other and"},
		"two main tables":           {twice("RouteTables", mainRTB, func(o object) { o["RouteTableId"] = "rtb-other" }), "both rtb-other and"},
		"a table of nobody's":       {without("RouteTables", proxyRTB, "VpcId"), "no VpcId"},
		"a group of nobody's":       {without("SecurityGroups", workSG, "VpcId"), "no VpcId"},
		"a list of nobody's":        {without("NetworkAcls", proxyACL, "VpcId"), "no VpcId"},
		"a gateway of nobody's":     {without("NatGateways", gateway, "VpcId"), "no VpcId"},
		"a table without a name":    {without("RouteTables", proxyRTB, "RouteTableId"), "no RouteTableId"},
		"a table without routes":    {without("RouteTables", proxyRTB, "Routes"), "no Routes"},
		"a table without subnets":   {without("RouteTables", proxyRTB, "Associations"), "no Associations"},
		"a list without rules":      {without("NetworkAcls", proxyACL, "Entries"), "no Entries"},
		"a list without subnets":    {without("NetworkAcls", proxyACL, "Associations"), "no Associations"},
		"a group without rules in":  {without("SecurityGroups", workSG, "IpPermissions"), "no IpPermissions"},
		"a group without rules out": {without("SecurityGroups", workSG, "IpPermissionsEgress"), "no IpPermissionsEgress"},
		"a permission that names nobody": {func(t *testing.T, x object) {
			put(one(t, x, "SecurityGroups", workSG), "IpPermissions", object{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22})
		}, "names nobody"},
	} {
		x := export(t)
		c.change(t, x)
		_, err := nat.Read(nat.Part{Name: "x", Data: encode(t, x)})
		if err == nil || kindOf(t, err) != holdfast.KindValue || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What stands there in other letters is judged, and so is what only a peering says.
func TestWordsInOtherLetters(t *testing.T) {
	for _, f := range []failing{
		{"ranges in small letters", func(t *testing.T, x object) {
			p := permission("tcp", 22, 22)
			delete(p, "IpRanges")
			p["ipRanges"] = []any{object{"cidrIp": "0.0.0.0/0"}}
			put(one(t, x, "SecurityGroups", workSG), "IpPermissions", p)
		}, "ingress_closed", workSG, "in TCP 22 0.0.0.0/0", "lets in", 0, nat.Options{}},
		{"a list in small letters", func(t *testing.T, x object) {
			g := one(t, x, "SecurityGroups", workSG)
			delete(g, "IpPermissions")
			g["ipPermissions"] = []any{permission("tcp", 22, 22, "0.0.0.0/0")}
		}, "ingress_closed", workSG, "in TCP 22 0.0.0.0/0", "lets in", 0, nat.Options{}},
		{"a group of a peering", func(t *testing.T, x object) {
			p := permission("tcp", 22, 22, proxySG)
			p["UserIdGroupPairs"].([]any)[0].(object)["PeeringStatus"] = "active"
			put(one(t, x, "SecurityGroups", workSG), "IpPermissions", p)
		}, "ingress_closed", workSG, "in TCP 22 " + proxySG + " of another network", "lets in", 0, nat.Options{}},
		{"FP1 private in capitals", func(t *testing.T, x object) { gate(t, x)["ConnectivityType"] = "Private" }, "gateway", gateway, "", "leads to no internet", 0, nat.Options{}},
		{"FP1 of a kind to come", func(t *testing.T, x object) { gate(t, x)["ConnectivityType"] = "hybrid" }, "gateway", gateway, "", "a hybrid one", 0, nat.Options{}},
	} {
		f.run(t)
	}
	x := export(t)
	delete(gate(t, x), "ConnectivityType")
	if c := check(t, audit(t, x, nat.Options{}), "gateway"); c.State != nat.Unknown {
		t.Errorf("nobody says that it is public: %+v", c)
	}
}
