package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/nat"
)

func egressAuditCommand() command {
	return command{name: "audit-nat", about: "judge a cloud's network by an export of it", run: egressAudit, help: `
Judge the network of a deployment on AWS by what the AWS command line prints of
it: whether what leaves goes through the NAT gateway and only the proxy's group
reaches out, and whether anything from outside comes in. No cloud is asked. FILE is
one JSON document with the members RouteTables, NatGateways, Addresses,
SecurityGroups, NetworkAcls, FlowLogs and events (of aws logs filter-log-events),
or a folder with files of them (.json) and of flow logs (.log); doc/egress.md has
the commands. What the export does not say is unknown. Exit code: 0 everything
holds, 3 something does not, or is not known.

    holdfast egress audit-nat (FILE | FOLDER | -) [flags]

    --vpc ID           the network, where the export has several
    --proxy GROUP      a security group that the proxies are in, beside those tagged
                       holdfast:role = proxy; may be repeated
    --port N           what the proxies may reach outside over TCP; may be repeated;
                       443 if absent
    --return-ports F-T where the machines' own connections come from; 32768-60999 if
                       absent

    $ echo '{"NatGateways": [], "Addresses": []}' | holdfast egress audit-nat -
`}
}

// many is a flag that may be repeated.
type many []string

func (m *many) String() string     { return strings.Join(*m, ",") }
func (m *many) Set(s string) error { *m = append(*m, s); return nil }

func egressAudit(a *app, args []string) error {
	fs, o := a.flags("egress audit-nat"), nat.Options{}
	var ports, proxies many
	span := ""
	fs.StringVar(&o.Network, "vpc", "", "")
	fs.Var(&proxies, "proxy", "")
	fs.Var(&ports, "port", "")
	fs.StringVar(&span, "return-ports", "", "")
	rest, err := a.parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	o.Proxies = proxies
	for _, p := range ports {
		n, err := strconv.Atoi(p)
		if err != nil {
			return usage("such as --port 443", "%q is no port", p)
		}
		o.Ports = append(o.Ports, n)
	}
	if span != "" {
		if o.Return, err = portSpan(span); err != nil {
			return err
		}
	}
	parts, err := a.exported(rest[0])
	if err != nil {
		return err
	}
	x, err := nat.Read(parts...)
	if err != nil {
		return err
	}
	r, err := nat.Audit(x, o)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(r)
	} else {
		a.sayAudit(r)
	}
	if err == nil && r.State != nat.Passed {
		err = status(exitRefused)
	}
	return err
}

func portSpan(s string) (nat.Ports, error) {
	from, to, _ := strings.Cut(s, "-")
	f, err1 := strconv.Atoi(from)
	t, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil {
		return nat.Ports{}, usage("such as --return-ports 32768-60999", "%q are no ports from one to another", s)
	}
	return nat.Ports{From: f, To: t}, nil
}

// exported reads the files of an export, which may be one, or those of a folder.
func (a *app) exported(name string) ([]nat.Part, error) {
	info, err := os.Stat(name)
	if name == "-" || err != nil || !info.IsDir() {
		from, b, err := a.input([]string{name}, nat.MaxExport)
		return []nat.Part{{Name: filepath.Base(from), Data: b, Lines: filepath.Ext(name) == ".log"}}, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var parts []nat.Part
	left := int64(nat.MaxExport)
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if ext != ".json" && ext != ".log" {
			continue
		}
		if len(parts) == nat.MaxParts {
			return nil, &holdfast.Error{Kind: holdfast.KindPayloadTooLarge, Why: fmt.Sprintf("%s has more than %d files of an export", name, nat.MaxParts), Hint: "give each export a folder of its own"}
		}
		_, b, err := a.input([]string{filepath.Join(name, e.Name())}, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(b))
		parts = append(parts, nat.Part{Name: e.Name(), Data: b, Lines: ext == ".log"})
	}
	if len(parts) == 0 {
		return nil, fail("write what the AWS command line prints into files there; doc/egress.md has the commands", "%s has no file that ends in .json or .log", name)
	}
	return parts, nil
}

// sayAudit writes each check, and below it what is wrong.
func (a *app) sayAudit(r *nat.Report) {
	l := a.look()
	mark := func(s nat.State) string {
		return l.mark(map[nat.State]holdfast.Verdict{nat.Passed: holdfast.Allow, nat.Failed: holdfast.Deny, nat.Unknown: holdfast.Hold}[s])
	}
	word := map[nat.State]string{nat.Passed: "everything holds", nat.Failed: "something does not hold", nat.Unknown: "not everything is known"}
	fmt.Fprintf(a.out, "%s %s  %s%s\n", mark(r.State), l.bold(word[r.State]), clean(or(r.Network, "a network without a name")), tally(r.Checks))
	for _, c := range r.Checks {
		fmt.Fprintf(a.out, "%s %-14s  %-7s  %s\n", mark(c.State), c.Name, c.State, l.dim("must: "+c.Must))
		for _, f := range c.Findings {
			where := strings.TrimSpace(f.Resource + prefix(" ", f.Rule) + unknownWord(f.State))
			fmt.Fprintf(a.out, "    %s: %s\n", clean(where), clean(f.Why))
			fmt.Fprintf(a.out, "    hint: %s\n", clean(f.Hint))
		}
		if c.More > 0 {
			fmt.Fprintf(a.out, "    and %s more\n", story.Count(c.More, "finding", "findings"))
		}
		for _, n := range c.Notes {
			fmt.Fprintf(a.out, "    note: %s\n", clean(n))
		}
	}
}

// tally says how many checks failed and of how many nothing is known, where any.
func tally(checks []nat.Check) string {
	n := map[nat.State]int{}
	for _, c := range checks {
		n[c.State]++
	}
	if n[nat.Failed]+n[nat.Unknown] == 0 {
		return ""
	}
	return fmt.Sprintf("  %d of %d fail, %d not known", n[nat.Failed], len(checks), n[nat.Unknown])
}

// unknownWord marks a finding of which it is not known whether it is one.
func unknownWord(s nat.State) string {
	if s == nat.Unknown {
		return " (not known)"
	}
	return ""
}
