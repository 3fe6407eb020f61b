package nat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/nat"
)

const v2 = "${version} ${account-id} ${interface-id} ${srcaddr} ${dstaddr} ${srcport} ${dstport} ${protocol} ${packets} ${bytes} ${start} ${end} ${action} ${log-status}"

// flow is a line of the default format, version 2.
func flow(eni, src, dst string, srcPort, dstPort, protocol, start int, action string) string {
	return fmt.Sprintf("2 123456789012 %s %s %s %d %d %d 12 4210 %d %d %s OK", eni, src, dst, srcPort, dstPort, protocol, start, start+58, action)
}

// logged is the mended network with these lines in the default format alone.
func logged(t *testing.T, lines ...string) object {
	x := export(t)
	x["FlowLogs"].([]any)[0].(object)["LogFormat"] = v2
	events := []any{}
	for _, l := range lines {
		events = append(events, object{"message": l, "timestamp": 1772442000000, "logStreamName": "eni-0-all"})
	}
	x["events"] = events
	return x
}

// FP6 and AC3 of section 3.2.
func TestAccepted(t *testing.T) {
	const there, here, far = "198.51.100.7", "10.0.1.20", "192.0.2.99"
	asked := flow(proxyENI, here, there, 50412, 443, 6, 100, "ACCEPT")
	for _, c := range []struct {
		name  string
		lines []string
		state nat.State
		why   string
	}{
		{"an answer", []string{asked, flow(proxyENI, there, here, 443, 50412, 6, 101, "ACCEPT")}, nat.Passed, ""},
		{"an answer within the same second", []string{flow(proxyENI, there, here, 443, 50412, 6, 100, "ACCEPT"), asked}, nat.Passed, ""},
		{"rejected", []string{asked, flow(proxyENI, far, here, 51000, 22, 6, 100, "REJECT")}, nat.Passed, ""},
		{"within the network", []string{flow(proxyENI, "10.0.2.30", here, 41822, 7412, 6, 100, "ACCEPT")}, nat.Passed, ""},
		{"FP6 nobody asked", []string{asked, flow(proxyENI, far, here, 51000, 22, 6, 100, "ACCEPT")}, nat.Failed, "nothing inside had asked"},
		{"FP6 answered later", []string{flow(proxyENI, far, here, 51000, 22, 6, 100, "ACCEPT"), flow(proxyENI, here, far, 22, 51000, 6, 101, "ACCEPT")}, nat.Failed, "before anything went out"},
		{"FP6 answered within the same second", []string{flow(proxyENI, far, here, 51000, 22, 6, 100, "ACCEPT"), flow(proxyENI, here, far, 22, 51000, 6, 100, "ACCEPT")}, nat.Failed, "before anything went out"},
		{"FP6 from the port of a service", []string{flow(proxyENI, far, here, 443, 50051, 6, 100, "ACCEPT"), flow(proxyENI, here, far, 50051, 443, 6, 101, "ACCEPT")}, nat.Unknown, "nobody knows who began"},
		{"FP6 to another port than asked", []string{asked, flow(proxyENI, there, here, 443, 50413, 6, 101, "ACCEPT")}, nat.Failed, "nothing inside had asked"},
		{"FP6 at another interface", []string{asked, flow("eni-other", there, here, 443, 50412, 6, 101, "ACCEPT")}, nat.Failed, "nothing inside had asked"},
		{"FP6 what was asked was rejected", []string{flow(proxyENI, here, there, 50412, 443, 6, 100, "REJECT"), flow(proxyENI, there, here, 443, 50412, 6, 101, "ACCEPT")}, nat.Failed, "nothing inside had asked"},
		{"FP6 over UDP", []string{flow(proxyENI, far, here, 53, 33000, 17, 100, "ACCEPT")}, nat.Failed, "over"},
		{"FP6 over IPv6", []string{flow(proxyENI, "2001:db8::7", "fd00::1", 1, 22, 6, 100, "ACCEPT")}, nat.Unknown, "no end in this network"},
		{"FP6 of a protocol without ports", []string{flow(proxyENI, far, here, 0, 0, 47, 100, "ACCEPT")}, nat.Failed, "nothing inside had asked"},
		{"a word of a router", []string{flow(proxyENI, far, here, 0, 0, 1, 100, "ACCEPT")}, nat.Passed, ""},
		{"FP6 below what the gateway takes", []string{flow(gateENI, far, "10.0.0.10", 51000, 22, 6, 100, "ACCEPT")}, nat.Failed, "nothing inside had asked"},
		{"noise at the gateway", []string{flow(gateENI, far, "10.0.0.10", 51000, 8443, 6, 100, "ACCEPT")}, nat.Passed, ""},
		{"lines are missing", []string{flow(proxyENI, there, here, 443, 50412, 6, 101, "ACCEPT"), "2 123456789012 " + proxyENI + " - - - - - - - 100 160 - SKIPDATA"}, nat.Unknown, "lines are missing"},
		{"nothing to record", []string{"2 123456789012 " + proxyENI + " - - - - - - - 100 160 - NODATA"}, nat.Passed, ""},
		{"nothing at all", nil, nat.Unknown, "no line of a flow log"},
		{"neither end is inside", []string{flow(proxyENI, far, there, 1, 2, 6, 100, "ACCEPT")}, nat.Unknown, "no end in this network"},
		{"no flow log's line", []string{asked, "Mar 2 sshd: accepted"}, nat.Unknown, "1 lines of flow logs cannot be read"},
		{"an odd action", []string{asked, flow(proxyENI, far, here, 51000, 22, 6, 100, "accept")}, nat.Unknown, "cannot be read"},
		{"a port that is none", []string{asked, strings.Replace(flow(proxyENI, far, here, 51000, 22, 6, 100, "ACCEPT"), " 22 ", " 65558 ", 1)}, nat.Unknown, "cannot be read"},
		{"an address in disguise", []string{asked, flow(proxyENI, "::ffff:10.0.1.21", here, 51000, 22, 6, 100, "ACCEPT")}, nat.Unknown, "cannot be read"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			k := check(t, audit(t, logged(t, c.lines...), nat.Options{}), "no_inbound")
			ok := k.State == c.state && (c.state == nat.Passed) == (len(k.Findings) == 0)
			for _, f := range k.Findings {
				ok = ok && f.Hint != ""
			}
			if why := fmt.Sprint(k.Findings); !ok || c.why != "over" && !strings.Contains(why, c.why) {
				t.Errorf("%v: %s", k.State, why)
			}
		})
	}
}

