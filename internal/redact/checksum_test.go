package redact

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// A checksum of Go's, h1: and base64, is no bot's token, whatever digits stand
// before it: those have eight digits or more.
func TestGoChecksumsAreNotMasked(t *testing.T) {
	e, err := New(Options{Masks: mask.Egress})
	if err != nil {
		t.Fatal(err)
	}
	const sum = "AAbmMCMESA0jcjA7bU1cygDwLjCCqJdoEi0F0bGoRAk"
	for _, text := range []string{"example.org/x v1.2.3 h1:" + sum + "=", "example.org/x v10.20.3/go.mod h1:" + sum + "="} {
		if r := e.Text([]byte(text)); r.Found() {
			t.Errorf("%s: %s", text, r.Out)
		}
	}
	if r := e.Text([]byte("12345678:" + sum[:35])); !r.Found() {
		t.Errorf("a bot's token was not masked: %s", r.Out)
	}
}
