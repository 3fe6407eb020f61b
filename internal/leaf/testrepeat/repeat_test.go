package testrepeat

import (
	"go/build/constraint"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTimes: a build with the tag endure does everything as often as it says, any other
// a hundredth of it.
func TestTimes(t *testing.T) {
	want := 100
	if Enduring {
		want = 10_000
	}
	if got := Times(10_000, 7); got != want {
		t.Errorf("%d times instead of %d", got, want)
	}
	if got := Times(20, 7); got < 7 || got > 20 {
		t.Errorf("%d times", got)
	}
}

// TestEachIsRunInFull: a target of make endure runs each package with a test that does
// more in a build with the tag endure, and a target of make peers each package with one
// that is built with the tag peers.
func TestEachIsRunInFull(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string][]string{"endure": readTargets(string(text), "endure"), "peers": readTargets(string(text), "peers")}
	found := map[string]int{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join(root, "internal", "leaf", "testrepeat") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		for _, tag := range needTags(t, path, source) {
			found[tag]++
			if module, inside := strings.CutPrefix(dir, "bench/"); inside {
				dir = module // targets run in that module
			}
			if !slices.Contains(runs[tag], "./"+filepath.ToSlash(dir)) {
				t.Errorf("%s needs the tag %s: add ./%s to a variable %s_NAME of the Makefile", path, tag, filepath.ToSlash(dir), strings.ToUpper(tag))
			}
		}
		return nil
	})
	if err != nil || found["endure"] < 10 || found["peers"] < 1 {
		t.Errorf("%v, %v", found, err)
	}
}

// readTargets returns the packages that the Makefile's variables ENDURE_NAME, or
// PEERS_NAME, list.
func readTargets(makefile, kind string) (packages []string) {
	for _, m := range regexp.MustCompile(`(?m)^`+strings.ToUpper(kind)+`_[a-z]+ = (.*)$`).FindAllStringSubmatch(makefile, -1) {
		packages = append(packages, strings.Fields(m[1])...)
	}
	return packages
}

// needTags returns the tags without which a test file is not run, or not in full.
func needTags(t *testing.T, path string, source []byte) (tags []string) {
	t.Helper()
	for _, tag := range []string{"endure", "peers"} {
		line := regexp.MustCompile(`(?m)^//go:build (.*)$`).FindSubmatch(source)
		if line == nil {
			continue
		}
		expr, err := constraint.Parse(string(line[0]))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		everything := expr.Eval(func(string) bool { return true })
		if everything && !expr.Eval(func(other string) bool { return other != tag }) {
			tags = append(tags, tag)
		}
	}
	if regexp.MustCompile(`\btestrepeat\.(Times|Enduring)\b`).Match(source) && !slices.Contains(tags, "endure") {
		tags = append(tags, "endure")
	}
	return tags
}
