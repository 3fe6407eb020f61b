package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func rulesExplainCommand() command {
	return command{name: "explain", about: "say what each rule makes of a request, and why", run: rulesExplain, help: `
Say which rules are asked of a request and what each thinks, what it cost, what
the parts of its condition were, and why the others are not asked. With the id of
a rule in place of a boundary the rule itself is described; with the version that
a record names, what the rule said that was in force then. It reads the
configuration and the ledger that are here, asks no daemon and records nothing;
what is printed is redacted.

    holdfast rules explain BOUNDARY [PAYLOAD | -] [flags]
    holdfast rules explain RULE | VERSION

    --agent NAME      who would ask; cli if absent
    --kind KIND       the kind of agent
    --session NAME    --chain NAME    --principal NAME    --role NAME,...
                      as a token has them
    --rules FILE      rules in place of those in force; may be given more than
                      once
    --fact NAME=JSON  a fact in place of what is fetched; may be given more than
                      once

Facts that the rules name are fetched as the daemon does, commands included.

    $ holdfast rules explain mcp/bank/pay '{"amount":150}'
`}
}

func rulesExplain(a *app, args []string) error {
	fs := a.flags("rules explain")
	var files repeated
	var role string
	who := holdfast.Identity{Tenant: a.tenant}
	fs.Var(&files, "rules", "")
	fs.StringVar(&who.Agent, "agent", "cli", "")
	fs.StringVar(&who.Kind, "kind", "", "")
	fs.StringVar(&who.Session, "session", "", "")
	fs.StringVar(&who.Chain, "chain", "", "")
	fs.StringVar(&who.Principal, "principal", "", "")
	fs.StringVar(&role, "role", "", "")
	var given repeated
	fs.Var(&given, "fact", "")
	rest, err := a.parse(fs, args, 1, 2)
	if err != nil {
		return err
	}
	set, here, err := a.ruleSet(files)
	if err != nil {
		return err
	}
	for _, r := range set.Rules() {
		if r.ID == rest[0] && len(rest) == 1 {
			return a.describeRule(r)
		}
	}
	if len(rest) == 1 && isVersion(rest[0]) {
		return a.keptRule(rest[0])
	}
	if len(rest) == 1 && !strings.Contains(rest[0], "/") {
		return noRule(rest[0], set)
	}
	text, err := a.payload(rest[1:])
	if err != nil {
		return err
	}
	doc, err := payload.Parse(text)
	if err != nil {
		return in("the payload", err)
	}
	if role != "" {
		who.Roles = strings.Split(role, ",")
	}
	who.Tenant = a.tenant
	f := constitution.Facts{Boundary: rest[0], Who: who, Payload: doc.Value(), PayloadSize: len(text), Now: time.Now()}
	return a.explainRules(set, f, func(f *constitution.Facts) (err error) {
		f.Fetched, err = a.fetchFacts(set, here, f, given)
		return err
	})
}

// fetchFacts fetches the facts that the rules on a request name, as the daemon
// would, but for those that are given as NAME=JSON.
func (a *app) fetchFacts(
	set *constitution.Set, here *config.RuleTexts, f *constitution.Facts, given []string,
) (map[string]constitution.Fetched, error) {
	out := map[string]constitution.Fetched{}
	for _, s := range given {
		name, text, ok := strings.Cut(s, "=")
		doc, err := payload.ParseLimited([]byte(text), constitution.MaxFact, constitution.MaxFactDepth)
		if !ok || err != nil {
			return nil, usage("`--fact 'peers=[\"a\"]'`", "--fact is NAME=JSON")
		}
		out[name] = constitution.Fetched{Value: doc.Value(), Text: []byte(text)}
	}
	names := slices.DeleteFunc(set.Facts(f.Boundary, constitution.OnRequest), func(name string) bool { _, there := out[name]; return there })
	if len(names) == 0 || here.Fetch == nil {
		return out, nil
	}
	e, _, err := a.makeEngine(redactFlags{masks: "ledger"})
	if err != nil {
		return nil, err
	}
	maps.Copy(out, here.Fetch.Fetch(a.ctx, names, func() ([]byte, error) {
		text, err := json.Marshal(f.Payload)
		if err != nil {
			return nil, err
		}
		res, err := e.JSON(text)
		if err != nil {
			return nil, err
		}
		return json.Marshal(kernel.FactRequest{Boundary: f.Boundary, Operation: f.Operation, Risk: f.Risk, Tenant: f.Who.Tenant, Principal: f.Who.Principal,
			Agent: f.Who.Agent, Kind: f.Who.Kind, Session: f.Who.Session, Payload: res.Out})
	}))
	return out, nil
}

// noRule is the answer to a name that is neither a rule's nor a boundary's, which
// has a slash.
func noRule(id string, set *constitution.Set) error {
	hint := "name a rules file with --rules, or ask about a boundary, such as mcp/bank/pay"
	if near := set.Nearest(id); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no rule %q", clean(id)), Hint: hint}
}

