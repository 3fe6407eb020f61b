package nat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast"
)

// Bounds of an export. AWS' own quotas are far below those that count resources.
const (
	MaxExport  = 64 << 20 // bytes of all parts together
	MaxParts   = 64
	maxDepth   = 32
	maxItems   = 20_000 // of one member
	maxRules   = 20_000 // of all routes, or of all permissions
	maxEntries = 50     // of a network list, in one direction; AWS has at most 40 and its own last two
	maxListed  = 1_000  // entries of all network lists
	maxLines   = 500_000
	maxLine    = 2048 // bytes of a line of a flow log
)

// Part is one file of an export: JSON as the command line prints it, or lines of
// a flow log where Lines is set.
type Part struct {
	Name  string
	Data  []byte
	Lines bool
}

// Read reads an export, of one file or of several, each with other members. What
// it cannot read as a whole is an error that names where: a name that stands
// twice, what is no address, an export that was cut.
func Read(parts ...Part) (*Export, error) {
	x, seen, size := &Export{}, map[string]string{}, 0
	if len(parts) > MaxParts {
		return nil, large("%d files", len(parts))
	}
	for _, p := range parts {
		if size += len(p.Data); size > MaxExport {
			return nil, large("more than %d MB", MaxExport>>20)
		}
		if err := x.part(p, seen); err != nil {
			var e *holdfast.Error
			if errors.As(err, &e) {
				e.Why = clip(p.Name) + ": " + e.Why
			}
			return nil, err
		}
	}
	return x, x.check()
}

func (x *Export) part(p Part, seen map[string]string) error {
	if p.Lines {
		return x.addLines(strings.Split(string(p.Data), "\n"))
	}
	if err := shallow(p.Data); err != nil {
		return err
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(p.Data, &members); err != nil {
		return malformed("", err)
	}
	for name, v := range members {
		if other, twice := seen[name]; twice && name != "searchedLogStreams" {
			return refuse(holdfast.KindValue, "export each of them once", "%s stands in %s, too", clip(name), clip(other))
		}
		seen[name] = p.Name
		if err := x.member(name, v); err != nil {
			return err
		}
	}
	return nil
}

// member reads one member. A null is none.
func (x *Export) member(name string, v jsontext.Value) error {
	to := map[string]any{
		"RouteTables": &x.RouteTables, "NatGateways": &x.NatGateways, "Addresses": &x.Addresses, "SecurityGroups": &x.SecurityGroups,
		"NetworkAcls": &x.NetworkAcls, "FlowLogs": &x.FlowLogs, "PrefixLists": &x.PrefixLists,
	}[name]
	switch {
	case to != nil:
		// What is written in other letters is read as what it stands for, and not left out.
		return malformed(name, json.Unmarshal(v, to, json.MatchCaseInsensitiveNames(true)))
	case name == "events":
		return x.events(v)
	case name == "searchedLogStreams" || (strings.EqualFold(name, "NextToken") && v.Kind() == 'n'):
		return nil
	case strings.EqualFold(name, "NextToken"):
		return refuse(holdfast.KindValue, "export it whole: leave out --max-items and --no-paginate", "the export was cut: it has a %s", name)
	}
	return refuse(holdfast.KindValue, "write the members as the command line prints them; doc/egress.md has the commands", "%q is no member of an export", clip(name))
}

func (x *Export) events(v jsontext.Value) error {
	var events []event
	if err := json.Unmarshal(v, &events); err != nil || events == nil {
		return malformed("events", err)
	}
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = e.Message
	}
	return x.addLines(lines)
}

func (x *Export) addLines(lines []string) error {
	if x.lines == nil {
		x.lines = []string{}
	}
	for _, l := range lines {
		if l = strings.TrimRight(l, "\r\n"); l == "" {
			continue
		}
		if len(l) > maxLine {
			return large("a line of a flow log with more than %d bytes", maxLine)
		}
		if len(x.lines) == maxLines {
			return large("more than %d lines of flow logs", maxLines)
		}
		x.lines = append(x.lines, l)
	}
	return nil
}

