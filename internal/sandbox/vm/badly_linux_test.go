package vm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// belongings are what is the tier's own on this machine: descriptors by what they are, machines,
// and mounts, wherever they are but in other tests' directories.
func belongings(t *testing.T, own ...string) string {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, d := range list {
		to, err := os.Readlink("/proc/self/fd/" + d.Name())
		if kind, _, _ := strings.Cut(to, ":["); err == nil && kind != "anon_inode" && kind != "pipe" {
			kinds[kind]++ // Go keeps what it waits with
		}
	}
	mounts, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(kinds, children(t), sandbox.Mounts(string(mounts), append(own, filepath.Dir(parts(t).Program))...))
}

// framed is a shell's word for frames.
func framed(t *testing.T, list ...frame) string {
	t.Helper()
	var b bytes.Buffer
	for _, f := range list {
		if err := writeFrame(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	var s strings.Builder
	for _, c := range b.Bytes() {
		fmt.Fprintf(&s, `\%03o`, c)
	}
	return "printf '" + s.String() + "' >&4\n"
}

const (
	resumes = `echo '{"return": {}}{"event": "RESUME"}' | sed 's/}{"e/}\n{"e/' >&3` + "\n"
	waits   = "exec sleep 600\n"
	silent  = "it said nothing in time"
	killed  = "the machine ended (signal: killed)"
	stopped = "the run was stopped"
)

// waitsNow returns when a machine that is a shell script has come to wait.
func waitsNow(m *machine) {
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.cmd.Process.Pid))
		if err != nil || string(b) == "sleep\n" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestBadRestoredMachines: whatever a machine does instead of going on where its
// template waits, the run is refused or ends with words that say it, and nothing
// of it stays: no process, descriptor, memory, mount or file.
func TestBadRestoredMachines(t *testing.T) {
	took := framed(t, frame{frameAccepted, []byte("null")})
	for name, tc := range map[string]struct{ does, why, res string }{
		"hangs":                      {waits, silent, ""},
		"ends at once":               {"echo no such device >&2; exit 3", "the machine ended (exit status 3); it said last: no such device", ""},
		"is killed":                  {waits, killed, ""},
		"talks no protocol":          {"echo nonsense >&3\n" + waits, `QEMU said what is no JSON: "nonsense`, ""},
		"talks without end":          {"while :; do echo '{}'; done >&3", "QEMU did not answer to be restored", ""},
		"says a line without end":    {"while :; do printf 0123456789abcdef0123456789abcdef; done >&3", "buffer full", ""},
		"refuses the state":          {`echo '{"error": {"class": "GenericError", "desc": "Unknown savevm section"}}' >&3` + "\n" + waits, "QEMU refused to be restored: Unknown savevm section", ""},
		"goes on and says nothing":   {resumes + waits, silent, ""},
		"goes on and ends":           {resumes + "exit 0", "the machine ended (exit status 0)", ""},
		"goes on and talks nonsense": {resumes + "echo nonsense nonsense >&4\n" + waits, "begins no frame", ""},
		"goes on and greets again":   {resumes + framed(t, frame{frameReady, []byte("{}")}) + waits, `the guest said 'R' where 'A' was its turn`, ""},
		"goes on and fails":          {resumes + framed(t, frame{frameFailed, []byte("the clock cannot\nbe set")}) + waits, "the guest cannot go on: the clock cannot be set", ""},
		"takes the order and ends":   {resumes + took + "exit 0", "", "the machine ended"},
		"takes it and is silent":     {resumes + took + waits, "", stopped},
		"answers without an answer":  {resumes + took + framed(t, frame{frameDone, []byte("{}")}) + waits, "", "how long its answer is"},
		"answers with nothing":       {resumes + took + framed(t, frame{frameDone, []byte(`{"length":4096}`)}) + waits, "", "cannot be believed"},
		"answers more than there is": {resumes + took + framed(t, frame{frameDone, []byte(fmt.Sprintf(`{"length":%d}`, boxBytes+1))}) + waits, "", "how long its answer is"},
	} {
		t.Run(name, func(t *testing.T) {
			b := machineThat(t, tc.does)
			made, p := small(t)
			made.hardware, made.qemu = p.hardware, b.cfg.QEMU
			own := filepath.Dir(t.TempDir())
			before := belongings(t, own)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := made.restore(behindWalls)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			spec := sandbox.Spec{ID: "r", Language: "python3.11", Code: []byte("0"), Timeout: time.Minute}
			if tc.res == "" {
				patience := acceptWithin
				if tc.why == silent {
					patience = 300 * time.Millisecond
				} else if tc.why == killed {
					go func() { waitsNow(r.machine); r.cmd.Process.Kill() }()
				}
				stop := r.within(ctx, patience)
				_, err = r.begin(spec)
				stop()
				if err == nil || !strings.Contains(err.Error(), tc.why) {
					t.Errorf("%v, want %q", err, tc.why)
				}
			} else {
				if tc.res == stopped {
					go func() { waitsNow(r.machine); time.Sleep(time.Second); cancel() }()
				}
				at := posture.Instants{Raised: time.Now()}
				res, err := r.perform(ctx, spec, &at)
				if err != nil || res.Reason != posture.ReasonHalt || res.ExitCode != posture.ExitLimit || !strings.Contains(res.Err, tc.res) {
					t.Errorf("%+v %v, want %q", res, err, tc.res)
				}
			}
			r.close()
			if after := belongings(t, own); after != before {
				t.Errorf("it left %s, before %s", after, before)
			}
			if list, _ := filepath.Glob(filepath.Join(b.cfg.Dir, "*")); len(list) > 0 {
				t.Errorf("it left %v", list)
			}
		})
	}
}

// TestHowItEndedIsTold whichever side notices first, in an order that is forced: the
// machine is gone before Holdfast writes, or it ends when it was written to. What it
// said before is told too, and one that hangs up and stays is not waited for.
func TestHowItEndedIsTold(t *testing.T) {
	took := framed(t, frame{frameAccepted, []byte("null")})
	const (
		asked   = iota // begin is called at once
		gone           // ... when the machine has ended
		resumed        // take is, when it has ended after it went on
	)
	for name, tc := range map[string]struct {
		does string
		when int
		why  string
	}{
		"gone before the first word": {"echo no such device >&2; exit 3", gone, "the machine ended (exit status 3); it said last: no such device"},
		"gone before its order":      {resumes + "exit 4", resumed, "the machine ended (exit status 4)"},
		"gone with words of its own": {resumes + framed(t, frame{frameFailed, []byte("no clock")}) + "exit 5", resumed, "the guest cannot go on: no clock"},
		"gone when it was written":   {resumes + `until [ "$(head -c 4 <&4 2>/dev/null)" = ` + frameMagic + ` ]; do sleep 0.01; done; exit 6`, asked, "the machine ended (exit status 6)"},
		"gone and had taken it":      {resumes + took + "exit 7", resumed, "the machine ended (exit status 7)"},
		"hangs up and stays":         {resumes + "exec 3>&- 4>&-\n" + waits, asked, "the machine hung up"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			b := machineThat(t, tc.does)
			made, p := small(t)
			made.hardware, made.qemu = p.hardware, b.cfg.QEMU
			r, err := made.restore(behindWalls)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			if tc.why == "the machine hung up" {
				r.parting = 10 * time.Millisecond
			}
			defer r.within(t.Context(), acceptWithin)()
			next := r.begin
			if tc.when == resumed {
				if err := r.resume(); err != nil {
					t.Fatal(err)
				}
				next = r.take
			}
			if tc.when != asked {
				<-r.done
			}
			_, err = next(sandbox.Spec{ID: "r", Language: "python3.11", Code: []byte("0"), Timeout: time.Minute})
			if err == nil { // it had taken its order
				_, err = r.expect(frameDone)
			}
			if err == nil || err.Error() != tc.why {
				t.Errorf("%v, want %q", err, tc.why)
			}
		})
	}
}

