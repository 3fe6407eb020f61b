package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
	"github.com/holdfast-dev/holdfast/internal/leaf/schema"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// maxName bounds every name in a configuration, in bytes.
const maxName = 256

// checker judges a configuration of the right form: what its values mean.
type checker struct {
	file     string
	lines    map[string]int // by dotted path
	problems Problems
	// deprecated has one sentence for each key that has no effect any longer.
	deprecated []string
}

// noteDeprecated notes that key, at where, has no effect.
func (k *checker) noteDeprecated(where, key, hint string) {
	k.deprecated = append(k.deprecated, fmt.Sprintf("%s: %s is deprecated and has no effect: %s", where, key, hint))
}

func (k *checker) at(path string) string { return place(k.file, k.lines[path]) }

func (k *checker) fail(where, hint, format string, args ...any) {
	k.problems = append(k.problems, Problem{Where: where, Why: fmt.Sprintf(format, args...), Hint: hint})
}

// errors takes over what a lower package found, one problem for each part.
func (k *checker) errors(err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			k.errors(e)
		}
		return
	}
	where := k.file
	var e *holdfast.Error
	if errors.As(err, &e) && e.Rule != "" {
		where = e.Rule
	}
	why, hint := usage.Explain(err)
	k.fail(where, hint, "%s", strings.TrimPrefix(why, where+": "))
}

func (k *checker) all(c *Config) {
	k.listen(c)
	k.identity(c)
	k.kinds(c)
	k.boundaries(c)
	k.judges(c)
	k.facts(c)
	k.risks(c)
	k.budgets(c)
	k.prices(c)
	k.limits(c)
	k.servers(c)
	k.sandbox(c)
	k.egress(c)
	k.review(c)
	k.wait(c)
	k.watch(c)
	k.hooks(c)
	k.channels(c)
	k.snapshots(c)
	k.redact(c)
	k.ledger(c)
	k.telemetry(c)
}

func (k *checker) listen(c *Config) {
	addr := c.Listen.Pages
	if addr == "none" {
		return
	}
	where := k.at("listen.pages")
	host, port, err := net.SplitHostPort(addr)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || strconv.FormatUint(n, 10) != port {
		k.fail(where, "write host:port, such as 127.0.0.1:7411, or none", "listen.pages: %q is not an address",
			excerpt.Word(addr))
		return
	}
	if !netaddr.IsLoopbackHost(host) && !c.Unsafe.ListenBeyondLoopback {
		k.fail(where, "listen on 127.0.0.1, or set unsafe.listen_beyond_loopback", "listen.pages: %q can be reached from other machines", excerpt.Word(addr))
	}
}

func (k *checker) identity(c *Config) {
	seen := map[string]bool{}
	for _, is := range c.Identity.Issuers {
		switch {
		case is.Name == "" || is.Audience == "":
			k.fail(is.At, "", "an issuer needs a name and an audience")
		case seen[is.Name]:
			k.fail(is.At, "", "the issuer %q is there twice", excerpt.Word(is.Name))
		case is.JWKSURL != "" && is.JWKSFile != "":
			k.fail(is.At, "", "an issuer has one of jwks_url and jwks_file, not both")
		case is.JWKSURL == "" && is.JWKSFile == "" && !strings.HasPrefix(is.Name, "https://"):
			k.fail(is.At, "", "an issuer needs one of jwks_url and jwks_file, or a name that is an https address with a discovery document")
		case is.JWKSURL != "":
			k.address(is.At, "jwks_url", is.JWKSURL, c.Unsafe.PlainHTTP)
		}
		seen[is.Name] = true
		for _, t := range is.Tenants {
			if !plainName(t) || strings.EqualFold(t, holdfast.Unverified) || strings.HasPrefix(t, "_") {
				k.fail(is.At, "", "an issuer cannot speak for the tenant %q", excerpt.Word(t))
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(c.Identity.Roles)) {
		where := k.at("identity.roles." + role)
		if !plainName(role) {
			k.fail(where, "", "%q is no name for a role", excerpt.Word(role))
		}
		k.permissions(where, c.Identity.Roles[role])
	}
}

func (k *checker) permissions(where string, ps []string) {
	for _, p := range ps {
		if err := token.CheckPermission(p); err != nil {
			k.fail(where, "", "%v", err)
		}
	}
}

// address judges a URL that Holdfast itself will call.
func (k *checker) address(where, key, text string, plain bool) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "" || u.Fragment != "":
		k.fail(where, "write https://host/path", "%s is not an address", key)
	case u.User != nil:
		k.fail(where, "", "%s holds a user or a password", key)
	case u.Scheme == "https":
	case u.Scheme != "http":
		k.fail(where, "write https://host/path", "%s: the scheme %q is not https", key, excerpt.Word(u.Scheme))
	case !netaddr.IsLoopbackHost(u.Hostname()) && !plain:
		k.fail(where, "use https, or set unsafe.plain_http", "%s: http crosses the network unencrypted", key)
	}
}

