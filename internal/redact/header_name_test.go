package redact

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
)

// What proves who calls is masked whole by its name, in whatever form its value
// is; what an answer says about credentials is not.
func TestHeader_ofCredentialFields(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	const value = "plainly 4711"
	for _, name := range []string{"Authorization", "Dpop", "DD-APPLICATION-KEY", "x_registry_auth", "X-Ms-Authorization-Auxiliary", "X-Vault-Token", "X-Hub-Signature"} {
		if h, found := e.Header(map[string][]string{name: {value}}); !fieldname.IsCredential(name) || len(found) != 1 || h[name][0] == value {
			t.Errorf("%s: %v, %v", name, h, found)
		}
	}
	for name, value := range map[string]string{"Access-Control-Allow-Credentials": "true", "X-Registry": value, "Etag": `"4711"`} {
		if h, found := e.Header(map[string][]string{name: {value}}); fieldname.IsCredential(name) || len(found) != 0 || h[name][0] != value {
			t.Errorf("%s: %v, %v", name, h, found)
		}
	}
}
