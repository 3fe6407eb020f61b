//go:build !linux

package sandboxtest

import (
	"errors"
	"os"
	"os/exec"
)

// apart does nothing: there are no tiers here.
func apart(*exec.Cmd, bool, bool) {}

func lockSeen(*os.File, int64, int64) (bool, error) { return false, errors.ErrUnsupported }
