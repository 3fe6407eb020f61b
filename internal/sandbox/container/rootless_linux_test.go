//go:build linux

package container_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestRunWhoeverStartsIt: root's run and an ordinary user's leave the host's
// devices as they are, end by their memory, are measured, and leave nothing behind
// that their programs closed.
func TestRunWhoeverStartsIt(t *testing.T) {
	c, dir := open(t, nil)
	for name, tc := range map[string]struct {
		code   string
		memory int64
		state  posture.State
		exit   int
		out    string
	}{
		"closed":   {"import os; os.makedirs('d/e/f'); os.chmod('d/e',0); os.chmod('d',0); print('done')", 64, posture.Completed, 0, "done\n"},
		"device":   {"import os\nfor d in 'null','zero','urandom':\n  try: os.utime('/dev/'+d); print('reached')\n  except OSError as e: print(e.errno)", 64, posture.Completed, 0, "30\n30\n30\n"},
		"writes":   {"open('/dev/null','w').write('x'); print(len(open('/dev/zero','rb').read(9)))", 64, posture.Completed, 0, "9\n"},
		"memory":   {"b=bytearray(200<<20)\nfor i in range(0,len(b),4096): b[i]=1\nimport time; time.sleep(20)", 48, posture.OOM, 137, ""},
		"measured": {"b=bytearray(50<<20)\nfor i in range(0,len(b),4096): b[i]=1\nimport time; time.sleep(0.1); print('held')", 128, posture.Completed, 0, "held\n"},
	} {
		res, err := c.Run(t.Context(), sandbox.Spec{ID: "run", Language: "python3", Code: []byte(tc.code), MemoryMB: tc.memory, Need: need(c)})
		if err != nil {
			t.Fatal(name, err)
		}
		if res.State != tc.state || res.ExitCode != tc.exit || string(res.Stdout) != tc.out {
			t.Errorf("%s: %s %d %q %.300q", name, res.State, res.ExitCode, res.Stdout, res.Stderr)
		}
		if mb := res.MemoryPeak >> 20; name == "measured" && (mb < 50 || mb > 100) {
			t.Errorf("%d MB were measured of 50 and a little", mb)
		}
	}
	if err := c.Close(); err != nil || len(c.Troubles()) > 0 {
		t.Error(err, c.Troubles())
	}
	nothingLeft(t, dir)
}