func (k *checker) kinds(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Agents.Kinds)) {
		kind := c.Agents.Kinds[name]
		if !plainName(name) {
			k.fail(kind.At, "", "%q is no name for a kind of agent", excerpt.Word(name))
		}
		if kind.Trust >= holdfast.Highest {
			k.fail(kind.At, "a person gives it with `holdfast agent trust`", "configuration cannot give the trust level highest")
		}
	}
}

func (k *checker) boundaries(c *Config) {
	seen := map[string]string{}
	for i := range c.Boundaries {
		b := &c.Boundaries[i]
		if why := boundaryFault(b.Boundary); why != "" {
			k.fail(b.At, "such as exec/python3.11 or mcp/github/*", "the boundary %q %s", excerpt.Word(b.Boundary), why)
		}
		if first := seen[b.Boundary]; first != "" {
			k.fail(b.At, "", "the boundary %q is listed twice, first at %s", excerpt.Word(b.Boundary), first)
		}
		seen[b.Boundary] = b.At
		k.permissions(b.At, b.Permissions)
		k.consumes(c, b)
		k.schema(b, "schema", b.Schema)
		k.schema(b, "output_schema", b.OutputSchema)
		k.confidence(b)
		k.walls(b)
		k.checkToolRedaction(b)
		k.language(b)
	}
}

// walls wants each to be one that there is: a misspelt one would refuse every
// run. An empty list would read as no wall at all and mean every one (D20).
func (k *checker) walls(b *BoundaryConfig) {
	if b.Walls != nil && len(b.Walls) == 0 {
		k.fail(b.At, "leave walls out for every wall, or name those that must stand: "+wallNames(), "%s: the list of walls is empty", b.Boundary)
	}
	for _, w := range b.Walls {
		if !slices.Contains(posture.Walls(), posture.Wall(w)) {
			k.fail(b.At, "the walls are "+wallNames(), "%s: there is no wall %q", b.Boundary, excerpt.Word(w))
		}
	}
}

func wallNames() string {
	var names []string
	for _, w := range posture.Walls() {
		names = append(names, string(w))
	}
	return strings.Join(names, ", ")
}

// boundaryFault returns what is wrong with a boundary's name or pattern.
func boundaryFault(name string) string {
	segments := strings.Split(name, "/")
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Sprintf("must have 1 to %d bytes", maxName)
	case len(segments) == 1 && strings.Contains(name, "*"):
		return "would list every boundary there is"
	case slices.Contains(segments, ""), slices.Contains(segments, "."), slices.Contains(segments, ".."):
		return "has an empty or dotted part"
	}
	for i, s := range segments {
		if i == 1 && len(segments) == 2 && segments[0] == "egress" && strings.HasPrefix(s, "*.") {
			s = s[2:] // a domain's row of that name
		}
		if strings.Contains(s, "*") && (s != "*" || i != len(segments)-1) {
			return "may have * only as its whole last part"
		}
	}
	if !visible.IsGraphicWord(name) {
		return "holds a space or a control character"
	}
	return ""
}

func (k *checker) consumes(c *Config, b *BoundaryConfig) {
	for _, r := range slices.Sorted(maps.Keys(b.Consumes)) {
		covered := slices.ContainsFunc(c.Budgets, func(l BudgetConfig) bool { return l.Resource == r && budget.MatchBoundary(l.Boundary, b.Boundary) })
		switch {
		case !resourceName().MatchString(r):
			k.fail(b.At, "such as llm_tokens", "%q is no name for a resource", excerpt.Word(r))
		case !covered:
			k.fail(b.At, "add one under budgets", "no budget covers %s, so the boundary %q could never be crossed", r,
				excerpt.Word(b.Boundary))
		}
	}
}

func (k *checker) schema(b *BoundaryConfig, key string, text JSON) {
	if len(text) == 0 {
		return
	}
	if _, err := schema.Compile(b.Boundary, text); err != nil {
		why, hint := usage.Explain(err)
		k.fail(b.At, hint, "%s: %s", key, why)
	}
}

func (k *checker) confidence(b *BoundaryConfig) {
	switch b.Confidence {
	case "", "none", "declared":
		return
	}
	if _, err := constitution.CompileScore(b.Confidence, b.At); err != nil {
		why, hint := usage.Explain(err)
		k.fail(b.At, hint, "confidence: %s", why)
	}
}

