package main

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
)

func stepCommand() command {
	return command{name: "step", about: "make a real crossing of agent/step: the safety check for any script", run: step, help: `
Make one real crossing of the boundary agent/step, which counts against the
agent's iterations and is in the ledger. A script asks before each step of an
agent, and goes on only when the exit code is 0. It is 3 when the step is
refused, 4 when a person must answer first, 5 when everything is halted.

    holdfast step AGENT ACTION [PAYLOAD] [flags]

    --kind KIND      the kind of agent, which decides how many steps a session
                     has; a kind that the configuration does not list has two
    --session NAME   one a day for each agent, if absent
    --chain NAME     the chain of steps it belongs to, over agents and sessions
    --token T        a JWT in place of the one the runtime would make
    --key K          an idempotency key: the same key again is the same step

PAYLOAD is a JSON object whose members stand beside "action".

    $ holdfast step nightly plan --kind code || exit 1
    allow  agent/step  019f...
`}
}

func step(a *app, args []string) error {
	fs, q := a.flags("step"), asking{}
	q.flags(fs)
	idempotency := fs.String("key", "", "")
	rest, err := a.parse(fs, args, 2, 3)
	if err != nil {
		return err
	}
	q.agent = rest[0]
	for i, name := range []string{"AGENT", "ACTION"} {
		if rest[i] == "" {
			return usage("see `holdfast help step`", "%s is empty", name)
		}
	}
	doc, err := stepPayload(rest[1], rest[2:])
	if err != nil {
		return err
	}
	ask, err := q.ask(a, "agent/step", doc)
	if err != nil {
		return err
	}
	ask.IdempotencyKey = *idempotency
	return a.act(func(c *api.Client, _ *api.Status) error {
		ans, err := c.Cross(a.ctx, ask)
		if err != nil {
			return err
		}
		if a.json {
			err = a.printJSON(ans)
		} else {
			err = a.sayAnswer(ans)
		}
		if err != nil {
			return err
		}
		return ended(ans)
	})
}

// stepPayload is {"action": action} with the members of the object in args.
func stepPayload(action string, args []string) ([]byte, error) {
	members := map[string]any{}
	if len(args) == 1 {
		doc, err := payload.Parse([]byte(args[0]))
		if err != nil {
			return nil, in("PAYLOAD", err)
		}
		object, ok := doc.Value().(map[string]any)
		if !ok {
			return nil, usage(`such as '{"files": 3}'`, "PAYLOAD must be a JSON object")
		}
		if _, twice := object["action"]; twice {
			return nil, usage("", "the action is named beside PAYLOAD, not in it")
		}
		for k, v := range object {
			members[k] = v
		}
	}
	members["action"] = action
	b, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("make the payload: %w", err)
	}
	return b, nil
}
