package main

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// executing is what the flags of exec say.
type executing struct {
	asking
	lang    string
	timeout time.Duration
	memory  int64
	files   repeated
	env     repeated
	narrow  []string
	tier    posture.Tier
	known   posture.Evidence
	out     string
	explain bool
	parsed  bool // the flags were read to their end
}

func (e *executing) flags(fs *flag.FlagSet) {
	e.asking.flags(fs)
	fs.StringVar(&e.lang, "lang", "", "")
	fs.Func("timeout", "", func(s string) (err error) {
		if e.timeout, err = time.ParseDuration(s); err != nil || e.timeout <= 0 {
			return errors.New("it is a duration such as 5s or 300ms")
		}
		return nil
	})
	fs.Func("memory", "", func(s string) (err error) {
		if e.memory, err = strconv.ParseInt(s, 10, 64); err != nil || e.memory <= 0 {
			return errors.New("it is a number of MB such as 128")
		}
		return nil
	})
	fs.Var(&e.files, "file", "")
	fs.Var(&e.env, "env", "")
	fs.Func("narrow", "", e.narrower)
	fs.Func("tier", "", func(s string) error { return e.tier.UnmarshalText([]byte(s)) })
	fs.Func("entropy", "", numberTo(&e.known.Entropy))
	fs.Func("novelty", "", numberTo(&e.known.Novelty))
	fs.Func("trust", "", func(s string) error {
		e.known.Trust = new(holdfast.Level)
		return e.known.Trust.UnmarshalText([]byte(s))
	})
	fs.StringVar(&e.out, "out", "", "")
	fs.BoolVar(&e.explain, "explain", false, "")
}

// numberTo reads a number into what is nil where none was given.
func numberTo(to **float64) func(string) error {
	return func(s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return errors.New("it is a number such as 12.5")
		}
		*to = &f
		return nil
	}
}

// narrower takes the names of system calls. Whether the kernel has them, the
// sandbox knows.
func (e *executing) narrower(list string) error {
	odd := func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	for name := range strings.SplitSeq(list, ",") {
		if name == "" || len(name) > 64 || strings.ContainsFunc(name, odd) {
			return fmt.Errorf("%q is no name of a system call: they are apart by commas, such as mkdir,openat", name)
		}
		e.narrow = append(e.narrow, name)
	}
	return nil
}

// read makes the request of the command line.
func (e *executing) read(a *app, args []string) (x api.Execution, err error) {
	fs := a.flags("exec")
	e.flags(fs)
	rest, err := a.parse(fs, args, 1, -1)
	if err != nil {
		return x, err
	}
	e.parsed = true
	if len(rest) > 1 {
		return x, usage("the program gets no arguments: give data as --file NAME=PATH or --env NAME=VALUE", "exec does not take %q", rest[1])
	}
	return e.request(a, rest)
}

// request makes the request of the flags and the file.
func (e *executing) request(a *app, rest []string) (api.Execution, error) {
	var x api.Execution
	if e.lang == "" {
		return x, usage("name one: --lang python3", "no language is named")
	}
	if err := e.known.Check(); err != nil {
		said := bad(err)
		return x, usage(said.Hint, "%s", said.Why)
	}
	ask, err := e.ask(a, "exec/"+e.lang, nil)
	if err != nil {
		return x, err
	}
	_, code, err := a.input(rest, sandbox.MaxCode)
	if holdfast.KindOf(err) == holdfast.KindPayloadTooLarge {
		err = &holdfast.Error{Kind: holdfast.KindCodeSize, Why: "the code has more than 10 MB", Hint: "give data as --file"}
	}
	if err != nil {
		return x, err
	}
	x = api.Execution{Agent: ask.Agent, Kind: ask.Kind, Session: ask.Session, Chain: ask.Chain, Token: ask.Token, RequestID: uuid.NewString(),
		Language: e.lang, Code: code, Timeout: e.timeout, MemoryMB: e.memory, Narrow: e.narrow,
		Tier: e.tier, Evidence: e.known}
	if x.Files, err = e.given(a); err != nil {
		return x, err
	}
	x.Environment, err = e.variables()
	return x, err
}

func (e *executing) given(a *app) (map[string][]byte, error) {
	files, total := map[string][]byte{}, 0
	for _, f := range e.files {
		name, path, ok := strings.Cut(f, "=")
		if !ok || path == "" {
			return nil, usage("such as --file data.csv=/path/to/data.csv", "--file %q has no NAME=PATH", f)
		}
		if _, twice := files[name]; twice {
			return nil, usage("give each another name", "--file %s is there twice", name)
		}
		_, b, err := a.input([]string{path}, sandbox.MaxFileBytes)
		if err != nil {
			return nil, err
		}
		if total += len(b); total > sandbox.MaxFileBytes {
			return nil, usage("give at most 100 MB", "the files are too large together")
		}
		files[name] = b
	}
	return files, nil
}

func (e *executing) variables() (map[string]string, error) {
	env := map[string]string{}
	for _, v := range e.env {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return nil, usage("such as --env MODE=fast", "--env %q has no NAME=VALUE", name)
		}
		env[name] = value
	}
	return env, nil
}
