package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// WatchConfig is what is out of the ordinary whatever was learned (spec 001, layer
// 5 and "Metrics to Track"; D39, D41a).
type WatchConfig struct {
	StepsPerHour   float64           `yaml:"iterations_per_hour" min:"1" max:"1000000" doc:"agent/step crossings of one agent in an hour; 20 if absent"`
	CostPerHour    int64             `yaml:"money_micro_per_hour" min:"1" doc:"what one agent may cost in an hour, in millionths of a dollar; 5000000 if absent"`
	FilesPerCommit int               `yaml:"files_per_commit" min:"1" max:"1000000" doc:"files that one commit changes; 10 if absent"`
	ErrorRate      float64           `yaml:"error_rate" min:"0.001" max:"1" doc:"the share of an agent's last 100 actions that may fail; 0.05 if absent"`
	Unchecked      Duration          `yaml:"unchecked" doc:"how long agents act without a person's look; 24h if absent"`
	Responses      map[string]string `yaml:"responses" enum:"record,alert,pause,halt" doc:"condition: what is done about it, where that is not what its severity asks for: record, alert people, pause the agent and ask a person, or halt everything; a milder one weakens"`
}

// WatchLimits are the watch's.
func (c *Config) WatchLimits() watch.Limits {
	w := &c.Watch
	l := watch.Limits{StepsPerHour: w.StepsPerHour, CostPerHour: w.CostPerHour, FilesPerCommit: w.FilesPerCommit, ErrorRate: w.ErrorRate,
		Unchecked: time.Duration(w.Unchecked), Looser: c.Unsafe.WatchLooser, Responses: map[watch.Name]watch.Response{}}
	for name, word := range w.Responses {
		if r, ok := watch.ResponseOf(word); ok {
			l.Responses[watch.Name(name)] = r
		}
	}
	return l
}

// watchLimit is one of them beside the document's.
type watchLimit struct {
	name     string
	own, max float64
	shown    string
}

func (c *WatchConfig) all() []watchLimit {
	d := watch.Document()
	return []watchLimit{
		{"iterations_per_hour", c.StepsPerHour, d.StepsPerHour, "20"},
		{"money_micro_per_hour", float64(c.CostPerHour), float64(d.CostPerHour), "5000000"},
		{"files_per_commit", float64(c.FilesPerCommit), float64(d.FilesPerCommit), "10"},
		{"error_rate", c.ErrorRate, d.ErrorRate, "0.05"},
		{"unchecked", float64(c.Unchecked), float64(d.Unchecked), "24h"},
	}
}

// looserWatch is one sentence for each limit that exceeds the document's, and for each
// response that is milder than its condition's severity asks for.
func (c *Config) looserWatch() []string {
	if !c.Unsafe.WatchLooser {
		return nil
	}
	var out []string
	for _, l := range c.Watch.all() {
		if l.own > l.max {
			out = append(out, fmt.Sprintf("watch.%s: it exceeds %s, which is the most", l.name, l.shown))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Watch.Responses)) {
		if own, usual, milder := c.Watch.milder(name); milder {
			out = append(out, fmt.Sprintf("watch.responses: %s is answered with %s, where its severity asks for %s", name, own, usual))
		}
	}
	return out
}

// milder says what is done about a condition, and what its severity asks for.
func (c *WatchConfig) milder(name string) (own, usual watch.Response, milder bool) {
	own, ok := watch.ResponseOf(c.Responses[name])
	known, there := conditionOf(name)
	usual = known.Severity.Response()
	return own, usual, ok && there && own < usual
}

func conditionOf(name string) (watch.Condition, bool) {
	all := watch.Conditions()
	i := slices.IndexFunc(all, func(c watch.Condition) bool { return string(c.Name) == name })
	if i < 0 {
		return watch.Condition{}, false
	}
	return all[i], true
}

func (k *checker) watch(c *Config) {
	w := &c.Watch
	for _, l := range w.all() {
		if l.own > l.max && !c.Unsafe.WatchLooser {
			k.fail(k.at("watch."+l.name), "set a tighter one, or unsafe.watch_looser", "watch.%s: %s is the most", l.name, l.shown)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Responses)) {
		k.response(c, name)
	}
	for i := range c.Boundaries {
		if b := &c.Boundaries[i]; strings.HasPrefix(b.Boundary, "watch/") {
			k.fail(b.At, "watch: responses: says what is done about a condition", "the boundary %q is Holdfast's own",
				excerpt.Word(b.Boundary))
		}
	}
}

func (k *checker) response(c *Config, name string) {
	where := k.at("watch.responses." + name)
	known, there := conditionOf(name)
	if !there {
		hint := "the conditions are " + strings.Join(conditionNames(), ", ")
		if near := suggestWord(name, conditionNames()); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		k.fail(where, hint, "watch.responses: there is no condition %q", excerpt.Word(name))
		return
	}
	own, usual, milder := c.Watch.milder(name)
	switch {
	case known.Answered:
		k.fail(where, "it always pauses the agent and asks a person", "watch.responses: what is done about %s is not to be chosen", name)
	case milder && !c.Unsafe.WatchLooser:
		k.fail(where, "name "+usual.String()+" or more, or set unsafe.watch_looser", "watch.responses: %s is milder than %s asks for, which is %s", own, name, usual)
	case own == watch.Pause && !known.OfAgent:
		k.fail(where, "name alert or halt", "watch.responses: %s is of no agent that could be paused", name)
	}
}

func conditionNames() []string {
	var out []string
	for _, c := range watch.Conditions() {
		out = append(out, string(c.Name))
	}
	return out
}