// describeRule shows one rule.
func (a *app) describeRule(r constitution.Info) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s  %s\n", a.look().bold(clean(r.ID)), clean(r.Where))
	rows := [][]string{{"    judges", string(r.On) + " at " + r.Boundary}, {"    when", r.When},
		{"    severity", r.Severity}, {"    mode", r.Mode}, {"    on error", r.OnError}, {"    version", labelled(r.Label) + r.Version}}
	if r.Cost > 0 {
		rows = append(rows, []string{"    cost", fmt.Sprintf("%d of %d", r.Cost, constitution.MaxRuleCost)})
	}
	for _, p := range r.Past {
		rows = append(rows, []string{"    asks", fmt.Sprintf("%s (%s), cost %d", p.Text, p.Where, p.Cost)})
	}
	if len(r.Facts) > 0 {
		rows = append(rows, []string{"    facts", strings.Join(r.Facts, ", ")})
	}
	table(a.out, rows)
	return nil
}

// labelled is a file's own word for a version, before the true one.
func labelled(label string) string {
	if label == "" {
		return ""
	}
	return clean(label) + ", "
}

// explainRules asks every rule and shows what it thinks.
func (a *app) explainRules(set *constitution.Set, f constitution.Facts, fetch func(*constitution.Facts) error) error {
	_, l, err := a.loads()
	if err != nil {
		a.say("the configuration does not load, so that operation and risk are not known: %v", err)
	} else {
		f.Operation, f.Risk = listedAs(l.Config, f.Boundary)
	}
	if err := fetch(&f); err != nil {
		return err
	}
	e, _, err := a.makeEngine(redactFlags{masks: "ledger"})
	if err != nil {
		return err
	}
	h, err := a.pastHere(set, f.Now)
	if err != nil {
		return err
	}
	f.Sights = set.See(a.ctx, f)
	ticket := h.Add(f.Now, f.Who.Tenant, "what is explained", f.Sights)
	defer ticket.Drop()
	f.History = ticket
	all, err := set.Explain(a.ctx, constitution.OnRequest, f)
	if err != nil {
		return err
	}
	if f.Boundary == goalrule.Boundary {
		a.hint("rules on goals are asked by `holdfast goal check`")
	}
	for i := range all {
		all[i].Message = masked(e, all[i].Message)
		for n := range all[i].Values {
			all[i].Values[n].Is = masked(e, all[i].Values[n].Is)
		}
	}
	if a.json {
		return a.printJSON(all)
	}
	a.drawExplained(all)
	if len(all) == 0 {
		a.hint("no rules are in force: name a file with --rules, or list it under rules: files: in holdfast.yaml")
	}
	return nil
}

func masked(e *redact.Engine, s string) string { return string(e.Text([]byte(s)).Out) }

// listedAs is the operation and the risk that the configuration gives a boundary:
// by its exact name, else by the longest pattern.
func listedAs(c *config.Config, boundary string) (operation string, risk holdfast.Risk) {
	best := -1
	for i := range c.Boundaries {
		b := &c.Boundaries[i]
		start, glob := strings.CutSuffix(b.Boundary, "*")
		n := len(start)
		switch {
		case !glob && start == boundary:
			n = len(boundary) + 1
		case !glob || !strings.HasPrefix(boundary, start):
			continue
		}
		if n > best {
			best, operation, risk = n, b.Operation, b.Risk
		}
	}
	return operation, risk
}

// drawExplained draws the rules that are asked with their parts, then the others.
func (a *app) drawExplained(all []constitution.Explained) {
	l := a.look()
	asked, spent := 0, uint64(0)
	for _, e := range all {
		if !e.Asked {
			continue
		}
		asked, spent = asked+1, spent+e.Cost
		fmt.Fprintf(a.out, "%s %s  %s%s  %s\n", l.mark(e.Verdict), l.bold(clean(e.Rule.ID)), e.Verdict, spokenAs(&e), l.dim(fmt.Sprintf("%s, cost %d", clean(e.Rule.Where), e.Cost)))
		for _, v := range e.Values {
			fmt.Fprintf(a.out, "    %s  %s  %s\n", clean(v.Text), l.dim("="), clean(v.Is))
		}
	}
	for _, e := range all {
		if !e.Asked {
			fmt.Fprintf(a.out, "%s\n", l.dim("- "+clean(e.Rule.ID)+"  not asked: "+clean(e.Why)))
		}
	}
	fmt.Fprintf(a.out, "%d of %d rules asked, cost %d of %d\n", asked, len(all), spent, constitution.MaxJudgeCost)
}

func spokenAs(e *constitution.Explained) string {
	switch {
	case !e.Spoke:
		return ": it does not object"
	case e.Rule.Mode == "observe":
		return ": " + clean(e.Message) + " (it only observes)"
	}
	return ": " + clean(e.Message)
}

// pastHere is what the rules remember, read from the ledger that is here, as far
// as records tell it. Without a ledger nothing has happened.
func (a *app) pastHere(set *constitution.Set, now time.Time) (*history.History, error) {
	h := history.New(history.MaxEntries)
	pasts, _ := h.Use(now, set.Pasts())
	if len(pasts) > 0 {
		err := a.read(func(_ daemon.Paths, s kernel.Store) error { return a.loadPast(s, h, pasts, now) })
		if err != nil && !errors.Is(err, errNoState) {
			return nil, err
		}
	}
	for _, p := range pasts {
		h.Ready(p.ID)
	}
	return h, nil
}
