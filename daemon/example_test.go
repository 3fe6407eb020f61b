package daemon_test

import (
	"context"
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
)

// A program that embeds Holdfast opens a state directory of its own and lets
// the kernel run what it wants to do.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	d, err := daemon.Open(ctx, daemon.Options{State: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	token, err := d.Mint(holdfast.Identity{Agent: "nightly"})
	if err != nil {
		fmt.Println(err)
		return
	}
	act := func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, nil }
	req := holdfast.Request{Boundary: "agent/step", Payload: []byte(`{"action":"read the logs"}`), Token: token}
	out, err := d.Kernel.Cross(ctx, req, act)
	fmt.Println(out.Verdict, err)

	out, err = d.Kernel.Cross(ctx, req, act)
	fmt.Println(out.Verdict, err)
	fmt.Println(out.Deciding().Hint)
	// Output:
	// allow <nil>
	// deny BoundsExceeded: the rate is used up: cooldown of 1m0s per agent (contract)
	// there is room again in 1m0s
}
