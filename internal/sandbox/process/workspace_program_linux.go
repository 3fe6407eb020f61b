package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/grant"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/workroot"
)

// WorkTree is the tree that a run on dir works on: the top of the git work tree
// around it, or dir itself. Where dir is not named, but is simply where the
// caller stands, outside of git, it is refused if it is / or home: a whole
// machine or a person's every file is no work tree.
func WorkTree(dir, home string, named bool) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", grant.NewError(dir, err)
	}
	st, err := os.Stat(real)
	if err != nil {
		return "", grant.NewError(dir, err)
	}
	if !st.IsDir() {
		return "", grant.NewError(dir, unix.ENOTDIR)
	}
	if named {
		return real, nil
	}
	home, _ = filepath.EvalSymlinks(home) // none is no place to be refused
	for top := real; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil && top != "/" && top != home {
			return top, nil
		}
		if top == "/" {
			break
		}
	}
	if real == "/" || real == home {
		return "", &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("%s is no work tree: a run could write everything in it", real),
			Hint: "go to a project, or name the directory with --dir"}
	}
	return real, nil
}

// Toolbox returns the real directories of what was named as one, or why it cannot be used.
func Toolbox(named []string) ([]string, error) {
	var list []string
	for _, d := range named {
		real, err := filepath.EvalSymlinks(d)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err == nil {
			var st os.FileInfo
			if st, err = os.Stat(real); err == nil && !st.IsDir() {
				err = fmt.Errorf("it is no directory")
			}
		}
		if err != nil {
			return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("the toolbox %.200s cannot be used: %v", d, err), Hint: "name a directory that holds programs"}
		}
		list = append(list, real)
	}
	return list, nil
}

// ToolPath is the caller's PATH without what does not lie in the toolbox.
func ToolPath(path string, toolbox []string) string {
	var list []string
	for _, d := range append(filepath.SplitList(path), "/usr/local/bin", "/usr/bin", "/bin") {
		real, err := filepath.EvalSymlinks(d)
		if err == nil && filepath.IsAbs(d) && inToolbox(real, toolbox) && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return strings.Join(list, ":")
}

func inToolbox(p string, toolbox []string) bool {
	return slices.ContainsFunc(append(slices.Clone(workroot.SystemDirs), toolbox...),
		func(d string) bool { return p == d || strings.HasPrefix(p, d+"/") })
}

// FindProgram finds a program as a shell would: by its path, seen from dir, or
// by its name on path. It must lie in the toolbox, or, where exec says so, in the
// tree; a refusal says what would let it in. tools is what ToolPath made of path.
func FindProgram(name, dir, tree, path, tools string, toolbox []string, exec bool) (string, error) {
	if !strings.Contains(name, "/") {
		if p := onPath(name, tools); p != "" {
			return p, allowedProgram(p, tree, toolbox, exec)
		}
		if p := onPath(name, path); p != "" {
			return "", allowedProgram(p, tree, toolbox, false)
		}
		return "", &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no program %.200q on PATH", name), Hint: "is it installed? `holdfast run -- PROGRAM ARGS...`"}
	}
	p := filepath.Clean(name)
	if !filepath.IsAbs(name) {
		p = filepath.Join(dir, name)
	}
	if st, err := os.Stat(p); err != nil || st.IsDir() {
		return "", &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no program %.200s", p), Hint: "is it built? name it as seen from the working directory"}
	}
	return p, allowedProgram(p, tree, toolbox, exec)
}

// allowedProgram refuses what could not be executed inside, before anything
// starts: there it would only be missing.
func allowedProgram(p, tree string, toolbox []string, exec bool) error {
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("the program %.200s leads nowhere", p), Err: err}
	}
	inTree := real == tree || strings.HasPrefix(real, tree+"/")
	switch {
	case inToolbox(real, toolbox) || inTree && exec:
		return nil
	case inTree:
		return &holdfast.Error{Kind: holdfast.KindPermission, Why: fmt.Sprintf("%.200s lies in the work tree, from which nothing is executed", p),
			Hint: "--exec-tree allows it; a script can be named to its interpreter, such as `holdfast run -- bash FILE`"}
	}
	return &holdfast.Error{Kind: holdfast.KindPermission, Why: fmt.Sprintf("%.200s is not in the toolbox (%s)", real, strings.Join(append([]string{"/usr", "/bin", "/sbin", "/lib*"}, toolbox...), ", ")),
		Hint: "--toolbox " + filepath.Dir(real) + " lets it in, read-only; name a directory above where it needs more than that"}
}

func onPath(name, path string) string {
	for _, d := range filepath.SplitList(path) {
		if d == "" || !filepath.IsAbs(d) {
			continue
		}
		p := filepath.Join(d, name)
		if st, err := os.Stat(p); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
			return p
		}
	}
	return ""
}
