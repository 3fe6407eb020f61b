package kernel_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// No request names Holdfast's own files, whatever its contract allows.
func TestOwnFilesAreOutOfReach(t *testing.T) {
	w := newWorld(t, "", func(c *kernel.Config, _ *world) {
		c.Policy.Own = []string{"/var/lib/hf/state", "/etc/holdfast/holdfast.yaml"}
	})
	refused := []string{
		`{"path":"/var/lib/hf/state/holdfast.db"}`,
		`{"path":"/var/lib/hf/state"}`,
		`{"path":"/var/lib//hf/./state/operator.pub"}`,
		`{"path":"/tmp/../var/lib/hf/state/HALT"}`,
		`{"path":"\u002fvar\u002flib\u002fhf\u002fstate"}`,
		`{"uri":"file:///var/lib/hf/state/HALT"}`,
		`{"uri":"file:///var/lib/hf/%73tate/HALT"}`,
		`{"cmd":"rm -f /var/lib/hf/state/HALT; echo done"}`,
		`{"a":[{"b":{"c":"/etc/holdfast/holdfast.yaml"}}]}`,
		`{"/etc/holdfast/holdfast.yaml":1}`,
	}
	for _, p := range refused {
		_, err := w.cross(w.req("test/low", p))
		wants(t, err, holdfast.KindRule)
	}
	for _, p := range []string{
		`{"path":"/var/lib/hf/state-old/x"}`, `{"path":"/var/lib/hf"}`, `{"path":"/home/me/var"}`, `{"n":1,"s":"state"}`, `{"p":"%zz/"}`,
	} {
		if _, err := w.cross(w.req("test/low", p)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}
