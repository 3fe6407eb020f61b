package constitution_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

func ExampleSet_Judge() {
	set, err := constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(`
rules:
  - id: no-etc
    on: request
    boundary: mcp/files/*
    when: args.path.startsWith("/etc/")
    message: nothing under /etc is written
    hint: write under /srv instead
`)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []any{"/srv/a.txt", "/etc/passwd", nil} {
		facts := constitution.Facts{Boundary: "mcp/files/write", Payload: map[string]any{"path": path}}
		found := set.Judge(context.Background(), constitution.OnRequest, facts)
		if len(found) == 0 {
			fmt.Println("no rule objects")
		}
		for _, f := range found {
			fmt.Printf("%s: %s (%s): %s\n", f.Verdict, f.Rule, f.Where, f.Message)
		}
	}
	// Output:
	// no rule objects
	// deny: no-etc (rules.yaml:3): nothing under /etc is written
	// deny: no-etc (rules.yaml:3): the rule failed: could not be evaluated: a value is of another type than the rule expects
}

func ExampleLoad() {
	_, err := constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(`rules:
  - id: small
    on: request
    when: payload_sise > 1000
    message: too large
    sevrity: warn
`)}})
	fmt.Println(err)
	// Output:
	// PredicateParseError: rules.yaml:4:11: there is no "payload_sise"
	// PredicateParseError: rules.yaml:6:5: unknown key "sevrity"
}
