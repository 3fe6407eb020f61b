package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// atStart is what of a configuration is read only when the daemon starts, by its
// name in the file; redact has its own way (redactChanges). All else is in force
// as soon as it is reloaded.
func atStart(c *Config) map[string]any {
	issuers := slices.Clone(c.Identity.Issuers)
	for i := range issuers {
		issuers[i].At = ""
	}
	doors := slices.Clone(c.Egress.Listen)
	for i := range doors {
		doors[i].At = ""
	}
	return map[string]any{
		"egress.listen":              doors,
		"listen.pages":               c.Listen.Pages,
		"identity.issuers":           issuers,
		"sandbox.running":            c.Sandbox.Running,
		"sandbox.waiting":            c.Sandbox.Waiting,
		"sandbox.wait":               c.Sandbox.Wait,
		"sandbox.executor":           c.Sandbox.Executor,
		"sandbox.container":          c.Sandbox.Container,
		"sandbox.vm":                 c.Sandbox.VM,
		"ledger.checkpoint_interval": c.Ledger.CheckpointInterval,
		"telemetry":                  c.Telemetry,
	}
}

// ListUntaken returns, one sentence each, what now says and a daemon that was started with was does not do,
// because it is read when the daemon starts.
func ListUntaken(was, now *Config) []string {
	old, is := atStart(was), atStart(now)
	var list, names []string
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if !reflect.DeepEqual(old[name], is[name]) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		list = append(list, "the configuration has changed in "+strings.Join(names, ", ")+": that takes effect when the daemon is started again")
	}
	if why := redactChanges(was, now); why != "" {
		list = append(list, why)
	}
	return list
}
