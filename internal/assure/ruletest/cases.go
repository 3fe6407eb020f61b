package ruletest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// document is an archive that was read.
type document struct {
	name       string
	rules      []constitution.Source
	boundaries []constitution.Boundary
	named      map[string]*facts
	used       map[string]bool
	given      map[string]bool // facts that cases give
	now        time.Time
	sequence   bool
	common     facts
	history    []entry
	cases      []question
}

// facts are what a test says of a request, as text by name; payload and output
// as JSON. A nil member says nothing.
type facts struct {
	line    int
	words   map[string]string
	roles   []string
	payload []byte
	output  []byte
	fetched map[string]constitution.Fetched
}

// entry is something that began before.
type entry struct {
	facts
	ago time.Duration
}

// question is one case.
type question struct {
	facts
	name string
	on   constitution.On
	at   time.Duration
	want want
}

func factNames() []string {
	return []string{"boundary", "operation", "risk", "tenant", "principal", "roles", "agent", "subagent", "kind", "session", "intent", "chain", "level", "args", "json", "output", "exit_code", "fetched"}
}

func (d *document) readBoundaries(p *part) error {
	n, err := d.tree(p)
	if err != nil {
		return err
	}
	m, err := d.members(n, "boundaries.yaml", nil)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		schema, err := d.json(nil, m[name])
		if err != nil {
			return err
		}
		d.boundaries = append(d.boundaries, constitution.Boundary{Name: name, Schema: schema})
	}
	return nil
}

// readFacts reads a file of facts. JSON is YAML too, so that its lines are known.
func (d *document) readFacts(name string, p *part) error {
	if !json.Valid([]byte(p.text)) {
		return d.wrong(p.line, p.name+" is not JSON", "")
	}
	n, err := d.tree(p)
	if err != nil {
		return err
	}
	m, err := d.members(n, p.name, factNames())
	if err != nil {
		return err
	}
	f := &facts{line: p.line}
	d.named[name] = f
	return d.factsOf(f, m)
}

func (d *document) readCases(p *part) error {
	n, err := d.tree(p)
	if err != nil {
		return err
	}
	m, err := d.members(n, "cases.yaml", []string{"now", "sequence", "facts", "history", "cases"})
	if err != nil {
		return err
	}
	if v := m["now"]; v != nil {
		if d.now, err = time.Parse(time.RFC3339Nano, v.Value); err != nil {
			return d.wrong(v.Line, "now is no time", "such as 2026-11-22T12:00:00Z")
		}
	}
	if v := m["sequence"]; v != nil {
		if d.sequence, err = strconv.ParseBool(v.Value); err != nil {
			return d.wrong(v.Line, "sequence is neither true nor false", "")
		}
	}
	if v := m["facts"]; v != nil {
		common, err := d.members(v, "facts", factNames())
		if err != nil {
			return err
		}
		if err := d.factsOf(&d.common, common); err != nil {
			return err
		}
	}
	if err := d.readHistory(m["history"]); err != nil {
		return err
	}
	if m["cases"] == nil {
		return d.wrong(n.Line, "there are no cases", "")
	}
	return d.readQuestions(m["cases"])
}

func (d *document) readHistory(n *yaml.Node) error {
	list, err := d.list(n, "history", maxHistory)
	if err != nil {
		return err
	}
	for _, n := range list {
		m, err := d.members(n, "an entry of history", append(factNames(), "ago", "facts"))
		if err != nil {
			return err
		}
		e := entry{facts: d.common.copy(n.Line)}
		if m["ago"] == nil {
			return d.wrong(n.Line, "an entry of history does not say how long ago it began", "such as ago: 2h")
		}
		if e.ago, err = d.span(m["ago"], "ago"); err != nil {
			return err
		}
		if err := d.ownFacts(&e.facts, m); err != nil {
			return err
		}
		d.history = append(d.history, e)
	}
	return nil
}

