package kernel_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A member that differs only in case is another member to rules and schemas,
// and the same one to a server written with Go's encoding/json.
func TestMembersThatDifferOnlyInCase(t *testing.T) {
	w := newWorld(t, "")
	for _, p := range []string{
		`{"path":"/srv/ok","PATH":"/etc/shadow"}`, `{"a":[{"b":1,"B":2}]}`, `{"ſ":1,"S":2}`, `{"K":1,"k":2}`, `{"Ä":1,"ä":2}`,
	} {
		_, err := w.cross(w.req("test/low", p))
		wants(t, err, holdfast.KindValidation)
	}
	for _, p := range []string{`{"N":1}`, `{"n":1,"S":"x"}`, `{"n":1,"ſ":"x"}`} {
		_, err := w.cross(w.req("test/schema", p))
		wants(t, err, holdfast.KindValidation)
	}
	for _, p := range []string{`{"path":"a","paths":"b","Other":1}`, `{"a":{"x":1},"b":{"X":1}}`, `["a","A"]`} {
		if _, err := w.cross(w.req("test/low", p)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}
