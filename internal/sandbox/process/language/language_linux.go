package language

import (
	"cmp"
	"context"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
)

// Language is one row of the table: how its programs are started, what of the
// host its root holds, and what it may ask of the kernel. Adding a language is
// adding a row to families.
type Language struct {
	// Name is the family, exact the name with its version, which names the
	// boundary ("python3.11" in exec/python3.11); version is the whole one.
	Name, Exact, version string
	// loose are the names that mean it as well; only the first of a family has
	// any.
	loose []string
	// Program is the path of the executable inside the root; empty where the
	// code is the program itself (static).
	Program string
	// Host is that executable's own file on the host.
	Host string
	// Flags stand between program and code.
	Flags []string
	// CodeName is the code's name in /code.
	CodeName string
	// env is what the language's programs find in their environment, before
	// what a request sets.
	env []string
	// fixed is what a request cannot set otherwise.
	fixed []string
	// Asks is code that prints exact, run by an interpreter that was found elsewhere.
	Asks string
	// parts gathers what belongs to the root.
	parts func(*manifest) error
	// finish, if any, completes a copy that stands in the directory root.
	finish func(ctx context.Context, root string) error
	// Allows is its profile.
	Allows *seccomp.Profile
	// Check, if any, refuses code before anything starts.
	Check func(code []byte) error
}

// Argv is what the workload executes.
func (l Language) Argv() []string {
	code := "/code/" + l.CodeName
	if l.Program == "" {
		return []string{code}
	}
	return append(append([]string{l.Program}, l.Flags...), code)
}

// Environment is the little that the language's programs expect, the caller's
// over it, and what the caller cannot change over that.
func (l Language) Environment(own map[string]string) []string {
	all := map[string]string{}
	set := func(list []string) {
		for _, v := range list {
			name, value, _ := strings.Cut(v, "=")
			all[name] = value
		}
	}
	set(l.env)
	maps.Copy(all, own)
	set(l.fixed)
	var list []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		list = append(list, k+"="+all[k])
	}
	return list
}

// matches says whether a request that asks for a language by that name means
// this one: by its exact name, or loosely.
func (l Language) matches(asked string) bool {
	return asked == l.Exact || slices.Contains(l.loose, asked)
}

// common is the environment of every language.
var common = []string{"HOME=/tmp", "TMPDIR=/tmp", "PATH=/usr/bin"}

// family is a kind of language: which files may be it, and how one is asked.
type family struct {
	name string
	// speaks says whether a name that a request uses can mean a language of the
	// family; it is nil where the family needs no program of the host.
	speaks func(asked string) bool
	// like says whether a file of that name may be its interpreter.
	like func(file string) bool
	// ask makes one such file tell what it is.
	ask func(ctx context.Context, path string) (Language, error)
}

// families is the table of languages.
func families() []family {
	return []family{
		{"python3", func(s string) bool { return s == "python" || pythonName().MatchString(s) }, pythonName().MatchString, learnPython},
		{"node", func(s string) bool { return nodeName().MatchString(s) }, func(s string) bool { return s == "node" || s == "nodejs" }, learnNode},
		{name: sandbox.Static},
	}
}

// Find looks for every language on this machine, asking each interpreter
// for its own version and files, and returns those that are there, the best of a
// family first, and why each other family is not. It runs programs that it finds
// in the system's directories and on PATH, each for at most ten seconds.
//
// Scripts are not run: one that stands for an interpreter (a shim) can take as
// long as it likes. They are left for a request that names a language which is
// not found otherwise.
func Find(ctx context.Context) *Catalogue {
	c := &Catalogue{asked: map[string]bool{}, found: map[string][]Language{}, errs: map[string][]string{}, absent: map[string]string{}}
	var wg sync.WaitGroup
	for _, f := range families() {
		wg.Go(func() { c.add(f.search(ctx, isProgram)) })
	}
	wg.Wait()
	return c
}

// search asks the family's candidates that want accepts.
func (f family) search(ctx context.Context, want func(path string) bool) (family, []Language, []string) {
	if f.speaks == nil {
		return f, []Language{static()}, nil
	}
	list, errs := askAll(ctx, slices.DeleteFunc(candidates(f.like), func(p string) bool { return !want(p) }), f.ask)
	return f, list, errs
}

// Catalogue is what is known of this machine's languages.
type Catalogue struct {
	asking sync.Mutex      // while scripts are asked
	asked  map[string]bool // the families whose scripts were; under asking

	mu     sync.Mutex
	found  map[string][]Language
	errs   map[string][]string // why candidates are none
	absent map[string]string
}