func (d *document) readQuestions(n *yaml.Node) error {
	list, err := d.list(n, "cases", maxCases)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return d.wrong(n.Line, "there are no cases", "")
	}
	for i, n := range list {
		m, err := d.members(n, "a case", append(factNames(), "name", "on", "at", "facts", "want", "rules", "says"))
		if err != nil {
			return err
		}
		q := question{facts: d.common.copy(n.Line), name: fmt.Sprint("case ", i+1), on: constitution.OnRequest}
		if m["name"] != nil {
			if q.name, err = d.text(m["name"], "name"); err != nil {
				return err
			}
		}
		if v := m["on"]; v != nil {
			if q.on = constitution.On(v.Value); q.on != constitution.OnRequest && q.on != constitution.OnOutput {
				return d.wrong(v.Line, "on is neither request nor output", "goals are asked at the boundary goal/admit")
			}
		}
		if v := m["at"]; v != nil {
			if q.at, err = d.span(v, "at"); err != nil {
				return err
			}
		}
		if err := d.ownFacts(&q.facts, m); err != nil {
			return err
		}
		if q.want, err = d.wanted(n, m); err != nil {
			return err
		}
		d.cases = append(d.cases, q)
	}
	return nil
}

// ownFacts reads facts on top of those that are named.
func (d *document) ownFacts(f *facts, m map[string]*yaml.Node) error {
	if v := m["facts"]; v != nil {
		base := d.named[v.Value]
		if base == nil {
			return d.wrong(v.Line, "there are no facts "+v.Value, "write a file "+v.Value+".facts.json")
		}
		d.used[v.Value] = true
		f.over(base)
	}
	return d.factsOf(f, m)
}

func (d *document) span(n *yaml.Node, what string) (time.Duration, error) {
	s, err := time.ParseDuration(n.Value)
	if err != nil || s < 0 {
		return 0, d.wrong(n.Line, what+" is no length of time", "such as 90s, 2h or 24h")
	}
	return s, nil
}

// factsOf reads those members of m that are facts.
func (d *document) factsOf(f *facts, m map[string]*yaml.Node) error {
	for _, name := range factNames() {
		n := m[name]
		if n == nil {
			continue
		}
		var err error
		switch name {
		case "args":
			f.payload, err = d.json(nil, n)
		case "json":
			var raw string
			raw, err = d.text(n, name)
			f.payload = []byte(raw)
		case "output":
			f.output, err = d.json(nil, n)
		case "fetched":
			f.fetched, err = d.fetched(n)
		case "roles":
			f.roles, err = d.texts(n, name)
		default:
			err = d.word(f, name, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *document) word(f *facts, name string, n *yaml.Node) error {
	s, err := d.text(n, name)
	if err != nil {
		return err
	}
	if f.words == nil {
		f.words = map[string]string{}
	}
	f.words[name] = s
	if _, err := f.facts(d.now); err != nil {
		return d.wrong(n.Line, fmt.Sprintf("%s: %v", name, err), "")
	}
	return nil
}

func (d *document) texts(n *yaml.Node, what string) ([]string, error) {
	list, err := d.list(n, what, 1000)
	out := make([]string, 0, len(list))
	for _, c := range list {
		s, err := d.text(c, what)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, err
}

func (f *facts) copy(line int) facts {
	out := *f
	out.line, out.words = line, maps.Clone(f.words)
	return out
}

// over lays what other says over f.
func (f *facts) over(other *facts) {
	if f.words == nil {
		f.words = map[string]string{}
	}
	maps.Copy(f.words, other.words)
	if other.roles != nil {
		f.roles = other.roles
	}
	if other.payload != nil {
		f.payload = other.payload
	}
	if other.output != nil {
		f.output = other.output
	}
	if other.fetched != nil {
		f.fetched = other.fetched
	}
}

// facts are those of constitution, without payload and output.
func (f *facts) facts(now time.Time) (constitution.Facts, error) {
	w := f.words
	out := constitution.Facts{Boundary: w["boundary"], Operation: w["operation"], Now: now, Fetched: f.fetched, Who: holdfast.Identity{
		Tenant: w["tenant"], Principal: w["principal"], Roles: f.roles, Agent: w["agent"], Sub: w["subagent"], Kind: w["kind"],
		Session: w["session"], Intent: w["intent"], Chain: w["chain"]}}
	if out.Who.Tenant == "" {
		out.Who.Tenant = holdfast.Local
	}
	var err error
	if s := w["risk"]; s != "" {
		err = out.Risk.UnmarshalText([]byte(strings.ToUpper(s)))
	}
	if s := w["level"]; s != "" && err == nil {
		err = out.Level.UnmarshalText([]byte(s))
	}
	if s := w["exit_code"]; s != "" && err == nil {
		out.ExitCode, err = strconv.Atoi(s)
	}
	return out, err
}
