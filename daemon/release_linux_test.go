package daemon

import "testing"

func TestParseReadOnlyMapping(t *testing.T) {
	const file = "/usr/bin/hold fast"
	for line, want := range map[string][2]uintptr{
		"00400000-02a00000 r-xp 00000000 fe:01 123      /usr/bin/hold fast": {0x400000, 0x2a00000},
		"02a00000-03a00000 r--p 02600000 fe:01 123      /usr/bin/hold fast": {0x2a00000, 0x3a00000},
		"03a00000-03b00000 rw-p 03600000 fe:01 123      /usr/bin/hold fast": {},
		"02a00000-03a00000 r--s 02600000 fe:01 123      /usr/bin/hold fast": {},
		"02a00000-03a00000 r--p 00000000 fe:01 124      /usr/bin/other":     {},
		"c000000000-c000400000 rw-p 00000000 00:00 0 ":                      {},
		"03a00000-02a00000 r--p 00000000 fe:01 123      /usr/bin/hold fast": {},
		"x-y r--p 00000000 fe:01 123      /usr/bin/hold fast":               {},
		"": {},
	} {
		from, to, ok := parseReadOnlyMapping(line, file)
		if ok != (want != [2]uintptr{}) || ok && (from != want[0] || to != want[1]) {
			t.Errorf("%q: %x-%x, %v", line, from, to, ok)
		}
	}
}

// TestReleaseProgramKeepsRunning: what is released is mapped again when it is used.
func TestReleaseProgramKeepsRunning(t *testing.T) {
	for range 3 {
		if err := releaseProgram(); err != nil {
			t.Fatal(err)
		}
	}
}