// The flags of TCP, where the format has them, say who began.
func TestAcceptedByFlags(t *testing.T) {
	line := func(src, dst string, srcPort, dstPort, flags int) string {
		return flow(proxyENI, src, dst, srcPort, dstPort, 6, 100, "ACCEPT") + fmt.Sprintf(" %d -", flags)
	}
	for name, c := range map[string]struct {
		in, out int
		state   nat.State
	}{
		"began inside":             {18, 2, nat.Passed},
		"began inside, and closed": {19, 3, nat.Passed},
		"began outside":            {2, 18, nat.Failed},
		"began outside and closed": {3, 19, nat.Failed},
		"in the middle of it":      {0, 0, nat.Passed},
	} {
		x := logged(t, line("10.0.1.20", "198.51.100.7", 50412, 443, c.out), line("198.51.100.7", "10.0.1.20", 443, 50412, c.in))
		x["FlowLogs"].([]any)[0].(object)["LogFormat"] = v2 + " ${tcp-flags} ${flow-direction}"
		if k := check(t, audit(t, x, nat.Options{}), "no_inbound"); k.State != c.state {
			t.Errorf("%s: %v: %+v", name, k.State, k.Findings)
		}
	}
}

// Where a group lets something in, an accepted flow of the same second may be it.
func TestAcceptedWhereAGroupLetsIn(t *testing.T) {
	x := logged(t, flow(proxyENI, "198.51.100.7", "10.0.1.20", 443, 50412, 6, 100, "ACCEPT"), flow(proxyENI, "10.0.1.20", "198.51.100.7", 50412, 443, 6, 100, "ACCEPT"),
		flow(proxyENI, "192.0.2.99", "10.0.1.20", 0, 0, 1, 100, "ACCEPT"))
	put(one(t, x, "SecurityGroups", workSG), "IpPermissions", permission("-1", -1, -1, "0.0.0.0/0"))
	k := check(t, audit(t, x, nat.Options{}), "no_inbound")
	if k.State != nat.Failed || len(k.Findings) != 2 {
		t.Errorf("%v: %+v", k.State, k.Findings)
	}
}

