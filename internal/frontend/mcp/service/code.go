package service

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/code"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// openCode is the MCP server of Holdfast's own that runs code, for one identity.
func (s *Service) openCode(ctx context.Context, b backend, token func(context.Context) (holdfast.Secret,
	error)) (gateway.Conn, error) {
	if err := s.mayOpen(b)(ctx); err != nil {
		return nil, err
	}
	commands := s.Commands()
	return code.Connect(code.Config{Version: s.Version, Panicked: s.Panicked, Run: func(ctx context.Context,
		r code.Request) code.Answer {
		x, err := runCode(ctx, commands, token, r)
		if err != nil {
			return refusedCode(err, s.maskText)
		}
		return ranCode(x)
	}}), nil
}

// runCode makes the crossing of exec/LANGUAGE that the tool's call came to.
func runCode(ctx context.Context, commands Commands, token func(context.Context) (holdfast.Secret, error),
	r code.Request) (*api.Executed, error) {
	if r.Language == sandbox.Static {
		return nil, &holdfast.Error{Kind: holdfast.KindLanguage, Why: "a compiled program is no text", Hint: "take python3 or node"}
	}
	if r.Timeout < 0 || r.Timeout > sandbox.LimitsOf(posture.TierVM).MaxTimeout.Seconds() || math.IsNaN(r.Timeout) || r.MemoryMB < 0 {
		return nil, &holdfast.Error{Kind: holdfast.KindLimit, Why: "the limits are none", Hint: "ask for at most 30 seconds and 16 to 512 MB; in a container or VM 3600 seconds, and 4096 MB or what its guests have"}
	}
	tok, err := token(ctx)
	if err != nil {
		return nil, err
	}
	leave, err := commands.Enter(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer leave()
	files := map[string][]byte{}
	for name, text := range r.Files {
		files[name] = []byte(text)
	}
	return commands.Execute(ctx, api.Execution{Token: tok.Reveal(), RequestID: uuid.NewString(), Language: r.Language, Code: []byte(r.Code), Files: files,
		Timeout: time.Duration(r.Timeout * float64(time.Second)), MemoryMB: r.MemoryMB, Tier: r.Tier, Evidence: r.Evidence})
}

// refusedCode tells a model why nothing ran.
func refusedCode(err error, mask func(string) string) code.Answer {
	why, hint := usage.Explain(err)
	if hint != "" {
		why += "\nhint: " + hint
	}
	return code.Answer{Text: "nothing was run: " + mask(why), Failed: true}
}

// shownFile is how much of a file that the code wrote a model is shown.
const shownFile = 64 << 10

// ranCode is a run as a model reads it.
func ranCode(x *api.Executed) code.Answer {
	if x.Result == nil {
		err := x.Failure.Err()
		if err == nil {
			err = &holdfast.Error{Kind: holdfast.KindInternal, Why: "the run had no result"}
		}
		return refusedCode(err, func(s string) string { return s }) // masked already
	}
	r := x.Result
	var b strings.Builder
	b.WriteString(r.Stdout)
	if r.Stderr != "" {
		fmt.Fprintf(&b, "\n[standard error]\n%s", r.Stderr)
	}
	if r.ExitCode != 0 {
		fmt.Fprintf(&b, "\n[exit code %d, %s]", r.ExitCode, r.State)
	}
	files := map[string]any{}
	for name, text := range r.OutputFiles {
		switch {
		case len(text) > shownFile:
			files[name] = fmt.Sprintf("[%d bytes, too large to be shown]", len(text))
		case !utf8.Valid(text):
			files[name] = fmt.Sprintf("[%d bytes that are no text]", len(text))
		default:
			files[name] = string(text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "\n[file %s]\n%s", name, files[name])
	}
	structured := map[string]any{"exit_code": r.ExitCode, "state": r.State, "stdout": r.Stdout,
		"stderr": r.Stderr, "files": files, "wall_seconds": time.Duration(r.WallTime).Seconds(),
		"tier": r.Posture.Tier.String(), "tier_why": r.Chosen}
	if x.Outcome != nil {
		structured["crossing"] = x.Outcome.Crossing
	}
	return code.Answer{Text: b.String(), Structured: structured, Failed: r.ExitCode != 0}
}
