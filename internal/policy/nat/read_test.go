package nat_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/nat"
)

func encode(t *testing.T, x any) []byte {
	t.Helper()
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Each command's output may be a file of its own.
func TestPartsAreOneExport(t *testing.T) {
	var parts []nat.Part
	for member, v := range export(t) {
		parts = append(parts, nat.Part{Name: member + ".json", Data: encode(t, object{member: v})})
	}
	x, err := nat.Read(parts...)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := nat.Audit(x, nat.Options{}); err != nil || r.State != nat.Passed {
		t.Errorf("%+v %v", r, err)
	}
	_, err = nat.Read(append(parts, nat.Part{Name: "again.json", Data: []byte(`{"NatGateways": []}`)})...)
	if kindOf(t, err) != holdfast.KindValue || !strings.Contains(err.Error(), "NatGateways stands in NatGateways.json, too") {
		t.Errorf("a member twice: %v", err)
	}
}

// What somebody else wrote is refused with a letter, whatever it is.
func TestHostileExports(t *testing.T) {
	list := func(entry string) string {
		if !strings.HasPrefix(entry, "{") {
			entry = "{" + entry + "}"
		}
		return `{"NetworkAcls": [{"NetworkAclId": "acl-1", "Entries": [` + entry + `]}]}`
	}
	route := func(route string) string {
		return `{"RouteTables": [{"RouteTableId": "rtb-1", "Routes": [` + route + `]}]}`
	}
	group := func(p string) string {
		return `{"SecurityGroups": [{"GroupId": "sg-1", "IpPermissions": [` + p + `]}]}`
	}
	const good = `"RuleNumber": 1, "Egress": false, "RuleAction": "allow", "Protocol": "-1", "CidrBlock": "0.0.0.0/0"`
	for name, c := range map[string]struct{ text, says string }{
		"no JSON":              {"{", "no JSON"},
		"nothing":              {"", "no JSON"},
		"a list":               {"[]", "another shape"},
		"two documents":        {"{}{}", "no JSON"},
		"a name twice":         {`{"NatGateways": [], "NatGateways": []}`, `"NatGateways" stands twice`},
		"a name twice, deep":   {`{"NatGateways": [{"State": "failed", "State": "available"}]}`, `"State" stands twice`},
		"not UTF-8":            {"{\"Addresses\": [{\"PublicIp\": \"\xff\"}]}", "no JSON"},
		"deep":                 {`{"Addresses": ` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, "32 levels"},
		"another member":       {`{"RouteTable": []}`, `"RouteTable" is no member`},
		"a member in small":    {`{"routeTables": []}`, `"routeTables" is no member`},
		"an object for a list": {`{"RouteTables": {}}`, "another shape"},
		"a number for a text":  {`{"NatGateways": [{"State": 1}]}`, "another shape"},
		"cut":                  {`{"NatGateways": [], "NextToken": "x"}`, "the export was cut"},
		"cut logs":             {`{"events": [], "nextToken": "x"}`, "the export was cut"},
		"a long line":          {`{"events": [{"message": "` + strings.Repeat("x", 3000) + `"}]}`, "more than 2048 bytes"},
		"no range":             {list(strings.Replace(good, "0.0.0.0/0", "0.0.0.0", 1)), "no range of addresses"},
		"bits beyond the mask": {list(strings.Replace(good, "0.0.0.0/0", "10.0.0.1/8", 1)), "no range of addresses"},
		"IPv6 as IPv4":         {list(strings.Replace(good, "0.0.0.0/0", "::/0", 1)), "no range of addresses"},
		"mapped":               {list(strings.Replace(good, `"CidrBlock": "0.0.0.0/0"`, `"Ipv6CidrBlock": "::ffff:0.0.0.0/96"`, 1)), "no range of addresses"},
		"both families":        {list(good + `, "Ipv6CidrBlock": "::/0"`), "no range of addresses"},
		"no action":            {list(strings.Replace(good, "allow", "Allow", 1)), "no action"},
		"no protocol":          {list(strings.Replace(good, `"-1"`, `"06"`, 1)), "no protocol"},
		"protocol 256":         {list(strings.Replace(good, `"-1"`, `"256"`, 1)), "no protocol"},
		"ports backwards":      {list(good + `, "PortRange": {"From": 2, "To": 1}`), "no ports"},
		"no number":            {list(strings.Replace(good, `"RuleNumber": 1, `, "", 1)), "no number"},
		"one number twice":     {list(`{` + good + `}, {` + good + `}`), "stands twice"},
		"all is local":         {route(`{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "local"}`), "too large to be local"},
		"half is local":        {route(`{"DestinationIpv6CidrBlock": "8000::/1", "GatewayId": "local"}`), "too large to be local"},
		"two targets":          {route(`{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1", "NatGatewayId": "nat-1"}`), "one destination and one target"},
		"no target":            {route(`{"DestinationCidrBlock": "0.0.0.0/0"}`), "one destination and one target"},
		"two destinations":     {route(`{"DestinationCidrBlock": "0.0.0.0/0", "DestinationIpv6CidrBlock": "::/0", "NatGatewayId": "nat-1"}`), "one destination and one target"},
		"no destination":       {route(`{"DestinationCidrBlock": "all", "NatGatewayId": "nat-1"}`), "no destination"},
		"a group's protocol":   {group(`{"IpProtocol": "TCP"}`), "no protocol"},
		"a group's range":      {group(`{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0"}]}`), "no IPv4 range"},
		"a group's IPv6":       {group(`{"IpProtocol": "-1", "Ipv6Ranges": [{"CidrIpv6": "0.0.0.0/0"}]}`), "no IPv6 range"},
		"a list's range":       {`{"PrefixLists": [{"PrefixListId": "pl-1", "Cidrs": ["x"]}]}`, "no range of addresses"},
	} {
		_, err := nat.Read(nat.Part{Name: "export.json", Data: []byte(c.text)})
		if err == nil {
			t.Errorf("%s: it was read", name)
			continue
		}
		if kindOf(t, err); !strings.Contains(err.Error(), "export.json: ") && !strings.Contains(err.Error(), "-1: ") || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 400 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Exports are bounded in size and in number.
func TestLargeExports(t *testing.T) {
	many := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	entries := ""
	for i := range 60 {
		entries += fmt.Sprintf(`{"RuleNumber": %d, "Egress": false, "RuleAction": "allow", "Protocol": "-1", "CidrBlock": "0.0.0.0/0"},`, i+1)
	}
	for name, parts := range map[string][]nat.Part{
		"bytes":   {{Data: make([]byte, nat.MaxExport+1), Lines: true}},
		"files":   make([]nat.Part, nat.MaxParts+1),
		"tables":  {{Data: []byte(`{"RouteTables": [` + many(20_001, `{}`) + `]}`)}},
		"routes":  {{Data: []byte(`{"RouteTables": [{"Routes": [` + many(20_001, `{"DestinationPrefixListId":"a","GatewayId":"b"}`) + `]}]}`)}},
		"rules":   {{Data: []byte(`{"SecurityGroups": [{"IpPermissions": [` + many(20_001, `{"IpProtocol":"-1"}`) + `]}]}`)}},
		"entries": {{Data: []byte(`{"NetworkAcls": [{"Entries": [` + strings.TrimSuffix(entries, ",") + `]}]}`)}},
		"lines":   {{Data: []byte(strings.Repeat("x\n", 500_001)), Lines: true}},
	} {
		_, err := nat.Read(parts...)
		if err == nil || kindOf(t, err) != holdfast.KindPayloadTooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzAudit: whatever is read is judged without a panic, and passes only where
// every check did.
func FuzzAudit(f *testing.F) {
	b, err := os.ReadFile(mended)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"RouteTables": []}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := nat.Read(nat.Part{Name: "x", Data: b})
		if err != nil {
			kindOf(t, err)
			return
		}
		r, err := nat.Audit(x, nat.Options{})
		if err != nil {
			kindOf(t, err)
			return
		}
		for _, c := range r.Checks {
			if c.State != nat.Passed && r.State == nat.Passed || (c.State == nat.Passed) != (len(c.Findings) == 0) {
				t.Fatalf("%v of %+v", r.State, c)
			}
		}
	})
}