// What is not recorded is not known.
func TestFlowLogsThatRecordTooLittle(t *testing.T) {
	for name, change := range map[string]func(l object){
		"only rejected":     func(l object) { l["TrafficType"] = "REJECT" },
		"another network's": func(l object) { l["ResourceId"] = "vpc-other" },
		"one subnet's":      func(l object) { l["ResourceId"] = workNet },
		"not active":        func(l object) { l["FlowLogStatus"] = "INACTIVE" },
		"not delivered":     func(l object) { l["DeliverLogsStatus"] = "FAILED" },
		"too few fields":    func(l object) { l["LogFormat"] = "${srcaddr} ${dstaddr} ${action}" },
		"a field twice":     func(l object) { l["LogFormat"] = v2 + " ${srcaddr}" },
	} {
		x := logged(t, flow(proxyENI, "10.0.1.20", "198.51.100.7", 50412, 443, 6, 100, "ACCEPT"))
		change(x["FlowLogs"].([]any)[0].(object))
		if k := check(t, audit(t, x, nat.Options{}), "no_inbound"); k.State != nat.Unknown || k.Findings[0].Hint == "" {
			t.Errorf("%s: %v: %+v", name, k.State, k.Findings)
		}
	}
	x := logged(t, flow(proxyENI, "10.0.1.20", "198.51.100.7", 50412, 443, 6, 100, "ACCEPT"))
	put(x, "FlowLogs", object{"ResourceId": workNet, "FlowLogStatus": "ACTIVE", "TrafficType": "ALL", "LogFormat": v2 + " ${tcp-flags}"})
	if k := check(t, audit(t, x, nat.Options{}), "no_inbound"); k.State != nat.Unknown {
		t.Errorf("two formats: %v", k.State)
	}
}

// Files that a flow log wrote to S3 begin with the names of their fields.
func TestLinesOfAFile(t *testing.T) {
	x := export(t)
	delete(x, "events")
	header := strings.NewReplacer("${", "", "}", "").Replace(v2)
	for text, want := range map[string]nat.State{
		header + "\n" + flow(proxyENI, "10.0.1.20", "198.51.100.7", 50412, 443, 6, 100, "ACCEPT") + "\n": nat.Passed,
		header + "\r\n" + flow(proxyENI, "192.0.2.99", "10.0.1.20", 51000, 22, 6, 100, "ACCEPT"):         nat.Failed,
		"srcaddr interface-id\n": nat.Unknown,
		"":                       nat.Unknown,
	} {
		e, err := nat.Read(nat.Part{Name: "network.json", Data: encode(t, x)}, nat.Part{Name: "flow.log", Data: []byte(text), Lines: true})
		if err != nil {
			t.Fatal(err)
		}
		r, err := nat.Audit(e, nat.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if k := check(t, r, "no_inbound"); k.State != want {
			t.Errorf("%q: %v: %+v", text, k.State, k.Findings)
		}
	}
}
