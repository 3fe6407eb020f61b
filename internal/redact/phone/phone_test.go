package phone

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
)

// readGroups returns the groups of the first number of s, and whether "(" precedes it.
func readGroups(s string) (g []cursor.Group, bracket bool) {
	i := strings.IndexAny(s, "0123456789")
	x := cursor.Cursor{S: []byte(s)}
	return x.Groups(i, x.DigitRun(i), cursor.MaxDigits, nil), i > 0 && s[i-1] == '('
}

func TestMatchNational(t *testing.T) {
	for _, x := range []struct {
		text     string
		groups   int
		evidence Evidence
	}{
		{"(415) 555-0132", 3, Sure}, {"415-555-0132", 3, Sure}, {"415.555.0132 x123", 3, Sure}, {"415 555 0132",
			3, Prose},
		{"1 415 555 0132", 4, Sure}, {"001-415-555-0132", 4, Sure}, {"4155550132x77", 1, Sure}, {"4155550132",
			0, None},
		{"(415) 155-0132", 3, Prose}, {"112-155-0132", 3, Prose}, {"112.155.0132", 3, Prose},
		{"01632 960 001", 3, Likely}, {"(0161) 496 0000", 3, Likely}, {"020 7946 0958", 3, Likely},
		{"(0151) 12345678", 2, Likely}, {"0151/12345678", 2, Prose}, {"01 23 45 67 89", 5, Prose},
		{"01.23.45.67.89", 5, Prose}, {"030 12345678", 2, Prose}, {"079 123 45 67", 4, Prose}, {"06-12345678",
			2, Prose},
		{"8 (912) 345-67-89", 5, Likely}, {"(11) 91234-5678", 3, Prose}, {"0044 20 7946 0958", 4, Prose},
		{"00 33 1 23 45 67 89", 7, Prose}, {"98123 45678", 2, Prose}, {"138 1234 5678", 3, Prose},
		{"0161 496 0000 x12", 3, Likely}, {"030 12345678 ext. 4", 2, Likely},
		// What has the digits of a phone's number and another form.
		{"98123-45678", 0, None}, {"612 345 678", 0, None}, {"41 53 12 34", 0, None}, {"01-02-2026", 0, None},
		{"01.02.2026", 0, None}, {"2026-01-02", 0, None}, {"0317-8471", 0, None}, {"0-306-40615-2", 0, None},
		{"978-0-306-40615-7", 0, None}, {"044.168.18.00", 0, None}, {"112-1234567-1234567", 0, None},
		{"01234-5678-90", 0, None}, {"01 23 45 67 89 01", 0, None}, {"0012 3456 7890", 0, None},
		{"00 15 30 45 60 75 90", 0, None}, {"030.12345678", 0, None}, {"030  12345678", 0, None}, {"030\t12345678",
			0, None},
	} {
		g, bracket := readGroups(x.text)
		if n, e := MatchNational([]byte(x.text), g, bracket); n != x.groups || n > 0 && e != x.evidence {
			t.Errorf("MatchNational(%q) = %d, %d, want %d, %d", x.text, n, e, x.groups, x.evidence)
		}
	}
}

func TestExtensionEnd(t *testing.T) {
	for _, s := range []string{"x1", " x1234", " x 12", " x. 12", "X12", " ext. 12", ", ext 12", " extension 4",
		";ext=12",
		" (ext. 12)", " #4", "#4", " Durchwahl 12", " EXT 7"} {
		if got := ExtensionEnd([]byte("5550132"+s+" now"), 7); got != 7+len(s) {
			t.Errorf("ExtensionEnd of %q is %d, want %d", s, got-7, len(s))
		}
	}
	for _, s := range []string{" 12", " extra 12", "x1234567", " x12a", ", X5", ", x5", "(x12", "x", " exit 12",
		"-x12", "xx12"} {
		if got := ExtensionEnd([]byte("5550132"+s), 7); got != 7 {
			t.Errorf("ExtensionEnd takes %q of %q", s[:got-7], s)
		}
	}
}

