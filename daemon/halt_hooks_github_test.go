package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// aGitHub is gh as far as the script asks it: it keeps its arguments, a workflow has
// the runs of the file "WORKFLOW STATUS", run 13 cannot be cancelled because it has
// ended, run 14 cannot at all, and no workflow "gone" is there.
const aGitHub = `#!/bin/sh
echo "$GH_TOKEN $*" >> HERE/asked
case "$1 $2" in
"run list")
	[ "$6" != gone ] || { echo "could not find any workflows named gone" >&2; exit 1; }
	[ "$3 $4 $5 $7 $9 ${10} ${11} ${12} ${13} ${14}" = "--repo example/site --workflow --status --limit 1000 --json databaseId --jq .[].databaseId" ] || exit 9
	cat "HERE/$6 $8" 2>/dev/null || true ;;
"run cancel") [ "$5" != 13 ] && [ "$5" != 14 ] || { echo "cannot cancel run $5" >&2; exit 1; } ;;
"run view") if [ "$5" = 13 ]; then echo completed; else echo in_progress; fi ;;
*) exit 9 ;;
esac
`

// The document's /ai-stop cancels the runs of one workflow, ai-company, of which
// there were none: those that ran had other names (findings 5.1). The script of
// examples/halt-hooks asks for each workflow that is named, cancels every run of it
// that goes on, and says so where it could not.
func Test001_Layer4_AiStop_cancels_remote_workflows(t *testing.T) {
	script, err := filepath.Abs("../examples/halt-hooks/cancel-workflows")
	if err != nil {
		t.Fatal(err)
	}
	h := newHaltHooked(t, script+" example/site ai-civilization-nightly.yml 'Deploy to staging'", script+" example/site gone Deploy", script+" example/site")
	text, err := os.ReadFile(h.opt.Config)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"bin/gh": strings.ReplaceAll(aGitHub, "HERE", h.dir), "holdfast.yaml": strings.ReplaceAll(string(text), "HF_TEST_NAMED", "GH_TOKEN"),
		"ai-civilization-nightly.yml in_progress": "11\n12\n", "ai-civilization-nightly.yml queued": "13\n", "Deploy to staging waiting": "21\n", "Deploy in_progress": "14\n15\n", "ai-company in_progress": "99\n"} {
		if err := os.MkdirAll(filepath.Dir(h.at(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(h.at(name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(h.opt.Config, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", h.at("bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("GH_TOKEN", "of-the-hook")
	d, c, down := serve(t, h.opt)
	defer down()
	if _, err := c.Halt(t.Context(), api.Word{Who: "carol", Why: "it deploys"}); err != nil {
		t.Fatal(err)
	}
	runs := h.runs(d, 3)
	var cancelled []string
	b, err := os.ReadFile(h.at("asked"))
	for _, line := range strings.Split(string(b), "\n") {
		if rest, ok := strings.CutPrefix(line, "of-the-hook run cancel --repo example/site "); ok {
			cancelled = append(cancelled, rest)
		} else if line != "" && !strings.HasPrefix(line, "of-the-hook run ") {
			t.Errorf("asked %q", line)
		}
	}
	if want := []string{"11", "12", "13", "21", "14", "15"}; err != nil || !slices.Equal(cancelled, want) {
		t.Errorf("%v: cancelled %q, not %q", err, cancelled, want)
	}
	for i, want := range []struct {
		ok   bool
		said []string
	}{
		{true, []string{"cancelled run 11 of ai-civilization-nightly.yml", "run 13 of ai-civilization-nightly.yml had ended", "cancelled run 21 of Deploy to staging"}},
		{false, []string{"runs of gone cannot be listed", "run 14 of Deploy could not be cancelled", "cancelled run 15 of Deploy"}},
		{false, []string{"usage: cancel-workflows OWNER/REPO WORKFLOW..."}},
	} {
		said, _ := runs[i]["said"].(string)
		for _, words := range want.said {
			if runs[i]["ok"] != want.ok || !strings.Contains(said, words) {
				t.Errorf("hook %d said %q, without %q: %v", i, said, words, runs[i])
			}
		}
	}
}
