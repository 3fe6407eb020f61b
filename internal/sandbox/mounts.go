package sandbox

import "strings"

// Mounts counts the mounts of a mount namespace that others share, which info
// describes as /proc/PID/mountinfo does: all of them, but what others come and go
// with, which is what lies beneath /tmp or /var/tmp and not beneath one of own. What
// a sandbox leaves behind, wherever, is counted.
func Mounts(info string, own ...string) (n int) {
	for line := range strings.Lines(info) {
		f := strings.Fields(line) // ID parent device root point ...
		if len(f) < 5 || !others(UnescapeMount(f[4]), own) {
			n++
		}
	}
	return n
}

// UnescapeMount returns a path of mountinfo (proc(5)) without its octal escapes.
func UnescapeMount(s string) string { return unescaped.Replace(s) }

var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func others(point string, own []string) bool {
	for _, dir := range own {
		if point == dir || strings.HasPrefix(point, strings.TrimSuffix(dir, "/")+"/") {
			return false
		}
	}
	return strings.HasPrefix(point, "/tmp/") || strings.HasPrefix(point, "/var/tmp/")
}
