package redact

import "strings"

// TellsSecret reports whether a name holds a registered secret, or what its form shows to be
// one. Names are keys of agents, counters and tokens, and are written down unchanged: one that
// tells a secret is refused (D13). A person's address may be a name.
func (e *Engine) TellsSecret(names ...string) bool {
	for _, name := range names {
		for _, f := range e.Text([]byte(name)).Findings {
			// "token:7" is how some authorities write a subject.
			if strings.HasPrefix(f.Rule, "secret.") && f.Rule != "secret.assignment" {
				return true
			}
		}
	}
	return false
}
