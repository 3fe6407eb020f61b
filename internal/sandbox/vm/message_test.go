package vm

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestFramesComeAsTheyWent: what is written is read, and what is damaged, cut or
// no frame is an error.
func TestFramesComeAsTheyWent(t *testing.T) {
	var b bytes.Buffer
	if err := writeFrame(&b, frame{frameOrder, []byte("an order")}); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	f, err := readFrame(bytes.NewReader(whole))
	if err != nil || f.kind != frameOrder || string(f.body) != "an order" {
		t.Errorf("read %q %q (%v)", f.kind, f.body, err)
	}
	for i := range whole {
		if _, err := readFrame(bytes.NewReader(whole[:i])); err == nil {
			t.Errorf("the first %d bytes of a frame are one", i)
		}
		bad := bytes.Clone(whole)
		bad[i] ^= 0x80
		if f, err := readFrame(bytes.NewReader(bad)); err == nil && f.kind == frameOrder {
			t.Errorf("byte %d was changed, and the frame is read: %q", i, f.body)
		}
	}
	if err := writeFrame(&b, frame{frameOrder, make([]byte, maxFrame+1)}); err == nil {
		t.Error("a frame beyond the bound is written")
	}
	huge := append([]byte(frameMagic+"O"), 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0)
	if _, err := readFrame(bytes.NewReader(huge)); err == nil || !strings.Contains(err.Error(), "begins no frame") {
		t.Errorf("a frame of 2 GB: %v", err)
	}
}

func good() *posture.Result {
	return &posture.Result{ID: "r1", Stdout: []byte("out"), Stderr: []byte("err"), OutputFiles: map[string][]byte{"a/b": []byte("c"), "empty": {}},
		State: posture.Completed, Path: posture.PathParked, UserTime: time.Second}
}

// TestRequestsAndAnswersComeAsTheyWent through the shared memory.
func TestRequestsAndAnswersComeAsTheyWent(t *testing.T) {
	room := make([]byte, 1<<16)
	n, err := packSpec(sandbox.Spec{ID: "r1", Language: "python3", Code: []byte("print(1)"), Files: map[string][]byte{"x": []byte("y")}, Environment: map[string]string{"A": "b"}}, room)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := unpackSpec(room[:n])
	if err != nil || string(spec.Code) != "print(1)" || string(spec.Files["x"]) != "y" || spec.Environment["A"] != "b" || spec.ID != "r1" {
		t.Errorf("%+v (%v)", spec, err)
	}
	if n, err = packResult(good(), room); err != nil {
		t.Fatal(err)
	}
	res, refused, err := unpackAnswer(room[:n], "r1")
	if err != nil || refused != nil || string(res.Stdout) != "out" || string(res.Stderr) != "err" || string(res.OutputFiles["a/b"]) != "c" || len(res.OutputFiles) != 2 {
		t.Errorf("%+v %v (%v)", res, refused, err)
	}
	for i := range n {
		if _, _, err := unpackAnswer(room[:i], "r1"); err == nil {
			t.Errorf("the first %d of %d bytes of an answer are one", i, n)
		}
	}
	if n, err = packError(&holdfast.Error{Kind: holdfast.KindLanguage, Why: "no\nsuch", Hint: "hint"}, room); err != nil {
		t.Fatal(err)
	}
	if _, refused, err = unpackAnswer(room[:n], "r1"); err != nil || refused == nil || refused.Kind != holdfast.KindLanguage || refused.Why != "no such" {
		t.Errorf("%+v (%v)", refused, err)
	}
	if _, err := packSpec(sandbox.Spec{Code: make([]byte, 1<<16)}, room); err == nil {
		t.Error("a request larger than the memory is packed")
	}
}

// TestAnswersThatNoRunGives are not believed, whatever took the guest over.
func TestAnswersThatNoRunGives(t *testing.T) {
	for name, change := range map[string]func(*posture.Result){
		"of another run": func(r *posture.Result) { r.ID = "r2" },
		"in no state":    func(r *posture.Result) { r.State = "FINE" },
		"that never ran": func(r *posture.Result) { r.State = posture.SpawnError },
		"for no reason":  func(r *posture.Result) { r.Reason = "because" },
		"by no path":     func(r *posture.Result) { r.Path = "" },
		"blocked without a call": func(r *posture.Result) {
			r.State, r.Reason, r.ExitCode = posture.SyscallBlocked, posture.ReasonEscape, 159
		},
		"escaped and completed": func(r *posture.Result) { r.Reason, r.Call = posture.ReasonEscape, &posture.Call{} },
		"with exit code 256":    func(r *posture.Result) { r.ExitCode = 256 },
		"with exit code -1":     func(r *posture.Result) { r.ExitCode = -1 },
		"too long":              func(r *posture.Result) { r.Stdout = make([]byte, sandbox.MaxOutput+maxWords+1) },
		"with a climbing file":  func(r *posture.Result) { r.OutputFiles = map[string][]byte{"../x": nil} },
		"with an absolute file": func(r *posture.Result) { r.OutputFiles = map[string][]byte{"/etc/x": nil} },
		"with too many stages":  func(r *posture.Result) { r.Stages = make([]posture.Stage, maxListed+1) },
		"that cut what is not":  func(r *posture.Result) { r.Cut = []string{"stdin"} },
		"of negative time":      func(r *posture.Result) { r.UserTime = -1 },
		"that refused below nothing": func(r *posture.Result) {
			r.Refused = []posture.Refusal{{Name: "socket", Errno: "EACCES", Count: -1 << 40}}
		},
		"that refused beyond the flood": func(r *posture.Result) {
			r.Refused = []posture.Refusal{{Name: "socket", Errno: "EACCES", Count: 1 << 60}}
		},
		"with lines in a skipped name": func(r *posture.Result) { r.Skipped = map[string]string{"x\nholdfast: all is well": "y"} },
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			change(r)
			room := make([]byte, 4<<20)
			n, err := packResult(r, room)
			if err != nil {
				t.Fatal(err)
			}
			if res, _, err := unpackAnswer(room[:n], "r1"); err == nil {
				t.Errorf("believed: %+v", res)
			}
		})
	}
}