// shallow bounds the depth before anything is made of a document, and finds names
// that stand twice in an object.
func shallow(b []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	for {
		_, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return malformed("", err)
		case d.StackDepth() > maxDepth:
			return large("JSON nested more than %d levels deep", maxDepth)
		}
	}
}

// malformed is a letter about JSON that is none, or of another shape.
func malformed(member string, err error) error {
	if err == nil {
		return nil
	}
	why, hint := "this is no export", "give the JSON that the AWS command line prints (--output json), unchanged"
	var syntax *jsontext.SyntacticError
	var shape *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		why, hint = fmt.Sprintf("the name %q stands twice in one object", clip(syntax.JSONPointer.LastToken())), "readers differ on which of the two counts: export it again"
	case errors.As(err, &syntax):
		why = fmt.Sprintf("this is no JSON, at byte %d", syntax.ByteOffset)
	case errors.As(err, &shape):
		why = "another shape than the command line's, at " + clip(member+string(shape.JSONPointer))
	}
	return &holdfast.Error{Kind: holdfast.KindValue, Why: why, Hint: hint, Err: err}
}

func large(format string, args ...any) error {
	return refuse(holdfast.KindPayloadTooLarge, "export one network alone, with --filters Name=vpc-id,Values=ID, and a shorter time of its flow logs", format, args...)
}

