package awsnat

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
)

// TestRecordedNetworkIsThisOne holds the lists of the module against those of the
// export that `holdfast egress audit-nat` passes (internal/policy/nat/testdata): what was
// judged is what this module makes.
func TestRecordedNetworkIsThisOne(t *testing.T) {
	b, err := os.ReadFile("../../internal/policy/nat/testdata/mended.json")
	if err != nil {
		t.Fatal(err)
	}
	var x struct {
		NetworkAcls []struct {
			Tags    []struct{ Key, Value string }
			Entries []struct {
				RuleNumber                      int
				Egress                          bool
				Protocol, RuleAction, CidrBlock string
				PortRange                       *struct{ From, To int }
			}
		}
	}
	if err := json.Unmarshal(b, &x); err != nil {
		t.Fatal(err)
	}
	m, err := load(sources(t), zone())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, l := range x.NetworkAcls {
		for _, tag := range l.Tags {
			if tag.Key != "holdfast:role" {
				continue
			}
			seen++
			var recorded, made []string
			for _, e := range l.Entries {
				if e.RuleNumber == 32767 {
					continue // AWS' own last rule
				}
				ports := ""
				if e.PortRange != nil {
					ports = fmt.Sprintf(" %d-%d", e.PortRange.From, e.PortRange.To)
				}
				recorded = append(recorded, fmt.Sprintf("%v %d %s %s %s%s", e.Egress, e.RuleNumber, e.RuleAction, e.Protocol, e.CidrBlock, ports))
			}
			for _, r := range m.resource("aws_network_acl", tag.Value).blocks {
				number := map[string]string{"tcp": "6", "udp": "17", "icmp": "1", "-1": "-1"}[r.text("protocol")]
				ports := ""
				if number == "6" || number == "17" {
					ports = fmt.Sprintf(" %d-%d", r.number("from_port"), r.number("to_port"))
				}
				made = append(made, fmt.Sprintf("%v %d %s %s %s%s", r.kind == "egress", r.number("rule_no"), r.text("action"), number, r.text("cidr_block"), ports))
			}
			slices.Sort(recorded)
			slices.Sort(made)
			if !slices.Equal(recorded, made) {
				t.Errorf("%s: recorded %q, made %q", tag.Value, recorded, made)
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d lists", seen)
	}
}