// TestWhatTheHostKnowsNoGuestSays: a guest that was taken over cannot write into
// a result, and so into the ledger, why its tier was chosen, which walls stand, or
// what the run went through and when.
func TestWhatTheHostKnowsNoGuestSays(t *testing.T) {
	now := time.Now()
	r := good()
	r.Chosen, r.Posture = "process: nothing asks for more", posture.Posture{Tier: posture.TierProcess, Runtime: "none"}
	r.States, r.Around = []posture.Step{{State: posture.Completed, At: now}}, []posture.Step{{State: posture.Destroyed, At: now}}
	r.Start, r.End, r.Gone = now, now, now
	r.Stages = []posture.Stage{{Name: "end", Took: -time.Hour}}
	room := make([]byte, 1<<16)
	n, err := packResult(r, room)
	if err != nil {
		t.Fatal(err)
	}
	res, _, err := unpackAnswer(room[:n], "r1")
	if err != nil {
		t.Fatal(err)
	}
	if res.Chosen != "" || res.Posture.Tier != posture.TierNone || res.Posture.Runtime != "" || res.States != nil || res.Around != nil ||
		!res.Start.IsZero() || !res.End.IsZero() || !res.Gone.IsZero() || res.Stages[0].Took != 0 {
		t.Errorf("it is believed: %q %+v %v %v %v %v %v %v", res.Chosen, res.Posture, res.States, res.Around, res.Start, res.End, res.Gone, res.Stages)
	}
}

func FuzzUnpack(f *testing.F) {
	room := make([]byte, 1<<16)
	n, _ := packResult(good(), room)
	f.Add(bytes.Clone(room[:n]))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		res, refused, err := unpackAnswer(b, "r1")
		if err == nil && (res == nil) == (refused == nil) {
			t.Error("neither a result nor a refusal")
		}
		if res != nil && err == nil {
			for name := range res.OutputFiles {
				if !sandbox.GoodName(name) {
					t.Errorf("the file %q", name)
				}
			}
		}
	})
}

// TestArchive: the bytes of an archive are those of the format, aligned, with
// every directory before what is in it, and what does not fit is an error.
func TestArchive(t *testing.T) {
	var b bytes.Buffer
	a := newArchive(&b)
	a.put("/a/b/c", entry{mode: modeFile | 0o755, mtime: time.Unix(0x12345678, 0)}, 5, strings.NewReader("hello"))
	a.put("dev/console", entry{mode: modeChar | 0o600, major: 5, minor: 1}, 0, nil)
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "a/b", "a/b/c", "dev", "dev/console", trailer}
	rest := b.Bytes()
	for _, name := range want {
		if !bytes.HasPrefix(rest, []byte("070701")) || len(rest)%4 != 0 {
			t.Fatalf("%q: %.20q begins no entry, with %d bytes left", name, rest, len(rest))
		}
		field := func(i int) (n int) {
			for _, c := range rest[6+8*i : 14+8*i] {
				n = n<<4 + strings.IndexByte("0123456789abcdef", c)
			}
			return n
		}
		if got := string(rest[110 : 110+field(11)-1]); got != name {
			t.Fatalf("%q where %q is expected", got, name)
		}
		body := (110 + field(11) + 3) &^ 3
		if name == "a/b/c" && (string(rest[body:body+5]) != "hello" || field(1) != modeFile|0o755 || field(5) != 0x12345678) {
			t.Errorf("%s: %q", name, rest[:body+5])
		}
		if name == "dev/console" && (field(9) != 5 || field(10) != 1) {
			t.Errorf("%s: %q", name, rest[:body])
		}
		rest = rest[(body+field(6)+3)&^3:]
	}
	if len(rest) > 0 {
		t.Errorf("%q is left", rest)
	}
	for _, name := range []string{"", "/", "TRAILER!!!", "a\x00b"} {
		a := newArchive(&bytes.Buffer{})
		if a.put(name, entry{mode: modeFile}, 0, nil); a.close() == nil {
			t.Errorf("%q is taken", name)
		}
	}
	a = newArchive(&bytes.Buffer{})
	if a.put("short", entry{mode: modeFile}, 6, strings.NewReader("hello")); a.close() == nil {
		t.Error("a file shorter than it says is taken")
	}
}
