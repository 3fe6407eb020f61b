package phone

import "github.com/holdfast-dev/holdfast/internal/redact/char"

// extensionWords are what precedes an extension; "x" and "#" do so as well.
var extensionWords = char.NewWordList(
	"ext", "extn", "extension", "durchwahl", "poste", "anexo", "ramal", "interno", "toestel", "anknytning",
)

// maxExtension is the most digits of an extension.
const maxExtension = 6

// ReachExtension is the most that is read for an extension.
const ReachExtension = 32

// ExtensionEnd returns the end of the extension that follows a number ending at i, or i:
// x1234, ext. 12, ;ext=12, #12.
func ExtensionEnd(s []byte, i int) int {
	j := i
	if j+1 >= len(s) {
		return i
	}
	switch s[j] {
	case ' ', ',', ';':
		if j++; s[j] == ' ' && s[j-1] != ' ' {
			j++
		}
	case '(', 'x', 'X', '#', 'e', 'E':
	default:
		return i
	}
	open := j < len(s) && s[j] == '('
	if open {
		j++
	}
	b := j
	for j < len(s) && j-b < 12 && char.Class[s[j]]&char.Letter != 0 {
		j++
	}
	switch word := s[b:j]; {
	case len(word) == 0 && j < len(s) && s[j] == '#':
		j++
	case string(word) == "x" && (b-i < 2 || open) || string(word) == "X" && b == i:
		if j < len(s) && s[j] == '.' {
			j++
		}
	case extensionWords.Has(word):
		for n := 0; n < 2 && j < len(s) && (s[j] == '.' || s[j] == ':' || s[j] == '='); n++ {
			j++
		}
	default:
		return i
	}
	if j < len(s) && s[j] == ' ' {
		j++
	}
	n := char.DigitsFrom(s, j, maxExtension+1)
	j += n
	if n == 0 || n > maxExtension || j < len(s) && (char.Class[s[j]]&char.Alnum != 0 || s[j] == '_') {
		return i
	}
	if open {
		if j >= len(s) || s[j] != ')' {
			return i
		}
		j++
	}
	return j
}
