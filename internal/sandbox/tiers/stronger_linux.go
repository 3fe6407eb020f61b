package tiers

import (
	"context"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
)

// openStronger opens a tier that is stronger than the process tier. The error says
// what is missing, and its hint how to have it.
func (s *Set) openStronger(ctx context.Context, which posture.Tier) (tier, error) {
	programs, err := s.OpenProcess(ctx)
	if err != nil {
		return nil, err
	}
	c := &s.opt.Config
	if which == posture.TierVM {
		cfg := c.vmConfig()
		cfg.Groups = programs
		return s.openVM(cfg)
	}
	return openContainers(ctx, c,
		container.Config{Dir: filepath.Join(s.opt.Dir, "container"), Programs: programs, Secret: s.HasSecret,
			Warn: func(line string) { s.opt.Log.Warn("sandbox", "tier", "container", "trouble", line) }})
}

// openContainers opens the container tier: an OCI runtime's, or that of a Docker engine,
// whose socket DOCKER_HOST names.
func openContainers(ctx context.Context, c *Config, base container.Config) (tier, error) {
	if c.Runtime == "docker" {
		t, err := container.OpenDocker(ctx, container.DockerConfig{Dir: base.Dir, Host: os.Getenv("DOCKER_HOST"),
			Image: c.EngineImage, Programs: base.Programs, Secret: base.Secret, Warn: base.Warn})
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	base.Runtime, base.Image = c.Runtime, c.Image
	t, err := container.Open(ctx, base)
	if err != nil {
		return nil, err
	}
	return t, nil
}