func TestIsInProse(t *testing.T) {
	for _, s := range []string{
		"he is at § now", "he is at §.", "he is at § (until six)", "§ is hers", "Ann Lee\n§\n", "try (§), please",
		"say “§” to him",
		"it is here: §", `"content":"he is at § today"`, `he is at §","x":1`, "one\\nhe is at §\\nfour",
		"on the pad; try § then", "- § is hers",
	} {
		if at := strings.Index(s, "§"); !IsInProse([]byte(s), at, at+len("§")) {
			t.Errorf("%q is not prose", s)
		}
	}
	for _, s := range []string{
		"§", "x = §", "value: §", "12 § 34", "a,§,b", "| § |", "\t§\n", "f(§)", "[§]", "<td>§</td>", "id_§", "§ 12",
		"'§'", "12\n§\n13\n",
		"Total\n§\n12\n", "x = [\n§\n]", "GB82 WEST § 05", "int v = at § now", "at §abc", "at § x_y", "# v §",
	} {
		if at := strings.Index(s, "§"); IsInProse([]byte(s), at, at+len("§")) {
			t.Errorf("%q is prose", s)
		}
	}
}

func TestWordsNameANumber(t *testing.T) {
	for s, want := range map[string]bool{
		"my number is §": true, "his new number: §": true, "our office no. §": true, "mi numero es §": true,
		"my order number is §": false, "the number is §": false, "number §": false, "my §": false,
	} {
		if got := IsOwned([]byte(s), strings.Index(s, "§")); got != want {
			t.Errorf("IsOwned(%q) is %v", s, got)
		}
	}
	for s, want := range map[string]bool{
		"order § ": true, "part no. §": true, "the registration number is §": true, "Bestellung §": true,
		"my number is §": false, "the number is §": false, "she is at §": false, "order now\n§": false,
	} {
		if got := IsOtherKind([]byte(s), strings.Index(s, "§")); got != want {
			t.Errorf("IsOtherKind(%q) is %v", s, got)
		}
	}
	for s, want := range map[string]bool{
		"41 53 12 34 (mobile)": true, "41 53 12 34 - fax": true, "612 345 678 (home)": true,
		"555-0132 is my number":   true,
		"12 345 678 mobile users": false, "12345678 phones": false, "41 53 12 34 home": false,
		"41 53 12 34 (sum)":      false,
		"41 53 12 34 is the sum": false, "41 53 12 34": false,
	} {
		g, _ := readGroups(s)
		last := g[len(g)-1]
		if got := HasWordAfter([]byte(s), g, last.At+last.N); got != want {
			t.Errorf("HasWordAfter(%q) is %v", s, got)
		}
	}
	for _, s := range []string{"тел. §", "電話 §", "Tél : §", "điện thoại §"} {
		if !HasMarkBefore([]byte(s), strings.Index(s, "§")) {
			t.Errorf("HasMarkBefore(%q) is false", s)
		}
	}
}

// TestCutTextsPanicNowhere calls every function at each cut of a text.
func TestCutTextsPanicNowhere(t *testing.T) {
	const text = "call\n(0161) 496 0000 x12, is my number\\n 00 33 1 23 45 67 89 (mobile) “030 12345678” ;ext=" +
		" 8 (912) 345-67-89-a1"
	for from := range len(text) {
		for to := from + 1; to <= len(text); to++ {
			s := []byte(text[from:to])
			for i := range s {
				if char.Class[s[i]]&char.Digit == 0 || i > 0 && char.Class[s[i-1]]&char.Digit != 0 {
					continue
				}
				x := cursor.Cursor{S: s}
				g := x.Groups(i, x.DigitRun(i), cursor.MaxDigits, nil)
				MatchNational(s, g, i > 0 && s[i-1] == '(')
				end := ExtensionEnd(s, g[len(g)-1].At+g[len(g)-1].N)
				_ = IsInProse(s, i, end) || IsOtherKind(s, i) || IsOwned(s, i) || HasWordBefore(s, i) ||
					HasMarkBefore(s, i) ||
					HasWordAfter(s, g, end) || IsContinued(s, end) || IsDay(s, g) || IsYears(s, g)
			}
		}
	}
}
