package daemon

import "github.com/holdfast-dev/holdfast/internal/config"

// Names of the configuration for programs that embed Holdfast.
type (
	// Config is holdfast.yaml.
	Config = config.Config
	// Loaded is a configuration that was read and checked as a whole.
	Loaded = config.Loaded
	// SandboxConfig is the section sandbox.
	SandboxConfig = config.SandboxConfig
)

// Load reads the configuration at path, which is absolute, and every file it names. An empty path gives the
// defaults. No file may be in one of the work trees, where agents write (D49).
func Load(path string, workTrees ...string) (*Loaded, error) { return config.Load(path, workTrees...) }
