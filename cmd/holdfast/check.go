package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

func checkCommand() command {
	return command{name: "check", about: "say what would happen at a boundary, recording nothing", run: check, help: `
Ask the gates what would happen, until one refuses. No crossing is made,
nothing is reserved and nobody is asked. Exit code: 0 it would act, 3 it would
be refused, 4 a person would be asked, 5 everything is halted.

    holdfast check BOUNDARY [PAYLOAD | -] [flags]

` + askFlags + `
Without PAYLOAD the document is read from standard input.

    $ holdfast check agent/step '{"action":"plan"}' && echo go on
    allow  agent/step
    go on
`}
}

const askFlags = `    --agent NAME     who would ask; cli if absent
    --kind KIND      the kind of agent, as the configuration lists them
    --session NAME   one a day for each agent, if absent
    --chain NAME     the chain of steps it belongs to, over agents and sessions
    --token T        a JWT in place of the one the runtime would make; @FILE
                     reads it from a file
`

// maxToken bounds a token's file, in bytes.
const maxToken = 16 << 10

// asking holds the flags of who asks.
type asking struct{ agent, kind, session, chain, token string }

func (q *asking) flags(fs *flag.FlagSet) {
	fs.StringVar(&q.agent, "agent", "cli", "")
	fs.StringVar(&q.kind, "kind", "", "")
	fs.StringVar(&q.session, "session", "", "")
	fs.StringVar(&q.chain, "chain", "", "")
	fs.StringVar(&q.token, "token", "", "")
}

// ask makes the question of boundary and payload.
func (q *asking) ask(a *app, boundary string, payload []byte) (api.Ask, error) {
	out := api.Ask{Boundary: boundary, Payload: payload, Agent: q.agent, Kind: q.kind, Session: q.session, Chain: q.chain, Token: q.token}
	if err := a.local(); err != nil {
		return out, err
	}
	if file, ok := strings.CutPrefix(q.token, "@"); ok {
		_, b, err := a.input([]string{file}, maxToken)
		if err != nil {
			return out, err
		}
		if out.Token = strings.TrimSpace(string(b)); out.Token == "" {
			return out, fail("", "%s holds no token", file)
		}
	}
	if err := out.Named(); err != nil {
		return out, usage("", "%s", err.(*holdfast.Error).Why)
	}
	return out, nil
}

// local refuses a --tenant where agents of this machine act, or a token says for
// whom: it would be believed and change nothing.
func (a *app) local() error {
	if a.tenant == holdfast.Local {
		return nil
	}
	return api.NotLocal()
}

// question reads BOUNDARY [PAYLOAD | -] and the flags.
func (a *app) question(name string, args []string) (api.Ask, error) {
	fs, q := a.flags(name), asking{}
	q.flags(fs)
	rest, err := a.parse(fs, args, 1, 2)
	if err != nil {
		return api.Ask{}, err
	}
	payload, err := a.payload(rest[1:])
	if err != nil {
		return api.Ask{}, err
	}
	return q.ask(a, rest[0], payload)
}

// payload is what args hold, or standard input. One that is too large is cut
// just beyond the limit, so that K1 refuses it.
func (a *app) payload(args []string) ([]byte, error) {
	if len(args) == 1 && args[0] != "-" {
		return []byte(args[0]), nil
	}
	if isTerminal(a.in) && len(args) == 0 {
		return nil, usage("name one, such as '{}', or - to type it", "there is no payload")
	}
	_, b, err := a.input(nil, maxFilter)
	if err == nil && len(b) > holdfast.MaxPayload+1 {
		b = b[:holdfast.MaxPayload+1]
	}
	return b, err
}

func check(a *app, args []string) error {
	ask, err := a.question("check", args)
	if err != nil {
		return err
	}
	return a.act(func(c *api.Client, _ *api.Status) error {
		ans, err := c.Check(a.ctx, ask)
		if err != nil {
			return err
		}
		if a.json {
			err = a.printJSON(ans)
		} else {
			err = a.sayAnswer(wouldHold(ans))
		}
		if err != nil {
			return err
		}
		return ended(ans)
	})
}

// wouldHold puts what a check says of a hold as what it is: nobody was asked,
// so that there is nothing to decide yet.
func wouldHold(ans *api.Answer) *api.Answer {
	if o := ans.Outcome; o != nil && o.Verdict == holdfast.Hold && o.Review == "" && ans.Failure == nil {
		for i := range o.Opinions {
			if op := &o.Opinions[i]; op.Verdict == holdfast.Hold {
				op.Why, op.Hint = "it would be held: "+op.Why, "a check asks nobody: a person is asked when it is tried"
			}
		}
	}
	return ans
}

// ended turns an answer into the exit code.
func ended(ans *api.Answer) error {
	code := answerCode(ans)
	if code == exitYes {
		return nil
	}
	return status(code)
}

func answerCode(ans *api.Answer) int {
	var kind holdfast.Kind
	if ans.Failure != nil {
		kind = ans.Failure.Kind
	}
	if ans.Outcome == nil {
		return exitCode(ans.Failure.Err())
	}
	if op := ans.Outcome.Deciding(); kind == "" && op.Verdict == holdfast.Deny {
		kind = op.Kind
	}
	return verdictCode(ans.Outcome.Verdict, kind)
}

// sayAnswer writes the verdict to standard output, and why it is not yes to
// standard error.
func (a *app) sayAnswer(ans *api.Answer) error {
	o := ans.Outcome
	if o == nil {
		return ans.Failure.Err()
	}
	if _, err := fmt.Fprintf(a.out, "%s  %s%s\n", o.Verdict, clean(o.Boundary), prefix("  ", o.Crossing)); err != nil {
		return err
	}
	op, hint := o.Deciding(), ""
	switch {
	case ans.Failure != nil:
		a.sayLines(ans.Failure.Why + gate(ans.Failure.Gate))
		hint = ans.Failure.Hint
	case o.Verdict != holdfast.Allow:
		a.sayLines(op.Why + gate(op.Gate.String()))
		hint = op.Hint
	}
	if approve := "holdfast review approve " + o.Review; o.Review != "" {
		hint = strings.ReplaceAll(hint, approve, a.forState(approve))
	}
	a.hints(hint)
	for _, w := range o.Weakened {
		a.say("weakened: %s", w)
	}
	return nil
}

func gate(name string) string { return prefix(" (", name) + map[bool]string{true: ")"}[name != ""] }

func (a *app) hints(hint string) {
	if hint != "" {
		a.hint("%s", hint)
	}
}

// forState completes a command that people are told to run with the state
// directory, where that was named by a flag.
func (a *app) forState(cmd string) string {
	if a.state == "" {
		return cmd
	}
	return "holdfast --state " + quoted(a.state) + strings.TrimPrefix(cmd, "holdfast")
}

// quoted makes a word safe to paste into a shell.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
