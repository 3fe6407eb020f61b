package daemon

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
func (d *Daemon) openCode(ctx context.Context, b backend, token func(context.Context) (holdfast.Secret, error)) (gateway.Conn, error) {
	if err := d.mayOpen(b)(ctx); err != nil {
		return nil, err
	}
	commands := d.commands()
	return code.Connect(code.Config{Version: d.opt.Version, Panicked: d.panicked, Run: func(ctx context.Context, r code.Request) code.Answer {
		x, err := runCode(ctx, commands, token, r)
		if err != nil {
			return refusedCode(err, d.maskText)
		}
		return ranCode(x)
	}}), nil
}

// runCode makes the crossing of exec/LANGUAGE that the tool's call came to.
func runCode(ctx context.Context, commands *api.Server, token func(context.Context) (holdfast.Secret, error), r code.Request) (*api.Executed, error) {
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
	d := x.Result
	var b strings.Builder
	b.WriteString(d.Stdout)
	if d.Stderr != "" {
		fmt.Fprintf(&b, "\n[standard error]\n%s", d.Stderr)
	}
	if d.ExitCode != 0 {
		fmt.Fprintf(&b, "\n[exit code %d, %s]", d.ExitCode, d.State)
	}
	files := map[string]any{}
	for name, text := range d.OutputFiles {
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
	s := map[string]any{"exit_code": d.ExitCode, "state": d.State, "stdout": d.Stdout, "stderr": d.Stderr, "files": files, "wall_seconds": time.Duration(d.WallTime).Seconds(),
		"tier": d.Posture.Tier.String(), "tier_why": d.Chosen}
	if x.Outcome != nil {
		s["crossing"] = x.Outcome.Crossing
	}
	return code.Answer{Text: b.String(), Structured: s, Failed: d.ExitCode != 0}
}
