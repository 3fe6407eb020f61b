package daemon

import "github.com/holdfast-dev/holdfast/internal/sandbox/tiers"

// RunHelperRole runs this process as a sandbox's helper, and does not return, if a sandbox
// started the program again as one. Otherwise it returns. Call it first in main, and in
// TestMain of a package whose tests run code: walls are built by a process that has nothing
// else in its memory.
func RunHelperRole() { tiers.RunHelperRole() }

// closeSandboxes closes the tiers, if Open came as far as to make the set.
func (d *Daemon) closeSandboxes() error {
	if d.sandboxes == nil {
		return nil
	}
	return d.sandboxes.Close()
}