// TestStateThatQEMUCannotRead: the state of another machine, or half of one, is
// refused in QEMU's words, and leaves nothing.
func TestStateThatQEMUCannotRead(t *testing.T) {
	made, err := tier(t).template(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*template){
		"half of it":         func(m *template) { m.state = m.state[:len(m.state)/2] },
		"none":               func(m *template) { m.state = nil },
		"of another format":  func(m *template) { m.state = append([]byte("QEVN"), m.state[4:]...) },
		"of another machine": func(m *template) { m.state = bytes.Replace(m.state, []byte("pc-i440fx"), []byte("pc-i440fy"), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			other := *made
			change(&other)
			if bytes.Equal(other.state, made.state) {
				t.Fatal("it is as it was")
			}
			before := belongings(t)
			r, err := other.restore(behindWalls)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			at := posture.Instants{Raised: time.Now()}
			res, err := r.perform(t.Context(), sandbox.Spec{ID: "r", Language: made.hello.Languages[0], Code: []byte("0"), Timeout: time.Second}, &at)
			if res != nil || err == nil || strings.Contains(err.Error(), "in time") {
				t.Errorf("%+v %v", res, err)
			}
			t.Log(err)
			r.close()
			if after := belongings(t); after != before {
				t.Errorf("it left %s, before %s", after, before)
			}
		})
	}
}

// TestTemplateThatNeverGreets is given up in its time, and leaves nothing.
func TestTemplateThatNeverGreets(t *testing.T) {
	parts(t) // which all tests share, and which stay
	own := filepath.Dir(t.TempDir())
	before := belongings(t, own)
	b := machineThat(t, waits)
	p, err := b.plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, err := boot(t.Context(), p, 500*time.Millisecond)
	p.image.Close()
	if made != nil || err == nil || !strings.Contains(err.Error(), silent) {
		t.Errorf("%v", err)
	}
	b.Close() // which keeps an heir from its first machine on
	if after := belongings(t, own); after != before {
		t.Errorf("it left %s, before %s", after, before)
	}
}

// TestBelongingsAreFound: a mount that stays is found where a machine makes it,
// and where a run's files are; another test's is not one's own.
func TestBelongingsAreFound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("nobody else may mount: tried where tests run as root")
		return
	}
	own, other := t.TempDir(), t.TempDir()
	parts(t)
	for dir, found := range map[string]bool{own: true, "/sys": true, other: false} {
		before, after := "", ""
		elsewhere(t, func() error { // what is mounted here is seen by nobody else
			before = belongings(t, own)
			err := unix.Mount("left", dir, "tmpfs", 0, "size=1m")
			after = belongings(t, own)
			return err
		})
		if (before != after) != found {
			t.Errorf("a mount on %s: %s, before %s", dir, after, before)
		}
	}
}

// elsewhere runs f in a mount namespace of its own.
func elsewhere(t *testing.T, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
