package redact

import (
	"regexp"
)

// naiveRules is what a redactor is that has one regular expression for each of
// the plainest rules, and matches them one after another.
func naiveRules() []*regexp.Regexp {
	var list []*regexp.Regexp
	for _, pattern := range []string{
		`[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`,
		`A[KS]IA[A-Z0-9]{16}`,
		`gh[pousr]_[A-Za-z0-9]{16,}`,
		`github_pat_\w{20,}`,
		`glpat-[\w.-]{16,}`,
		`xox[abceoprs]-[\w-]{10,}`,
		`[sr]k_(live|test)_\w{10,}`,
		`\bsk-[\w-]{20,}`,
		`AIza[\w-]{30,}`,
		`npm_\w{30,}`,
		`eyJ[\w-]{5,}\.[\w-]+\.[\w-]*`,
		`(?s)-----BEGIN [A-Z ]*PRIVATE KEY.*?-----END`,
		`(?i)bearer +[\w.~+/=-]{20,}`,
		`(?i)(password|passwd|secret|api[_-]?key)["']?\s*[:=]\s*\S+`,
		`://[^/\s:@]*:[^/\s@]+@`,
		`\b(\d[ -]?){12,18}\d\b`,
		`\b\d{3}-\d{2}-\d{4}\b`,
		`\+\d[\d ().-]{7,}`,
		`\(?\d{3}\)?[-. ]\d{3}[-.]\d{4}`,
	} {
		list = append(list, regexp.MustCompile(pattern))
	}
	return list
}
