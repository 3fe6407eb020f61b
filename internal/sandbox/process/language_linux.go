package process

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// language is one row of the table: how its programs are started, what of the
// host its root holds, and what it may ask of the kernel. Adding a language is
// adding a row to languages.
type language struct {
	// name is the family, exact the name with its version, which names the
	// boundary ("python3.11" in exec/python3.11); version is the whole one.
	name, exact, version string
	// loose are the names that mean it as well; only the first of a family has
	// any.
	loose []string
	// program is the path of the executable inside the root; empty where the
	// code is the program itself (static).
	program string
	// flags stand between program and code.
	flags []string
	// codeName is the code's name in /code.
	codeName string
	// env is what the language's programs find in their environment, before
	// what a request sets.
	env []string
	// fixed is what a request cannot set otherwise.
	fixed []string
	// parts gathers what belongs to the root.
	parts func(*manifest) error
	// finish, if any, completes a copy that stands in the directory root.
	finish func(ctx context.Context, root string) error
	// allows is its profile.
	allows *profile
	// check, if any, refuses code before anything starts.
	check func(code []byte) error
}

// argv is what the workload executes.
func (l language) argv() []string {
	code := "/code/" + l.codeName
	if l.program == "" {
		return []string{code}
	}
	return append(append([]string{l.program}, l.flags...), code)
}

// matches says whether a request that asks for a language by that name means
// this one: by its exact name, or loosely.
func (l language) matches(asked string) bool {
	return asked == l.exact || slices.Contains(l.loose, asked)
}

// common is the environment of every language.
var common = []string{"HOME=/tmp", "TMPDIR=/tmp", "PATH=/usr/bin"}

// languages looks for every language on this machine, asking each interpreter
// for its own version and files, and returns those that are there, the best of a
// family first, and why each other family is not. It runs programs that it finds
// in the system's directories and on PATH, each for at most ten seconds.
func languages(ctx context.Context) ([]language, map[string]string) {
	missing := map[string]string{}
	var found []language
	for _, family := range []struct {
		name string
		find func(context.Context) ([]language, error)
	}{{"python3", findPython}, {"node", findNode}, {"static", findStatic}} {
		list, err := family.find(ctx)
		if err != nil {
			missing[family.name] = err.Error()
		}
		found = append(found, distinct(list)...)
	}
	return found, missing
}

// distinct keeps the first of each exact name, and loose names for the first
// of the family only.
func distinct(list []language) []language {
	var kept []language
	for _, l := range list {
		if slices.ContainsFunc(kept, func(k language) bool { return k.exact == l.exact }) {
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