// check reads what stands in texts: addresses, protocols, actions.
func (x *Export) check() error {
	for name, n := range map[string]int{
		"RouteTables": len(x.RouteTables), "NatGateways": len(x.NatGateways), "Addresses": len(x.Addresses), "SecurityGroups": len(x.SecurityGroups),
		"NetworkAcls": len(x.NetworkAcls), "FlowLogs": len(x.FlowLogs), "PrefixLists": len(x.PrefixLists),
	} {
		if n > maxItems {
			return large("more than %d of %s", maxItems, name)
		}
	}
	for _, f := range []func() error{x.checkRoutes, x.checkGroups, x.checkLists, x.checkPrefixLists, x.checkWhole} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (x *Export) checkRoutes() error {
	n := 0
	for i := range x.RouteTables {
		t := &x.RouteTables[i]
		if n += len(t.Routes); n > maxRules {
			return large("more than %d routes", maxRules)
		}
		for j := range t.Routes {
			r := &t.Routes[j]
			if len(r.destinations()) != 1 || len(r.targets()) != 1 {
				return odd(t.RouteTableID, "a route has one destination and one target, and number %d has %d and %d", j+1, len(r.destinations()), len(r.targets()))
			}
			if r.DestinationPrefixListID != "" {
				continue
			}
			p, err := prefix(r.destinations()[0])
			if err != nil {
				return odd(t.RouteTableID, "%q is no destination of a route", clip(r.destinations()[0]))
			}
			// AWS takes no larger network; one that is, would make the world inside.
			if r.GatewayID == "local" && (p.Addr().Is4() && p.Bits() < 16 || p.Addr().Is6() && p.Bits() < 40) {
				return odd(t.RouteTableID, "%s is too large to be local", p)
			}
			r.to = p
		}
	}
	return nil
}

func (x *Export) checkGroups() error {
	n := 0
	for i := range x.SecurityGroups {
		g := &x.SecurityGroups[i]
		for _, list := range [][]Permission{g.IPPermissions, g.IPPermissionsEgress} {
			for j := range list {
				p := &list[j]
				if n += 1 + len(p.IPRanges) + len(p.Ipv6Ranges) + len(p.UserIDGroupPairs) + len(p.PrefixListIDs); n > maxRules {
					return large("more than %d rules of groups", maxRules)
				}
				if err := p.check(); err != nil {
					return odd(g.GroupID, "%v", err)
				}
			}
		}
	}
	return nil
}

func (p *Permission) check() (err error) {
	if p.protocol, err = protocol(p.IPProtocol); err != nil {
		return err
	}
	for _, r := range p.IPRanges {
		a, err := prefix(r.CidrIP)
		if err != nil || !a.Addr().Is4() {
			return fmt.Errorf("%q is no IPv4 range", clip(r.CidrIP))
		}
		p.ranges = append(p.ranges, a)
	}
	for _, r := range p.Ipv6Ranges {
		a, err := prefix(r.CidrIpv6)
		if err != nil || !a.Addr().Is6() {
			return fmt.Errorf("%q is no IPv6 range", clip(r.CidrIpv6))
		}
		p.ranges = append(p.ranges, a)
	}
	return nil
}

func (x *Export) checkLists() error {
	n := 0
	for i := range x.NetworkAcls {
		l := &x.NetworkAcls[i]
		if n += len(l.Entries); n > maxListed {
			return large("more than %d rules of network lists", maxListed)
		}
		numbers := map[[2]int]bool{}
		ways := [2]int{}
		for j := range l.Entries {
			e := &l.Entries[j]
			if err := e.check(); err != nil {
				return odd(l.NetworkAclID, "rule %d: %v", e.RuleNumber, err)
			}
			way := 0
			if e.Egress {
				way = 1
			}
			if ways[way]++; ways[way] > maxEntries {
				return large("more than %d rules in one direction of the network list %s", maxEntries, clip(l.NetworkAclID))
			}
			if numbers[[2]int{way, e.RuleNumber}] {
				return odd(l.NetworkAclID, "rule %d stands twice in one direction, and which comes first is not said", e.RuleNumber)
			}
			numbers[[2]int{way, e.RuleNumber}] = true
		}
	}
	return nil
}

func (e *Entry) check() (err error) {
	if e.protocol, err = protocol(e.Protocol); err != nil {
		return err
	}
	text := e.CidrBlock + e.Ipv6CidrBlock
	if e.prefix, err = prefix(text); err != nil || e.prefix.Addr().Is4() != (e.CidrBlock != "") {
		return fmt.Errorf("%q is no range of addresses", clip(text))
	}
	if e.RuleAction != "allow" && e.RuleAction != "deny" {
		return fmt.Errorf("%q is no action", clip(e.RuleAction))
	}
	if r := e.PortRange; r != nil && (r.From < 0 || r.To > 65535 || r.From > r.To) {
		return fmt.Errorf("%d to %d are no ports", r.From, r.To)
	}
	if e.RuleNumber < 1 || e.RuleNumber > 1<<20 {
		return errors.New("that is no number of a rule")
	}
	return nil
}

func (x *Export) checkPrefixLists() error {
	n := 0
	for i := range x.PrefixLists {
		l := &x.PrefixLists[i]
		if n += len(l.Cidrs); n > maxRules {
			return large("more than %d ranges of prefix lists", maxRules)
		}
		for _, c := range l.Cidrs {
			p, err := prefix(c)
			if err != nil {
				return odd(l.PrefixListID, "%q is no range of addresses", clip(c))
			}
			l.ranges = append(l.ranges, p)
		}
	}
	return nil
}

func odd(resource, format string, args ...any) error {
	return refuse(holdfast.KindValue, "export it again, and change nothing in it", "%s: %s", clip(resource), fmt.Sprintf(format, args...))
}

// prefix reads a range of addresses that has no bits beyond its mask, as AWS
// writes it, and no IPv4 that is dressed as IPv6.
func prefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	if p.Masked() != p || p.Addr().Is4In6() {
		return netip.Prefix{}, errors.New("not a range of addresses")
	}
	return p, nil
}

// The protocols by number; all stands for each of them.
const (
	all    = -1
	icmp   = 1
	tcp    = 6
	udp    = 17
	icmpv6 = 58
)

func protocol(s string) (int, error) {
	switch s {
	case "-1":
		return all, nil
	case "tcp":
		return tcp, nil
	case "udp":
		return udp, nil
	case "icmp":
		return icmp, nil
	case "icmpv6":
		return icmpv6, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 255 || strconv.Itoa(n) != s {
		return 0, fmt.Errorf("%q is no protocol", clip(s))
	}
	return n, nil
}

func protocolName(n int) string {
	switch n {
	case all:
		return "every protocol"
	case tcp:
		return "TCP"
	case udp:
		return "UDP"
	case icmp:
		return "ICMP"
	case icmpv6:
		return "ICMPv6"
	}
	return "protocol " + strconv.Itoa(n)
}
