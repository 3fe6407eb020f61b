package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/configpath"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// Loaded is a configuration that was read and judged as a whole.
type Loaded struct {
	// Path is the configuration file, absolute; empty when there is none.
	Path string
	// Config holds the defaults where the file says nothing.
	Config *Config
	Policy *kernel.Policy
	// Domains is the allowlist of Config.
	Domains *domain.Table
	// Files is every file that governs, absolute, the configuration first.
	Files []string
	// Hash is the SHA-256 over the defaults and the contents of Files under
	// their names relative to the configuration: Policy.Version.
	Hash string

	WorkTrees []string
	// Deprecated has one sentence for each key that is accepted and has no effect any longer.
	Deprecated []string
}

// FindPath returns the configuration file as an absolute path: the flag,
// else $HOLDFAST_CONFIG, else $XDG_CONFIG_HOME/holdfast/holdfast.yaml
// (~/.config where that is unset), else /etc/holdfast/holdfast.yaml, whichever
// of the last two exists. "" means that there is none and the defaults govern.
// What is named must exist: Load says so. lookup is os.LookupEnv.
func FindPath(flag string, lookup func(string) (string, bool)) (string, error) {
	if flag != "" {
		return guard.MakeAbsolute("--config", flag)
	}
	if v, ok := lookup("HOLDFAST_CONFIG"); ok {
		if v == "" {
			return "", usage.HintErrorf("unset it, or name a file", "HOLDFAST_CONFIG is set and empty")
		}
		return guard.MakeAbsolute("HOLDFAST_CONFIG", v)
	}
	return configpath.FindDefault(lookup), nil
}

// Load reads the configuration at path, which is absolute, and every file it
// names, and makes the policy of them. An empty path gives the defaults. A
// file that others could write, or that stands in one of the work trees, is
// refused (D49). The error is a *holdfast.Error of kind UsageError; for
// mistakes inside files it wraps Problems, all of them.
func Load(path string, workTrees ...string) (*Loaded, error) {
	g, err := guard.New(workTrees)
	if err != nil {
		return nil, err
	}
	r := &reading{guard: g, hash: sha256.New()}
	l := &Loaded{Path: path, Config: &Config{}, WorkTrees: workTrees}
	defaults, err := json.Marshal(Defaults())
	if err != nil {
		return nil, err
	}
	r.add("defaults", defaults)
	if path != "" {
		if !filepath.IsAbs(path) {
			return nil, usage.Errorf("the configuration's path must be absolute, not %q", path)
		}
		r.dir = filepath.Dir(path)
		if err := r.config(path, l.Config); err != nil {
			return nil, err
		}
	}
	l.Config.withDefaults()
	r.references(l.Config)
	check := checker{file: filepath.Base(path), lines: r.lines, problems: r.problems}
	check.all(l.Config)
	rules := r.rules(l.Config, &check)
	if err := check.problems.asError(); err != nil {
		return nil, err
	}
	l.Deprecated = check.deprecated
	l.Files, l.Hash = r.files, hex.EncodeToString(r.hash.Sum(nil))
	if l.Domains, err = l.Config.Egress.table(); err != nil {
		return nil, err
	}
	if l.Policy, err = l.Config.Policy(rules, l.Hash, l.Files); err != nil {
		return nil, err
	}
	l.Policy.Facts, err = l.Config.factSource(workTrees)
	return l, err
}

// reading is one load under way.
type reading struct {
	guard    guard.Guard
	dir      string
	text     []byte // of the configuration
	lines    map[string]int
	files    []string
	problems Problems
	hash     interface {
		Write([]byte) (int, error)
		Sum([]byte) []byte
	}
}

// add hashes one part under its name, both with their lengths, so that no two
// sets of files have one hash.
func (r *reading) add(name string, text []byte) {
	for _, part := range [][]byte{[]byte(name), text} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		_, _ = r.hash.Write(n[:]) // a hash never fails
		_, _ = r.hash.Write(part)
	}
}

func (r *reading) config(path string, into *Config) error {
	text, err := r.guard.Read(path, maxConfig)
	if err != nil {
		return guard.ExplainReadError(path, err)
	}
	name := filepath.Base(path)
	r.add(name, text)
	r.text, r.files = text, append(r.files, path)
	d := &decoder{file: name, text: text}
	d.into(into)
	r.lines, r.problems = d.lines, d.problems
	// What is not even of the right form has no meaning to judge.
	return r.problems.asError()
}

