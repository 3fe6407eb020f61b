package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/service"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

func egressCommand() command {
	return command{name: "egress", about: "what agents may send where: ask, watch, count; the proxy's certificate", help: `
Agents reach the world through one proxy, which knows the hosts that the
configuration lists under egress: domains, and no other. These commands say what
it would do, what it did, and how often.

    $ holdfast egress check https://api.openai.com/v1/models
    $ holdfast egress tail
`, sub: []command{egressCheckCommand(), egressTailCommand(), egressStatsCommand(), egressCACommand(), egressAuditCommand()}}
}

func egressCACommand() command {
	return command{name: "ca", about: "print the certificate that clients of the proxy must trust", run: egressCA, help: `
Print the certificate of the authority that signs what the proxy shows to its
clients, PEM. It is made the first time, for this state directory alone. Inside
of holdfast run programs trust it already; a program outside needs it besides the
address of a listener:

    $ holdfast egress ca > holdfast-ca.pem

    curl -x http://127.0.0.1:7412 --cacert holdfast-ca.pem https://api.openai.com/
`}
}

func egressCA(a *app, args []string) error {
	if _, err := a.parse(a.flags("egress ca"), args, 0, 0); err != nil {
		return err
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		text, err := c.EgressAuthority(a.ctx)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(map[string]string{"pem": text})
		}
		_, err = io.WriteString(a.out, text)
		return err
	})
}

func egressStatsCommand() command {
	return command{name: "stats", about: "count what the proxy did since the daemon started", run: egressStats, help: `
Count what the proxy of the running daemon did: how many requests of each listed
host were answered or refused and why, and how long each part of their way took:
reading its head (parse), the allowlist (decide), its body (body), redacting it
(redact), the gates and the record (cross), reaching the host (connect), its first
byte (first_byte), and from then to its last (stream). With --json the histograms
themselves, in microseconds.

    holdfast egress stats [--json]

    $ holdfast egress stats
`}
}

func egressStats(a *app, args []string) error {
	if _, err := a.parse(a.flags("egress stats"), args, 0, 0); err != nil {
		return err
	}
	return a.reach(func(_ *api.Client, s *api.Status) error {
		e := s.Egress
		if e == nil {
			e = &api.EgressStatus{}
		}
		if a.json {
			return a.printJSON(e)
		}
		a.sayStats(e)
		return nil
	})
}

func (a *app) sayStats(e *api.EgressStatus) {
	rows := [][]string{{"requests", "of", "how many"}}
	for _, r := range e.Requests {
		rows = append(rows, []string{or(r.Kind, "answered"), or(r.Domain, "no row"), strconv.FormatInt(r.Count, 10)})
	}
	if len(e.Requests) == 0 {
		rows = append(rows, []string{"none", "", "0"})
	}
	table(a.out, rows)
	if len(e.Stages) > 0 {
		rows = [][]string{{"stage", "count", "mean", "half within", "99 % within"}}
		for _, s := range e.Stages {
			rows = append(rows, []string{s.Name, strconv.FormatInt(s.Count, 10), spanOf(s.SumUS / max(1, s.Count)), within(s, 50), within(s, 99)})
		}
		fmt.Fprintln(a.out)
		table(a.out, rows)
	}
	fmt.Fprintf(a.out, "\nredacted %d in requests, %d in answers; %d connections open, %d turned away; %d names asked for, %d malformed\n",
		e.RedactedOut, e.RedactedIn, e.Open, e.Crowded, e.Names, e.Malformed)
}

func spanOf(us int64) string {
	d := time.Duration(us) * time.Microsecond
	if d >= time.Second {
		d = d.Round(10 * time.Millisecond)
	}
	return d.String()
}

// within is the bound under which so many of a hundred stayed.
func within(s api.EgressStage, percent int64) string {
	var sum int64
	for i, n := range s.Under {
		if sum += n; sum*100 < s.Count*percent {
			continue
		}
		if i < len(s.Bounds) {
			return spanOf(s.Bounds[i])
		}
		break
	}
	if len(s.Bounds) == 0 {
		return ""
	}
	return "more than " + spanOf(s.Bounds[len(s.Bounds)-1])
}

// seeEgress looks at the allowlist and at the authority that the proxy signs with.
func (a *app) seeEgress(p daemon.Paths) finding {
	_, l, err := a.loads()
	if err != nil {
		return warn("mend the configuration first", "not asked: the configuration does not load")
	}
	n := len(l.Domains.Domains())
	made, err := service.FindAuthority(p.Dir)
	switch {
	case err != nil:
		return bad(err)
	case n == 0:
		return okay("no domain is listed, so that nothing leaves through holdfast")
	case !made:
		return okay("%s listed; the proxy's certificate is made when it is needed", story.Count(n, "domain", "domains"))
	}
	return okay("%s listed, and the proxy's certificate is whole", story.Count(n, "domain", "domains"))
}

// seeCredentials asks for what Holdfast adds to requests: the owner that runs, or
// as one would that starts here.
func (o *dialled) seeCredentials() []finding {
	var missing []api.EgressMissing
	if o.err == nil && o.status.Egress != nil {
		missing = o.status.Egress.Missing
	} else if _, l, err := o.a.loads(); o.err != nil && err == nil {
		missing = service.MissingCredentials(o.a.ctx, l.Domains, true)
	}
	var out []finding
	for _, m := range missing {
		f := warn(m.Hint, "%s", m)
		f.Check = "credential"
		out = append(out, f)
	}
	return out
}
