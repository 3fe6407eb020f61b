package daemon

import (
	"context"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
)

// openMore opens a tier that is stronger than the process tier. The error says
// what is missing, and its hint how to have it.
func (s *sandboxes) openMore(ctx context.Context, which posture.Tier) (tier, error) {
	programs, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	c := s.d.began.Sandbox
	if which == posture.TierVM {
		cfg := newVMConfig(c.VM)
		cfg.Groups = programs
		return s.openVM(cfg)
	}
	return openContainers(ctx, c.Container,
		container.Config{Dir: filepath.Join(s.d.Paths.Dir, "container"), Programs: programs, Secret: s.secret,
			Warn: func(line string) { s.d.log.Warn("sandbox", "tier", "container", "trouble", line) }})
}

// openContainers opens the container tier: an OCI runtime's, or that of a Docker engine,
// whose socket DOCKER_HOST names.
func openContainers(ctx context.Context, c config.ContainerConfig, base container.Config) (tier, error) {
	if c.Runtime == "docker" {
		t, err := container.OpenDocker(ctx, container.DockerConfig{Dir: base.Dir, Host: os.Getenv("DOCKER_HOST"), Image: c.Image, Programs: base.Programs, Secret: base.Secret, Warn: base.Warn})
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	base.Runtime, base.Image = c.Runtime, c.ImageSource()
	t, err := container.Open(ctx, base)
	if err != nil {
		return nil, err
	}
	return t, nil
}
