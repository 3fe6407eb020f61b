package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/feature/judge"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// JudgeConfig is one judge of actions (spec 001, layer 2; D37).
type JudgeConfig struct {
	Kind     string            `yaml:"kind" need:"yes" enum:"rules,command,llm" doc:"rules: five expressions; command: a program; llm: a model behind an address"`
	Criteria map[string]string `yaml:"criteria" doc:"of kind rules: each of the five criteria: CEL over the request, as confidence has it, that yields 1 to 5"`
	Command  []string          `yaml:"command" doc:"of kind command: program and arguments; it reads the redacted request as JSON and prints the five criteria as JSON"`
	Env      []string          `yaml:"env" doc:"of kind command: names of environment variables that it is given; no others are"`
	API      string            `yaml:"api" enum:"anthropic,openai" doc:"of kind llm: anthropic is the Messages API, openai chat completions, of whoever speaks them"`
	URL      string            `yaml:"url" doc:"of kind llm: the whole address that is posted to; its host is a row of egress.domains, with its credential"`
	Model    string            `yaml:"model" doc:"of kind llm: the model's name"`
	Prompt   string            `yaml:"prompt" doc:"of kind llm: what the model is told; a rubric of the five criteria if absent"`
	Timeout  Duration          `yaml:"timeout" doc:"bounds one answer; 10s if absent, at most 20s"`
	At       string            `yaml:"-"`
}

// maxPrompt bounds what a model is told, in bytes.
const maxPrompt = 64 << 10

func (k *checker) judges(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Judges)) {
		j := c.Judges[name]
		if !serverName().MatchString(name) {
			k.fail(j.At, "letters, digits, and . _ - after the first", "%q is no name for a judge", excerpt.Word(name))
		}
		if t := time.Duration(j.Timeout); t > judge.LongestTime {
			k.fail(j.At, "a request is entered within 30s, judges included", "the judge %s may take at most %s", excerpt.Word(name), judge.LongestTime)
		}
		k.judgeKind(c, name, &j)
	}
	for i := range c.Boundaries {
		b := &c.Boundaries[i]
		if strings.HasPrefix(b.Boundary, judge.BoundaryPrefix) {
			k.fail(b.At, "declare it under judges", "the boundary %q is a judge's own", excerpt.Word(b.Boundary))
		}
		if _, there := c.Judges[b.Judge]; b.Judge != "" && !there {
			hint := "declare it under judges"
			if near := suggestWord(b.Judge, slices.Sorted(maps.Keys(c.Judges))); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			k.fail(b.At, hint, "there is no judge %q", excerpt.Word(b.Judge))
		}
	}
}

func (k *checker) judgeKind(c *Config, name string, j *JudgeConfig) {
	misplaced := func(key, kind string, there bool) {
		if there && j.Kind != kind {
			k.fail(j.At, "", "the judge %s: %s is of kind %s alone", excerpt.Word(name), key, kind)
		}
	}
	misplaced("criteria", "rules", j.Criteria != nil)
	misplaced("command", "command", j.Command != nil)
	misplaced("env", "command", j.Env != nil)
	for key, v := range map[string]string{"api": j.API, "url": j.URL, "model": j.Model, "prompt": j.Prompt} {
		misplaced(key, "llm", v != "")
	}
	switch j.Kind {
	case "rules":
		if j.Timeout != 0 {
			k.fail(j.At, "its cost is bounded", "the judge %s: rules have no timeout", excerpt.Word(name))
		}
		if _, err := j.rules(); err != nil {
			k.errors(err)
		}
	case "llm":
		if j.API == "" || j.Model == "" || j.URL == "" || len(j.Prompt) > maxPrompt {
			k.fail(j.At, "", "the judge %s needs api, url and model, and a prompt of at most %d bytes", excerpt.Word(
				name,
			), maxPrompt)
			return
		}
		k.address(j.At, "url", j.URL, c.Unsafe.PlainHTTP)
	case "command":
		k.command(j.At, j.Command)
		for _, v := range j.Env {
			if !register.IsEnvName(v) {
				k.fail(j.At, "list names; no values stand here", "%q is no name of an environment variable",
					excerpt.Word(v))
			}
		}
	}
}

// rules compiles the five criteria. The error is several joined.
func (j *JudgeConfig) rules() (judge.Rules, error) {
	var out judge.Rules
	var all []error
	names := review.Criteria()
	for _, name := range slices.Sorted(maps.Keys(j.Criteria)) {
		if !slices.Contains(names[:], name) {
			hint := "the five are " + strings.Join(names[:], ", ")
			if near := suggestWord(name, names[:]); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			all = append(all, &holdfast.Error{Kind: holdfast.KindConfidence,
				Rule: j.At, Why: fmt.Sprintf("there is no criterion %q", excerpt.Word(name)), Hint: hint})
		}
	}
	for i, name := range names {
		text, there := j.Criteria[name]
		if !there {
			all = append(all, &holdfast.Error{Kind: holdfast.KindConfidence, Rule: j.At, Why: "the criterion " + name + " is missing"})
			continue
		}
		e, err := constitution.CompileCriterion(text, j.At)
		if err != nil {
			all = append(all, err)
		}
		out[i] = e
	}
	return out, errors.Join(all...)
}

// judges puts the judges into a policy, with the boundaries that those which
// need I/O are asked at.
func (c *Config) judges(p *kernel.Policy) error {
	all := judge.Judges{}
	p.Sections = map[string]any{judge.Name: all}
	for _, name := range slices.Sorted(maps.Keys(c.Judges)) {
		j := c.Judges[name]
		own := j
		own.At = "" // where it stands is no part of what it is
		if own.Kind == "llm" {
			own.Prompt = cmp.Or(own.Prompt, judge.DefaultPrompt)
		}
		text, err := json.Marshal(own)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		made := judge.Configured{Version: hex.EncodeToString(sum[:])}
		within := time.Duration(j.Timeout)
		if within == 0 {
			within = judge.DefaultTime
		}
		switch j.Kind {
		case "rules":
			rules, err := j.rules()
			if err != nil {
				return err
			}
			made.Judge, made.Pure = rules, true
		case "command":
			made.Judge = judge.Command{Argv: j.Command, Env: j.Env, Within: within}
		case "llm":
			made.Judge = judge.LLM{API: j.API, URL: j.URL, Model: j.Model, Prompt: own.Prompt, Within: within}
		default:
			return usage.Errorf("%s: there is no kind of judge %q", j.At, excerpt.Word(j.Kind))
		}
		all[name] = made
		if !made.Pure {
			p.Contracts = append(p.Contracts,
				holdfast.Contract{Boundary: judge.BoundaryPrefix + name, Risk: holdfast.Medium, Operation: "judge",
					Consumes: map[holdfast.Resource]int64{holdfast.Judgements: 1}, Timeout: within + time.Second, Source: j.At})
		}
	}
	return nil
}
