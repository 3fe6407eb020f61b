package daemon

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
)

// What the configuration names for Holdfast's own use is masked wherever it
// stands, and nobody has to register it; what every request says is not.
func TestOwnSecretsAreRegistered(t *testing.T) {
	const webhook, header, fromEnv, traces = "wh canary 0123456789 abcdef ghijkl", "mcp canary one", "mcp-canary-two", "trace canary three"
	t.Setenv("HOLDFAST_TEST_HEADER", "Bearer "+fromEnv)
	conf := `version: 1
review: {webhook: {url: "http://127.0.0.1:9/x", secret_file: hook}}
mcp: {servers: {away: {url: "http://127.0.0.1:9/mcp", headers: {X-Key: {file: header}, Authorization: {env: HOLDFAST_TEST_HEADER}, User-Agent: {file: agent}, X-Gone: {env: HOLDFAST_TEST_NOT_SET}}}}}
telemetry: {endpoint: "http://127.0.0.1:9/v1/traces", headers: {Authorization: "Basic ` + traces + `", X-Short: v1.2}}
`
	dir := testfile.Write(t, map[string]string{"hook": webhook + "\nmore\n",
		"header": header + "\n", "agent": "ordinary-agent-name\n", "holdfast.yaml": conf})
	d, err := Open(t.Context(), Options{State: filepath.Join(dir, "s"), Config: filepath.Join(dir, "holdfast.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, secret := range []string{webhook, header, fromEnv, traces} {
		for _, text := range []string{secret, base64.StdEncoding.EncodeToString([]byte("x" + secret + "y")), hex.EncodeToString([]byte(secret)), strings.ReplaceAll(secret, " ", "\n  ")} {
			if got := d.maskText("before " + text + " behind"); strings.Contains(got, text[4:len(text)-4]) || !strings.Contains(got, "redacted]") {
				t.Errorf("%q of %q became %q", text, secret, got)
			}
		}
	}
	const plain = "ordinary-agent-name, Bearer and Basic, v1.2, application/json"
	if got := d.maskText(plain); got != plain {
		t.Errorf("%q", got)
	}
	if strings.Join(config.ListUntaken(d.began, d.config()), "; ") != "" {
		t.Error(strings.Join(config.ListUntaken(d.began, d.config()), "; "))
	}
	if err := os.WriteFile(filepath.Join(dir, "holdfast.yaml"), []byte(strings.Replace(conf, "X-Key: {file: header}", "X-Key: {file: agent}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(filepath.Join(dir, "holdfast.yaml"))
	if err == nil {
		err = d.apply(l)
	}
	if err != nil || !strings.Contains(strings.Join(config.ListUntaken(d.began, d.config()), "; "), "started again") {
		t.Errorf("%q, %v", strings.Join(config.ListUntaken(d.began, d.config()), "; "), err)
	}
}