// abs resolves a name that the configuration holds.
func (r *reading) abs(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(r.dir, name)
}

// file reads a file that the configuration names, as part of the policy.
func (r *reading) file(where, name string) ([]byte, bool) {
	if name == "" || strings.ContainsRune(name, 0) {
		r.fail(where, "", "a file without a name")
		return nil, false
	}
	path := r.abs(name)
	text, err := r.guard.Read(path, maxConfig)
	if err != nil {
		r.unreadable(where, path, err)
		return nil, false
	}
	r.add(name, text)
	if !slices.Contains(r.files, path) { // several hosts may have one authority
		r.files = append(r.files, path)
	}
	return text, true
}

func (r *reading) unreadable(where, path string, err error) {
	err = guard.ExplainReadError(path, err)
	why, hint := usage.Explain(err)
	r.fail(where, hint, why)
}

func (r *reading) fail(where, hint, why string) {
	r.problems = append(r.problems, Problem{Where: where, Why: why, Hint: hint})
}

// references reads the schemas and looks at the key sets and directories that
// the configuration names.
func (r *reading) references(c *Config) {
	for i := range c.Boundaries {
		b := &c.Boundaries[i]
		r.schema(b.At, b.SchemaFile, &b.Schema)
		r.schema(b.At, b.OutputSchemaFile, &b.OutputSchema)
	}
	for i := range c.Identity.Issuers {
		is := &c.Identity.Issuers[i]
		if is.JWKSFile == "" {
			continue
		}
		// Keys rotate without changing the policy, so they are not part
		// of its hash; who could write them matters all the same.
		is.JWKSFile = r.abs(is.JWKSFile)
		if _, err := r.guard.Read(is.JWKSFile, maxConfig); err != nil {
			r.unreadable(is.At, is.JWKSFile, err)
		}
	}
	if w := &c.Review.Webhook; w.SecretFile != "" {
		w.SecretFile = r.abs(w.SecretFile)
		if _, err := guard.ReadRegular(w.SecretFile, guard.MaxKeyFile, guard.CheckPrivate(w.SecretFile)); err != nil {
			r.unreadable(place(filepath.Base(r.files[0]), r.lines["review.webhook.secret_file"]), w.SecretFile, err)
		}
	}
	r.factFiles(c)
	r.registerFiles(c)
	r.executorFiles(&c.Sandbox.Executor)
	r.imagePath(c.Sandbox.Container)
	r.egressFiles(&c.Egress)
	r.channelFiles(&c.Alerts)
	r.treePaths(&c.Snapshots)
	for name, s := range c.MCP.Servers {
		if s.Cwd != "" {
			s.Cwd = r.abs(s.Cwd)
			c.MCP.Servers[name] = s
		}
		r.headerFiles(s)
	}
}

func (r *reading) schema(where, name string, into *JSON) {
	if name == "" {
		return
	}
	if len(*into) > 0 {
		r.fail(where, "keep one of the two", "the schema is given here and in the file "+excerpt.Word(name))
		return
	}
	if text, ok := r.file(where, name); ok {
		if !json.Valid(text) {
			r.fail(where, "", "the schema file "+excerpt.Word(name)+" is not JSON")
			return
		}
		*into = text
	}
}

// rules loads the constitution, or nil when there are no rules.
func (r *reading) rules(c *Config, check *checker) kernel.Rules {
	sources := r.ruleSources(c, check)
	if len(sources) == 0 {
		return nil
	}
	set, err := c.RuleSetting().Load(sources)
	if err != nil {
		check.errors(err)
		return nil
	}
	return set
}

// LoadHere is Load as Open does it: the git work tree that the process stands in
// counts among the work trees.
func LoadHere(path string, trees ...string) (*Loaded, error) {
	return Load(path, append(slices.Clone(trees), workTrees()...)...)
}

// workTrees is the git work tree that the process stands in, where an agent
// may write.
func workTrees() []string {
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return []string{dir}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil
		}
		dir = up
	}
}
