package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
)

// TestReloadNamesWhatWaitsForAStart: what a running daemon does not take up is
// named in the log, in the status and on the pages, and is gone from there when
// it is taken back.
func TestReloadNamesWhatWaitsForAStart(t *testing.T) {
	const issuer = "identity: {issuers: [{name: 'https://a.example', audience: x, jwks_file: keys.json}]}\n"
	dir := testfile.Write(t, map[string]string{"holdfast.yaml": quiet + issuer, "keys.json": `{"keys":[]}`})
	path := filepath.Join(dir, "holdfast.yaml")
	var log countedLog
	d, err := Open(t.Context(), Options{State: filepath.Join(dir, "s"), Config: path, Log: slog.New(slog.NewTextHandler(&log, nil)), EnabledSet: false})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	turn := func(text string) []string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.apply(l); err != nil {
			t.Fatal(err)
		}
		s, err := d.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, p := range s.Problems {
			if strings.HasSuffix(p, "when the daemon is started again") {
				said = append(said, p)
			}
		}
		if !slices.Equal(s.Conditions.NeedRestart, said) {
			t.Errorf("the conditions have %q, the problems %q", s.Conditions.NeedRestart, said)
		}
		if page := d.pageState(t.Context(), true); strings.Count(strings.Join(page.Problems, "\n"), "is started again") != len(said) {
			t.Errorf("the pages say %q, the status %q", page.Problems, said)
		}
		return said
	}
	if got := turn("# another line\n" + quiet + issuer + "review: {wait: 1s}\n"); len(got) != 0 || log.count("started again") != 0 {
		t.Errorf("%q", got)
	}
	for name, more := range map[string]string{
		"sandbox.executor":           issuer + "sandbox: {executor: {listen: '127.0.0.1:0'}}\n",
		"sandbox.container":          issuer + "sandbox: {container: {runtime: runc}}\n",
		"sandbox.vm":                 issuer + "sandbox: {vm: {memory: 512}}\n",
		"egress.listen":              issuer + "egress: {listen: [{address: '127.0.0.1:0', agent: a}]}\n",
		"sandbox.running":            issuer + "sandbox: {running: 3}\n",
		"sandbox.wait":               issuer + "sandbox: {wait: 3s}\n",
		"identity.issuers":           "\n",
		"ledger.checkpoint_interval": issuer + "ledger: {checkpoint_interval: 7m}\n",
		"telemetry":                  issuer + "telemetry: {endpoint: 'https://collector.example.com/v1/traces'}\n",
	} {
		if got := turn(quiet + more); len(got) != 1 || !strings.Contains(got[0], "changed in "+name+": ") {
			t.Errorf("%s: %q", name, got)
		}
		if log.count("changed in "+name+": ") != 1 {
			t.Errorf("%s is not in the log", name)
		}
	}
	if got := turn(strings.Replace(quiet, "none", "127.0.0.1:0", 1) + issuer); len(got) != 1 || !strings.Contains(got[0], "listen.pages") {
		t.Errorf("%q", got)
	}
	if got := turn(quiet + issuer); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
