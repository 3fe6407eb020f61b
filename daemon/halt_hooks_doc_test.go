package daemon

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
)

// The page has every field of an alert as JSON, in their order.
func TestAlertsPageHasEveryField(t *testing.T) {
	page, err := os.ReadFile("../doc/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## What is sent\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var got, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			got = append(got, name[1])
		}
	}
	for f := range reflect.TypeFor[notify.Message]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want = append(want, name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has %q, and an alert %q", got, want)
	}
}

// What a halt hook gets on its standard input and in its environment is what
// doc/alerts.md says, all of it and no more.
func TestD34_HaltHooks_getWhatThePageSays(t *testing.T) {
	page, err := os.ReadFile("../doc/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## Halt hooks\n")
	text, _, _ = strings.Cut(text, "\n## ")
	said := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(text, -1) {
		said[row[1]] = row[2]
	}
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "") // an example names what its hook gets besides
	plain := map[string]bool{}
	for _, name := range regexp.MustCompile(`\b[A-Z][A-Z_]+\b\*?`).FindAllString(text, -1) {
		plain[name] = true
	}
	delete(plain, "JSON")

	h := newHaltHooked(t, "cat > HERE/told; env > HERE/env; : > HERE/done")
	t.Setenv("HF_TEST_NAMED", "given")
	t.Setenv("HF_TEST_SECRET", "kept back")
	d, c, down := serve(t, h.opt)
	defer down()
	if _, err := c.Halt(t.Context(), api.Word{Who: "carol", Why: "it loops, says ann@example.com"}); err != nil {
		t.Fatal(err)
	}
	h.runs(d, 1)
	told, err := os.ReadFile(h.at("told"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(told, &got); err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	if fields, want := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(said)); !slices.Equal(fields, want) {
		t.Errorf("it is told %q, and the page has %q", fields, want)
	}
	if "`"+got["level"]+"`" != said["level"] || "`"+got["event"]+"`" != said["event"] || got["tenant_id"] != "" || !strings.HasPrefix(got["why"], "carol: it loops, says ") || strings.Contains(got["why"], "ann@example.com") {
		t.Errorf("it is told %s", told)
	}
	env, err := os.ReadFile(h.at("env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`(?m)^(\w+)=`).FindAllStringSubmatch(string(env), -1) {
		switch n := name[1]; {
		case n == "HF_TEST_NAMED", n == "PWD", n == "OLDPWD", n == "SHLVL", n == "_": // the shell's own, but for what env names
		case plain[n], plain["LC_*"] && strings.HasPrefix(n, "LC_"), plain["XDG_*"] && strings.HasPrefix(n, "XDG_"):
		default:
			t.Errorf("it has %s, of which the page says nothing", n)
		}
	}
	for name := range plain {
		kept := server.Environment([]string{strings.Replace(name, "*", "X", 1) + "=1"}, nil)
		if len(kept) != 1 && name != "HOLDFAST_STATE" {
			t.Errorf("the page says %s, which no hook gets", name)
		}
	}
	if !plain["HOLDFAST_STATE"] || !strings.Contains(string(env), "HOLDFAST_STATE="+d.Paths.Dir+"\n") || !strings.Contains(string(env), "HF_TEST_NAMED=given") {
		t.Errorf("it has\n%s", env)
	}
}
