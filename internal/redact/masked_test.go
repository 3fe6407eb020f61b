package redact

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

func TestMasked(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "plain [text] <a:b>": false, "[secret": false, "<secret:0011223>": false,
		mask.Secret: true, "to [email hidden], please": true, "****-****-****-12345": true, "x[db_string]": true,
		"<secret:00112233>": true, "[[pii]": true, "<db_string:00112233>.": true,
	} {
		if mask.IsIn(text) != want {
			t.Errorf("Masked(%q) is %v", text, !want)
		}
	}
}
