package visible

import "testing"

func TestIsVisible(t *testing.T) {
	for _, r := range "aÉ中\U0001f600 ~$\ufffde\u0301" {
		if !IsVisible(r) {
			t.Errorf("%U is not visible", r)
		}
	}
	for _, r := range []rune{
		0, '\t', '\n', 0x1b, 0x7f, 0x85, // controls
		0xa0, 0x2003, 0x3000, 0x2028, // spaces
		0xad, 0x200b, 0x200d, 0x202e, 0xfeff, 0xe0041, // format
		0x115f, 0x3164, 0xffa0, 0x034f, 0x2800, // display nothing
		0xfe0f, 0xe0100, 0x180b, // select a variation
		0xe000, 0xd800, 0x10ffff, -1, // private, no character
	} {
		if IsVisible(r) {
			t.Errorf("%U is visible", r)
		}
	}
}

func TestIsGraphicWord(t *testing.T) {
	for s, want := range map[string]bool{
		"": true, "mcp/files/move_file": true, "é中😀": true, "a\ufffd": true, "a\xff": true, "a\u2800": true,
		"a b": false, " a": false, "a\tb": false, "a\n": false, "a\u00a0b": false, "a\u2003": false, "a\x00": false,
		"a\u200bb": false, "a\u202eb": false, "\ufeffa": false, "a\x7f": false, "a\u0085": false,
	} {
		if got := IsGraphicWord(s); got != want {
			t.Errorf("IsGraphicWord(%q) is %v", s, got)
		}
	}
}

func TestReplaceControls(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "plain é中": "plain é中", "a\tb\r\nc": "a?b??c", "\x1b[31mred": "?[31mred", "\x00\x7f": "??",
		"\u0080\u009f\u00a0": "??\u00a0", "a\u202eb": "a\u202eb", "a\xff": "a\ufffd",
	} {
		if got := ReplaceControls(s, '?'); got != want {
			t.Errorf("ReplaceControls(%q) is %q, want %q", s, got, want)
		}
	}
	if got := ReplaceControls("a\nb", ' '); got != "a b" {
		t.Errorf("with a space: %q", got)
	}
}
