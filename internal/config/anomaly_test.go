package config

import (
	"strings"
	"testing"
)

// TestWatchConfig: limits only tighten and responses are only made stricter, but by
// an unsafe name, which is announced; what is none is an error that says which there
// are.
func TestWatchConfig(t *testing.T) {
	for text, want := range map[string]string{
		"watch: {iterations_per_hour: 21}":                          "20 is the most",
		"watch: {money_micro_per_hour: 5000001}":                    "5000000 is the most",
		"watch: {files_per_commit: 11}":                             "10 is the most",
		"watch: {error_rate: 0.06}":                                 "0.05 is the most",
		"watch: {unchecked: 25h}":                                   "24h is the most",
		"watch: {responses: {loop: alert}}":                         "milder",
		"watch: {responses: {lop: alert}}":                          `there is no condition "lop"`,
		"watch: {responses: {loop: nothing}}":                       "one of",
		"watch: {responses: {escape: halt}}":                        "not to be chosen",
		"watch: {responses: {no_human_check: pause}}":               "no agent",
		"watch: {error_rate: 0}":                                    "at least",
		"boundaries: [{boundary: watch/pause, risk: LOW}]":          "Holdfast's own",
		"watch: {iterations_per_hour: 20, responses: {loop: halt}}": "",
		"watch: {responses: {outlier: pause, rapid_actions: halt}}": "",
		"unsafe: {watch_looser: true}\nwatch: {iterations_per_hour: 2000, error_rate: 0.5, responses: {loop: record}}": "",
	} {
		l, err := load(t, "version: 1\n"+text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, not %q", text, err, want)
		}
		if want != "" || err != nil || !strings.HasPrefix(text, "unsafe") {
			continue
		}
		weak := strings.Join(l.Policy.Weakened, "\n")
		for _, s := range []string{"watch.iterations_per_hour: it exceeds 20",
			"watch.error_rate: it exceeds 0.05", "loop is answered with record, where its severity asks for pause"} {
			if !strings.Contains(weak, s) {
				t.Errorf("not announced: %s\nonly %s", s, weak)
			}
		}
	}
}
