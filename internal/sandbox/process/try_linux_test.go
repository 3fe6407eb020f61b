//go:build linux

package process

import (
	"cmp"
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/language"
)

// outcome is what came of a program that ran behind the walls.
type outcome struct {
	out, err string
	status   syscall.WaitStatus
	refused  []string // calls that were refused, each once
	killed   string   // the call that ended it, with its kind
	took     time.Duration
}

// try runs code in language l.
func try(t testing.TB, b *Tier, l language.Language, code string) outcome {
	t.Helper()
	res, err := b.Run(context.Background(), sandbox.Spec{ID: "try", Language: l.Exact, Code: []byte(code), Timeout: sandbox.MaxTimeout, MemoryMB: sandbox.MaxMemoryMB, CPUPeriod: 100 * time.Millisecond, CPUQuota: 200 * time.Millisecond, Need: anyWalls})
	if err != nil {
		t.Fatal(err)
	}
	r := outcome{out: string(res.Stdout), err: string(res.Stderr), took: res.WallTime, status: syscall.WaitStatus(res.ExitCode << 8)}
	for _, c := range res.Refused {
		r.refused = append(r.refused, c.Name)
	}
	if res.Signal != 0 {
		r.status = syscall.WaitStatus(res.Signal)
	}
	if res.Call != nil {
		kind := "violation"
		if res.Reason == posture.ReasonEscape {
			kind = "escape"
		}
		r.killed = res.Call.Name + " " + kind
		r.status = syscall.WaitStatus(syscall.SIGKILL)
	}
	return r
}

// anyWalls asks for what stands wherever the tests run, root or not.
var anyWalls = []posture.Wall{posture.WallPID, posture.WallNet, posture.WallMount, posture.WallSeccomp}

// installed is the language of a name on this machine; the test is skipped
// where it is not there.
func installed(t testing.TB, name string) language.Language {
	t.Helper()
	known := language.Find(context.Background())
	if l, ok := known.Find(context.Background(), name); ok {
		return l
	}
	_, missing := known.List()
	t.Skipf("%s is not here: %v", name, cmp.Or(missing[name], "not installed"))
	return language.Language{}
}

// prepared is a language and a tier that can run it.
func prepared(t testing.TB, name string) (language.Language, *Tier) {
	t.Helper()
	l := installed(t, name)
	b, err := Open(context.Background(), Config{Dir: rootsFor(t), Secret: func(string) bool { return false }, Note: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return l, b
}