// add takes what a search found behind what is known.
func (c *Catalogue) add(f family, list []Language, errs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found[f.name] = distinct(append(c.found[f.name], list...))
	c.errs[f.name] = append(c.errs[f.name], errs...)
	delete(c.absent, f.name)
	if len(c.found[f.name]) == 0 {
		c.absent[f.name] = reasons(f.name, c.errs[f.name]).Error()
	}
}

// List returns all that are found, family by family, and why each other family
// is not there.
func (c *Catalogue) List() ([]Language, map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Language
	for _, f := range families() {
		all = append(all, c.found[f.name]...)
	}
	return all, maps.Clone(c.absent)
}

func (c *Catalogue) Match(asked string) (Language, bool) {
	list, _ := c.List()
	i := slices.IndexFunc(list, func(l Language) bool { return l.matches(asked) })
	if i < 0 {
		return Language{}, false
	}
	return list[i], true
}

// Find returns the language that asked means. Where none is known it asks the
// scripts of the family, once.
func (c *Catalogue) Find(ctx context.Context, asked string) (Language, bool) {
	if l, ok := c.Match(asked); ok {
		return l, true
	}
	families := families()
	i := slices.IndexFunc(families, func(f family) bool { return f.speaks != nil && f.speaks(asked) })
	if i < 0 {
		return Language{}, false
	}
	c.askScripts(ctx, families[i])
	return c.Match(asked)
}

// askScripts asks once; others who need to know wait for it.
func (c *Catalogue) askScripts(ctx context.Context, f family) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if c.asked[f.name] {
		return
	}
	_, list, errs := f.search(ctx, func(p string) bool { return !isProgram(p) })
	if ctx.Err() != nil {
		return // what was not answered in time is asked again
	}
	c.asked[f.name] = true
	c.add(f, list, errs)
}

// isProgram says whether a file is a program itself, and no script.
func isProgram(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && string(magic[:]) == elf.ELFMAG
}

// distinct keeps the first of each exact name, and loose names for the first
// of the family only.
func distinct(list []Language) []Language {
	var kept []Language
	for _, l := range list {
		if slices.ContainsFunc(kept, func(k Language) bool { return k.Exact == l.Exact }) {
			continue
		}
		if len(kept) > 0 {
			l.loose = nil
		}
		kept = append(kept, l)
	}
	return kept
}

// askTimeout bounds asking one interpreter about itself.
const askTimeout = 10 * time.Second

// candidates are the executable files in the system's directories and on PATH
// that like accepts, the system's first, each once.
func candidates(like func(name string) bool) []string {
	dirs := append([]string{"/usr/bin", "/usr/local/bin", "/bin"}, filepath.SplitList(os.Getenv("PATH"))...)
	var list []string
	seen := map[string]bool{}
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) || seen[dir] {
			continue
		}
		seen[dir] = true
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		list = append(list, executables(dir, entries, like, seen)...)
	}
	return list
}

func executables(dir string, entries []os.DirEntry, like func(string) bool, seen map[string]bool) []string {
	var list []string
	for _, e := range entries {
		p := filepath.Join(dir, e.Name())
		if !like(e.Name()) {
			continue
		}
		info, err := os.Stat(p)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		real, err := filepath.EvalSymlinks(p)
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return list
}

// askAll asks every candidate about itself, a few at a time: a shim takes its
// time. What they say is in the order of the candidates.
func askAll[T any](ctx context.Context, paths []string, ask func(context.Context, string) (T, error)) (said []T, errs []string) {
	answers, fails := make([]T, len(paths)), make([]error, len(paths))
	var wg sync.WaitGroup
	turn := make(chan struct{}, 4)
	for i, p := range paths {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			answers[i], fails[i] = ask(ctx, p)
		})
	}
	wg.Wait()
	for i, p := range paths {
		if fails[i] != nil {
			errs = append(errs, fmt.Sprintf("%s: %v", p, fails[i]))
			continue
		}
		said = append(said, answers[i])
	}
	return said, errs
}

// reasons joins why nothing was found.
func reasons(what string, errs []string) error {
	if len(errs) == 0 {
		return fmt.Errorf("%s is not installed in /usr/bin, /usr/local/bin or on PATH", what)
	}
	return fmt.Errorf("%s cannot be used: %s", what, strings.Join(errs, "; "))
}
