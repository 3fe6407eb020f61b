package judge

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// The log has why a judge cannot be used; the agent's letter does not say what a
// program or a service said of it.
func TestWhyAJudgeCannotBeUsedIsKeptForTheLog(t *testing.T) {
	refusing, _ := service(t, http.StatusUnauthorized, func(w http.ResponseWriter, _ map[string]any) {
		_, _ = w.Write([]byte("the key has ended " + strings.Repeat("x", 1<<20)))
	})
	gone := asking(Anthropic, refusing)
	gone.URL = "http://127.0.0.1:1/"
	slow := shell("echo still thinking >&2; sleep 60")
	slow.Within = 200 * time.Millisecond
	for name, c := range map[string]struct {
		judge Judge
		cause string
	}{
		"a program that fails":   {shell("echo no model here >&2; exit 7"), "no model here"},
		"its exit":               {shell("exit 7"), "exit status 7"},
		"one that shouts":        {shell("head -c 10000000 /dev/zero | tr '\\0' y >&2; exit 7"), "yyy"},
		"one that is not there":  {Command{Argv: []string{"/nowhere/judge"}}, "no such file"},
		"one that is too slow":   {slow, "still thinking"},
		"a service that refuses": {asking(Anthropic, refusing), "the key has ended"},
		"nobody":                 {gone, "refused"},
	} {
		_, err := c.judge.Score(t.Context(), Request{Payload: []byte("{}")})
		var e *holdfast.Error
		if !errors.As(err, &e) || e.Err == nil || !strings.Contains(e.Err.Error(), c.cause) || len(e.Err.Error()) > 2*maxCause {
			t.Errorf("%s: %v is without its cause", name, err)
			continue
		}
		if strings.Contains(e.Error(), c.cause) {
			t.Errorf("%s: the letter says %q", name, e.Error())
		}
	}
}
