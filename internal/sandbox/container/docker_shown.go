package container

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// dockerShown is what the engine says that it made (GET /containers/ID/json).
type dockerShown struct {
	Image  string
	State  dockerState
	Config struct {
		User            string
		Env             []string
		Entrypoint, Cmd []string
		Volumes         map[string]any
	}
	HostConfig dockerHost
	Mounts     []struct {
		Type, Source, Destination string
		RW                        bool
	}
}

type dockerState struct {
	Status    string
	Running   bool
	OOMKilled bool
}

// is says whether the container is the one that was asked for: what stands between
// Holdfast and the engine, or the image, may have made another one of it.
func (s dockerShown) is(want dockerCreate) error {
	h, w := s.HostConfig, want.HostConfig
	for _, c := range []struct {
		what string
		same bool
	}{
		{"image", s.Image == want.Image}, {"user", s.Config.User == want.User},
		{"entry point", slices.Equal(s.Config.Entrypoint, want.Entrypoint) && slices.Equal(s.Config.Cmd, want.Cmd)},
		{"environment", slices.Equal(s.Config.Env, want.Env)}, {"volumes", len(s.Config.Volumes) == 0},
		{"network", h.NetworkMode == "none"}, {"IPC namespace", h.IpcMode == w.IpcMode}, {"read-only root", h.ReadonlyRootfs}, {"privileges", !h.Privileged},
		{"memory", h.Memory == w.Memory && h.MemorySwap == w.MemorySwap}, {"processors", h.CPUPeriod == w.CPUPeriod && h.CPUQuota == w.CPUQuota}, {"processes", h.PidsLimit == w.PidsLimit},
		{"capabilities", slices.Equal(h.CapDrop, w.CapDrop) && len(h.CapAdd) == 0}, {"security options", sameSet(h.SecurityOpt, w.SecurityOpt)},
		{"devices", len(h.Devices) == 0 && len(h.DeviceRequests) == 0}, {"binds", len(h.Binds) == 0 && len(h.VolumesFrom) == 0},
		{"namespaces of others", h.PidMode == "" && h.UTSMode == "" && h.UsernsMode == ""},
		{"masked files", slices.Equal(h.MaskedPaths, w.MaskedPaths) && slices.Equal(h.ReadonlyPaths, w.ReadonlyPaths)},
		{"mounts", s.mounts(want)},
	} {
		if !c.same {
			return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the Docker engine made another container than was asked for: its %s differ", c.what), Hint: "see what stands between (authorization plugins, `docker info`)"}
		}
	}
	return nil
}

func (s dockerShown) mounts(want dockerCreate) bool {
	if len(s.Mounts) != len(want.HostConfig.Mounts) {
		return false
	}
	for _, m := range want.HostConfig.Mounts {
		found := false
		for _, have := range s.Mounts {
			found = found || have.Type == m.Type && have.Source == m.Source && have.Destination == m.Target && have.RW == !m.ReadOnly
		}
		if !found {
			return false
		}
	}
	return true
}

// sameSet: the engine may add none and leave none out.
func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
