package process

import (
	"context"

	"github.com/holdfast-dev/holdfast"
)

// Beside returns what another sandbox needs to do the same as a run of the
// language, making the root where there is none. The root stays as it is until
// the tier is closed; whoever uses it may only read it.
func (t *Tier) Beside(ctx context.Context, asked string) (Beside, error) {
	l, err := t.language(ctx, asked)
	if err != nil {
		return Beside{}, err
	}
	z, err := t.launcher(ctx, l)
	if err != nil {
		return Beside{}, err
	}
	if l.Host == "" {
		return Beside{}, &holdfast.Error{Kind: holdfast.KindLanguage, Why: l.Exact + " has no program of its own", Hint: "name python3 or node"}
	}
	return Beside{Program: l.Host, Flags: l.Flags, Env: l.Environment(nil), Root: z.root.Path, Inside: l.Program}, nil
}
