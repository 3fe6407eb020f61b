// Package nat judges the network of a cloud deployment by an export of it, as the
// AWS command line prints one: the failure predicates and criteria of spec 003
// section 3.2, with its errors mended (doc/egress.md). It is pure: it asks no
// cloud, and what the export does not say is unknown and never passes.
package nat

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// State is what is known of a check. The zero value is Unknown, which refuses as
// Failed does.
type State int

// The states, in the order in which one outweighs another in a report: what has
// failed is known, and stands above what is not known.
const (
	Unknown State = iota
	Failed
	Passed
)

// String returns the state's word.
func (s State) String() string {
	switch s {
	case Failed:
		return "failed"
	case Passed:
		return "passed"
	}
	return "unknown"
}

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that is wrong, or that the export does not say.
type Finding struct {
	State State `json:"state"` // Failed or Unknown
	// Resource is the id of what it stands at, as the cloud writes it, and Rule
	// which of its rules: a destination of a route, a number of a network list's
	// rule with "in" or "out", or a permission of a group. Both are clipped.
	Resource string `json:"resource,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Why      string `json:"why"`
	Hint     string `json:"hint"`
}

// Check is one thing that must be so.
type Check struct {
	Name     string    `json:"name"`
	Spec     string    `json:"spec"` // where it is asked for
	Must     string    `json:"must"` // what must be so, in a sentence
	State    State     `json:"state"`
	Findings []Finding `json:"findings"`
	More     int       `json:"more,omitempty"`  // findings beyond MaxFindings
	Notes    []string  `json:"notes,omitempty"` // what is no fault and worth knowing
}

// MaxFindings is how many findings of a check are kept; the rest is counted.
const MaxFindings = 50

// Report is the judgement of one network.
type Report struct {
	Network string  `json:"network"` // its id
	State   State   `json:"state"`
	Checks  []Check `json:"checks"`
}

// Options are what no export says. The zero value is usable.
type Options struct {
	// Network is the id of the one to judge; it may be empty where the export has
	// one alone.
	Network string
	// Proxies are the ids of the groups that the proxies are in, beside those that
	// carry the tag holdfast:role with the value proxy.
	Proxies []string
	// Ports are what the proxies may reach outside, over TCP; 443 if empty.
	Ports []int
	// Return are the ports that the machines' own connections come from;
	// 32768 to 60999 if both are 0, where Linux takes them (ip_local_port_range).
	Return Ports
}

// Ports is a range of them, both ends in it.
type Ports struct{ From, To int }

const (
	roleTag      = "holdfast:role"
	roleProxy    = "proxy"
	roleWorkload = "workload"
)

// Audit judges one network of an export. An error is of what was asked for: a
// network or a group that is not there, or ports that are none.
func Audit(x *Export, o Options) (*Report, error) {
	if err := o.settle(); err != nil {
		return nil, err
	}
	n, err := x.network(o)
	if err != nil {
		return nil, err
	}
	r := &Report{Network: clip(n.id), State: Passed}
	for _, c := range checks() {
		k := Check{Name: c.name, Spec: c.spec, Must: c.must, Findings: []Finding{}}
		s := &sink{check: &k}
		c.judge(n, s)
		k.State = s.state()
		r.Checks = append(r.Checks, k)
		r.State = worse(r.State, k.State)
	}
	return r, nil
}

// worse is the state of two together: a failure is one whatever else is unknown.
func worse(a, b State) State {
	switch {
	case a == Failed || b == Failed:
		return Failed
	case a == Passed && b == Passed:
		return Passed
	}
	return Unknown
}

func (o *Options) settle() error {
	if len(o.Ports) == 0 {
		o.Ports = []int{443}
	}
	for _, p := range o.Ports {
		if p < 1 || p > 65535 {
			return refuse(holdfast.KindValue, "a port is 1 to 65535", "port %d is none", p)
		}
	}
	if o.Return == (Ports{}) {
		o.Return = Ports{32768, 60999}
	}
	if o.Return.From < 1024 || o.Return.To > 65535 || o.Return.From > o.Return.To {
		return refuse(holdfast.KindValue, "write the lower and the higher of 1024 to 65535, as in 32768-60999", "%d-%d are no ports that answers come to", o.Return.From, o.Return.To)
	}
	return nil
}

// rule is one check and how it is judged.
type rule struct {
	name, spec, must string
	judge            func(*network, *sink)
}

// checks are all that is judged, in the order in which it is told.
func checks() []rule {
	return []rule{
		{"gateway", "3.2 failure 1", "every NAT gateway that a route names is there and available", judgeGateways},
		{"address", "3.2 failure 2", "every such gateway has an elastic address that is associated with it", judgeAddresses},
		{"address_static", "3.2 criterion 2", "that address is one the account keeps, and not one of the service's choice", judgeStatic},
		{"route", "3.2 failure 3, criterion 1", "what leaves private subnets goes to the NAT gateway and nowhere else", judgeRoutes},
		{"group_egress", "3.2 failure 4", "the proxies' groups let the proxies out", judgeGroupOut},
		{"egress_closed", "3.2 mended: open egress", "no other group reaches out of the network, and the proxies' reach only what they need", judgeEgressClosed},
		{"ingress_closed", "3.2 criterion 5", "no group lets anything in from outside of the network", judgeIngressClosed},
		{"list_outbound", "3.2 failure 5", "the network lists on the way let it out", judgeListOut},
		{"list_inbound", "3.2 criterion 6, mended: rule 110", "network lists let in from outside only what answers look like, where answers are expected", judgeListIn},
		{"return_tcp", "3.2 criterion 4", "answers over TCP come in again", judgeReturnTCP},
		{"return_udp", "3.2 mended: return traffic of UDP", "who may be asked over UDP may answer", judgeReturnUDP},
		{"no_inbound", "3.2 failure 6, criterion 3", "nothing that began outside was accepted, as far as flow logs tell", judgeAccepted},
	}
}

// sink gathers what a check finds.
type sink struct {
	check           *Check
	failed, unknown bool
}

func (s *sink) state() State {
	switch {
	case s.failed:
		return Failed
	case s.unknown:
		return Unknown
	}
	return Passed
}

func (s *sink) add(f Finding) {
	s.failed = s.failed || f.State == Failed
	s.unknown = s.unknown || f.State != Failed
	if len(s.check.Findings) == MaxFindings {
		s.check.More++
		return
	}
	f.Resource, f.Rule = clip(f.Resource), clip(f.Rule)
	s.check.Findings = append(s.check.Findings, f)
}

func (s *sink) fail(resource, rule, hint, format string, args ...any) {
	s.add(Finding{State: Failed, Resource: resource, Rule: rule, Why: fmt.Sprintf(format, args...), Hint: hint})
}

func (s *sink) doubt(resource, hint, format string, args ...any) {
	s.add(Finding{State: Unknown, Resource: resource, Why: fmt.Sprintf(format, args...), Hint: hint})
}

func (s *sink) note(format string, args ...any) {
	s.check.Notes = append(s.check.Notes, fmt.Sprintf(format, args...))
}

// missing says that a member of the export is not there.
func (s *sink) missing(member string) {
	s.doubt("", "add what `"+command(member)+"` prints (doc/egress.md has all of them)", "the export has no %s", member)
}

// clip bounds what is quoted of the export.
func clip(s string) string { return excerpt.Of(s, 64) }

func refuse(kind holdfast.Kind, hint, format string, args ...any) error {
	return &holdfast.Error{Kind: kind, Why: fmt.Sprintf(format, args...), Hint: hint}
}
