//go:build !linux

package sandboxtest

import "os/exec"

// apart does nothing: there are no tiers here.
func apart(*exec.Cmd, bool, bool) {}
