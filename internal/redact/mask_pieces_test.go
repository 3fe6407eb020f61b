package redact

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestMaskOfPiecesIsThatOfTheWhole: what is read piece by piece gets the mask of
// the whole.
func TestMaskOfPiecesIsThatOfTheWhole(t *testing.T) {
	style := maskStyle{masks: Pseudonyms, key: holdfast.NewSecret("0123456789abcdef")}
	pieces := style.newMask()
	for _, c := range []byte("ann@example.com") {
		pieces.write([]byte{c})
	}
	whole := style.appendMask(nil, ruleEmail, []byte("ann@example.com"))
	if got := pieces.appendTo(nil, ruleEmail); string(got) != "<email:3157704f>" || string(whole) != string(got) {
		t.Errorf("byte by byte it is %s, whole %s", got, whole)
	}
}
