//go:build !linux

package process

import (
	"context"
	"os"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Workspaces do not exist here: their walls are Linux's.
type Workspaces struct{}

// OpenWorkspaces returns what runs nothing.
func OpenWorkspaces() *Workspaces { return &Workspaces{} }

// Close does nothing.
func (*Workspaces) Close() error { return nil }

// Posture is that nothing stands.
func (*Workspaces) Posture() posture.Posture { return posture.Posture{} }

// Hand takes the sockets of a network; none is made here.
type Hand func(ctx context.Context, sockets []*os.File) error

// RunConnected is a SpawnError.
func (*Workspaces) RunConnected(context.Context, sandbox.Workspace, sandbox.Streams, Hand) (*posture.Result, error) {
	_, err := Open(nil, Config{})
	return nil, err
}

// WorkTree is a SpawnError.
func WorkTree(string, string, bool) (string, error) {
	_, err := Open(nil, Config{})
	return "", err
}

// Toolbox is a SpawnError.
func Toolbox([]string) ([]string, error) {
	_, err := Open(nil, Config{})
	return nil, err
}

// ToolPath is nothing.
func ToolPath(string, []string) string { return "" }

// FindProgram is a SpawnError.
func FindProgram(string, string, string, string, string, []string, bool) (string, error) {
	_, err := Open(nil, Config{})
	return "", err
}
