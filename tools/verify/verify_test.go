package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// holdfast is the command itself, built once from the repository beside this
// module.
var holdfast = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(work, "holdfast")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/holdfast")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%v\n%s", err, out)
	}
	return bin, err
})

var work string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "verify")
	if err != nil {
		panic(err)
	}
	work = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

const config = `version: 1
listen: {pages: none}
boundaries:
  - boundary: agent/step
    risk: LOW
rules: {files: [rules.yaml]}
`

const rules = `rules:
  - id: never
    on: request
    boundary: agent/step
    when: args.action == "never"
    message: never
`

// exported is the export of a real ledger, its key and the file of a signed head that
// was kept before the end.
type exported struct {
	text      []byte
	key, head string
}

// ledgers are the ledgers that were made, by name: a ledger takes twenty commands.
var ledgers = map[string]exported{}

// makeReal makes a real ledger with crossings, refusals and a halt, and exports it. It
// is made once for each name.
func makeReal(t *testing.T, name string) (export []byte, key, kept string) {
	t.Helper()
	if l, ok := ledgers[name]; ok {
		return bytes.Clone(l.text), l.key, l.head
	}
	bin, err := holdfast()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(work, name)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"holdfast.yaml": config, "rules.yaml": rules} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do := func(args ...string) string {
		cmd := exec.Command(bin, args...)
		cmd.Env = append(os.Environ(), "HOLDFAST_STATE="+filepath.Join(dir, "s"), "HOLDFAST_CONFIG="+filepath.Join(dir, "holdfast.yaml"))
		out, _ := cmd.Output()
		return string(out)
	}
	for _, agent := range []string{"ann", "bob", "eve"} {
		for range 3 { // the third is one too many
			do("step", agent, "plan", `{"mail":"ann@example.com"}`)
		}
		do("step", agent, "never")
	}
	head := filepath.Join(dir, "kept.txt")
	if err := os.WriteFile(head, []byte(do("ledger", "checkpoint")), 0o600); err != nil {
		t.Fatal(err)
	}
	do("halt", "enough")
	do("step", "ann", "plan")
	do("ledger", "checkpoint")
	key = strings.TrimSpace(do("ledger", "key"))
	export = []byte(do("ledger", "export"))
	if !bytes.Contains(export, []byte(`{"end":true`)) {
		t.Fatalf("no export: %.200s", export)
	}
	ledgers[name] = exported{export, key, head}
	return bytes.Clone(export), key, head
}

// verify runs the program on an export.
func verify(t *testing.T, export []byte, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(append(args, "-"), bytes.NewReader(export), &o, &e)
	return code, o.String(), e.String()
}

func TestARealExport(t *testing.T) {
	export, key, kept := makeReal(t, "first")
	if code, out, errs := verify(t, export, "--key", key, "--checkpoint", kept); code != 0 || !strings.Contains(out, "verified: ") || errs != "" {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	if code, out, _ := verify(t, export); code != 0 || !strings.Contains(out, "own word") {
		t.Errorf("without a key: %d %s", code, out)
	}

	// Each single byte that is another is found, wherever it stands.
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		at := r.IntN(len(export))
		bad := bytes.Clone(export)
		for bad[at] == export[at] {
			bad[at] = byte(r.IntN(256))
		}
		if code, _, errs := verify(t, bad, "--key", key); code != 1 || errs == "" {
			line := 1 + bytes.Count(export[:at], []byte("\n"))
			t.Fatalf("byte %d, line %d, %q for %q: exit code %d, %s", at, line, bad[at], export[at], code, errs)
		}
	}

	// So is every cut, and every line that is gone, doubled or moved.
	lines := bytes.SplitAfter(export, []byte("\n"))
	lines = lines[:len(lines)-1]
	for i := range lines {
		cut := bytes.Join(lines[:i], nil)
		gone := append(bytes.Clone(cut), bytes.Join(lines[i+1:], nil)...)
		twice := append(append(bytes.Clone(cut), lines[i]...), bytes.Join(lines[i:], nil)...)
		for name, bad := range map[string][]byte{"cut": cut, "gone": gone, "twice": twice} {
			if code, _, _ := verify(t, bad, "--key", key); code != 1 {
				t.Errorf("line %d %s: exit code %d", i+1, name, code)
			}
		}
	}
}

// A tree that was cut back with its checkpoint, and an export under another
// key, are found by what is known besides.
func TestWhatOnlyAKeyOrAHeadFinds(t *testing.T) {
	export, key, kept := makeReal(t, "first")
	other, otherKey, _ := makeReal(t, "other")
	if code, _, errs := verify(t, other, "--key", key); code != 1 || !strings.Contains(errs, "another key") {
		t.Errorf("another's export: %d %s", code, errs)
	}
	if code, _, _ := verify(t, export, "--key", otherKey); code != 1 {
		t.Errorf("under another's key: %d", code)
	}
	if code, _, errs := verify(t, other, "--key", otherKey, "--checkpoint", kept); code != 2 {
		t.Errorf("another's head: %d %s", code, errs)
	}
	for _, args := range [][]string{{"--key", "nonsense"}, {"--nonsense"}, {"--checkpoint", kept}} {
		if code, _, errs := verify(t, export, args...); code != 2 || errs == "" {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	if code := run([]string{filepath.Join(t.TempDir(), "none")}, nil, &bytes.Buffer{}, &bytes.Buffer{}); code != 2 {
		t.Errorf("a file that is not there: %d", code)
	}
}

// It builds and runs where nothing of Holdfast is but its own files.
func TestElsewhere(t *testing.T) {
	export, key, _ := makeReal(t, "first")
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "main.go", "key.go", "record.go", "verify.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "ledger.jsonl")
	if err := os.WriteFile(file, export, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", ".", "--key", key, file)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("verified: ")) {
		t.Fatalf("%v\n%s", err, out)
	}
}