func (k *checker) budgets(c *Config) {
	seen := map[string]string{}
	for _, b := range c.Budgets {
		if !resourceName().MatchString(b.Resource) {
			k.fail(b.At, "such as llm_tokens", "%q is no name for a resource", excerpt.Word(b.Resource))
		}
		if b.Window != 0 && (time.Duration(b.Window) < time.Second || time.Duration(b.Window)%time.Second != 0) {
			k.fail(b.At, "", "a window must be whole seconds")
		}
		if why := budget.Exceed(b.Exceed).Fault(budget.Scope(b.Scope), b.Window != 0); why != "" {
			k.fail(b.At, "name another scope, or leave exceed out to refuse", "%s", why)
		}
		match, where := b.Match, b.Boundary
		if match == "*" {
			match = ""
		}
		if where == "*" {
			where = ""
		}
		if where != "" {
			if why := boundaryFault(where); why != "" {
				k.fail(b.At, "such as mcp/github/* or exec/python3.11", "the boundary %q %s", excerpt.Word(where), why)
			}
		}
		id := fmt.Sprint(b.Scope, "\x00", match, "\x00", b.Resource, "\x00", b.Window, "\x00", where)
		if first := seen[id]; first != "" {
			k.fail(b.At, "keep one of the two", "the same budget is there twice, first at %s", first)
		}
		seen[id] = b.At
	}
}

func (k *checker) limits(c *Config) {
	for _, l := range c.Limits {
		if l.PerMinute == 0 && l.Cooldown == 0 {
			k.fail(l.At, "", "a limit needs per_minute or cooldown, above zero")
		}
		if l.Boundary == "" || l.Boundary == "*" {
			continue
		}
		if why := boundaryFault(l.Boundary); why != "" {
			k.fail(l.At, "", "the boundary %q %s", excerpt.Word(l.Boundary), why)
		}
	}
}

func (k *checker) command(where string, argv []string) {
	if len(argv) == 0 || strings.TrimSpace(argv[0]) == "" {
		k.fail(where, "list the program and its arguments", "a command without a program")
	}
}

// variables checks what a command is given of the environment.
func (k *checker) variables(where string, names []string) {
	for _, v := range names {
		if !register.IsEnvName(v) {
			k.fail(where, "list names; no values stand here", "%q is no name of an environment variable",
				excerpt.Word(v))
		}
	}
}

func (k *checker) review(c *Config) {
	if c.Review.Notify != nil {
		k.command(k.at("review.notify"), c.Review.Notify)
	}
	k.webhook(c.Review.Webhook, c.Unsafe.PlainHTTP)
	for _, op := range slices.Sorted(maps.Keys(c.Review.Thresholds)) {
		if !slices.ContainsFunc(c.Boundaries, func(b BoundaryConfig) bool { return b.Operation == op }) || op == "" {
			k.fail(k.at(
				"review.thresholds."+op,
			), "name an operation that a contract has", "no boundary has the operation %q", excerpt.Word(op))
		}
	}
}

// Bounds on the time of a halt hook.
const (
	HookTime    = 30 * time.Second // of a command that names no timeout
	hookLongest = 10 * time.Minute
)

func (k *checker) hooks(c *Config) {
	seen := map[string]bool{}
	for i := range c.Alerts.HaltHooks {
		h := &c.Alerts.HaltHooks[i]
		if !plainName(h.Name) || seen[h.Name] {
			k.fail(h.At, "", "a halt hook needs a name of its own, not %q", excerpt.Word(h.Name))
		}
		seen[h.Name] = true
		k.command(h.At, h.Command)
		k.variables(h.At, h.Env)
		switch {
		case h.Timeout == 0:
			h.Timeout = Duration(HookTime)
		case h.Timeout < 0 || time.Duration(h.Timeout) > hookLongest:
			k.fail(h.At, "", "the time of a halt hook must be between 0 and %s", hookLongest)
		}
	}
}

func (k *checker) ledger(c *Config) {
	if c.Ledger.Results > day {
		k.fail(k.at("ledger.results"), "", "ledger.results: sealed results are erased after 24h at the latest")
	}
	if every := time.Duration(c.Ledger.CheckpointInterval); every < time.Second || every > 24*time.Hour {
		k.fail(k.at("ledger.checkpoint_interval"), "", "ledger.checkpoint_interval must be between 1s and 24h")
	}
}

func (k *checker) telemetry(c *Config) {
	t := c.Telemetry
	if t.Endpoint != "" {
		k.address(k.at("telemetry.endpoint"), "telemetry.endpoint", t.Endpoint, c.Unsafe.PlainHTTP)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		if !headerName().MatchString(name) || strings.ContainsAny(t.Headers[name].Reveal(), "\r\n") {
			k.fail(k.at("telemetry.headers."+name), "", "%q is not a header", excerpt.Word(name))
		}
	}
}

func plainName(s string) bool {
	return s != "" && len(s) <= maxName && strings.TrimSpace(s) == s &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// The forms of names, each compiled when it is first needed.
var (
	resourceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`) })
	serverName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })
	headerName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9-]{1,128}$`) })
)
