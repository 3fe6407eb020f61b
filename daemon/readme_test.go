package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the README shows of a whole configuration is one.
func TestReadmeConfigurationsLoad(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(b), "```yaml\nversion: 1\n")[1:]
	if len(blocks) == 0 {
		t.Error("there is none")
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		dir := write(t, map[string]string{"holdfast.yaml": "version: 1\n" + text})
		l, err := Load(filepath.Join(dir, "holdfast.yaml"))
		if err != nil {
			t.Errorf("%v\n%s", err, text)
		} else if l.Config.Sandbox.Executor.Listen == "" || !l.Config.MCP.Servers["code"].Sandbox {
			t.Errorf("%+v", l.Config.Sandbox)
		}
	}
}
