package daemon

import (
	"strings"
	"testing"
)

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
		m, ok := parseReadOnlyMapping(line, file)
		if ok != (want != [2]uintptr{}) || ok && (m.from != want[0] || m.to != want[1]) {
			t.Errorf("%q: %x-%x, %v", line, m.from, m.to, ok)
		}
	}
}

func TestMappingsWithPagesOfTheProcessAreKept(t *testing.T) {
	const smaps = `00400000-02a00000 r-xp 00000000 fe:01 123      /bin/holdfast
Size:              38912 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
02a00000-03a00000 r--p 02600000 fe:01 123      /bin/holdfast
Anonymous:             4 kB
03a00000-03b00000 rw-p 03600000 fe:01 123      /bin/holdfast
Anonymous:             0 kB
03b00000-03c00000 r--p 00000000 fe:01 124      /bin/other
Anonymous:             0 kB
03c00000-03d00000 r--p 03700000 fe:01 123      /bin/holdfast
`
	got, err := readCleanMappings(strings.NewReader(smaps), "/bin/holdfast")
	if err != nil || len(got) != 1 || got[0] != (memoryRange{0x400000, 0x2a00000}) {
		t.Errorf("%x, %v", got, err)
	}
}
