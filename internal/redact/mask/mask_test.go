package mask

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// TestMaskOfPiecesIsThatOfTheWhole: what is read piece by piece gets the mask of
// the whole.
func TestMaskOfPiecesIsThatOfTheWhole(t *testing.T) {
	style := Style{Masks: Pseudonyms, Key: holdfast.NewSecret("0123456789abcdef")}
	pieces := style.newMask()
	for _, c := range []byte("ann@example.com") {
		pieces.write([]byte{c})
	}
	whole := style.AppendMask(nil, rule.Email, []byte("ann@example.com"))
	if got := pieces.appendTo(nil, rule.Email); string(got) != "<email:3157704f>" || string(whole) != string(got) {
		t.Errorf("byte by byte it is %s, whole %s", got, whole)
	}
}
