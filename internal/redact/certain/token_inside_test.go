package certain_test

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/certain"
)

// A prefix inside a run of base64 is there by chance; the same token at a border, or
// behind a name, is one.
func TestTokensAreFoundAtBordersOnly(t *testing.T) {
	e := newEngine(t)
	r := rand.New(rand.NewPCG(8, 27))
	url := base64.RawURLEncoding.EncodeToString
	for _, token := range certain.ShortestTokens() {
		for _, c := range []string{
			"\"§\"", "'§'", "`§`", " § ", "=§", "x=§&y=1", ":§", "(§)", "<§>", "/§", "\t§\n", "[§]", ",§,",
			"API_KEY_§", "my-token-§", "token/§", "my_service_credentials-§", "getUserTokenFromTheRequest-§",
			url(randomBytes(r, 300)) + ".§", url(randomBytes(r, 300)) + "\n§", "x=" + url(randomBytes(r, 99)) +
				"&t=§", url(randomBytes(r, 9)) + "-§",
		} {
			text := strings.ReplaceAll(c, "§", token)
			out := string(e.Text([]byte(text)).Out)
			if strings.Contains(out, token[len(token)/2:]) {
				t.Errorf("Text(%q) = %q", text, out)
			}
		}
	}
	for _, prefix := range []string{"sk-", "fc-", "hf_", "fw_", "r8_", "ghp_", "gho_", "npm_", "AIza", "LTAI",
		"EAA", "pul-", "rnd_", "tskey-", "glpat-"} {
		for range 40 {
			text := `{"type":"reasoning","encrypted_content":"gAAAAAB` + url(randomBytes(r, 60)) + "-" + prefix +
				url(randomBytes(r, 300)) + `"}`
			if out := string(e.Text([]byte(text)).Out); out != text {
				t.Errorf("Text(%q) = %q", text, out)
			}
		}
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
