package story

import (
	"testing"

	"github.com/holdfast-dev/holdfast/ledger"
)

func TestD21_anAttemptIsToldInWords(t *testing.T) {
	const begin = `{"request_id":"r1","boundary":"exec/python3.11","call":{"nr":101,"name":"ptrace","arch":"x86_64","args":["0x10","0x0","0x0","0x0","0x0","0x0"]},"review":"rv_1",`
	const tried = "code of ada at exec/python3.11 tried to leave its sandbox with ptrace (call 101, x86_64) (request r1)"
	for name, c := range map[string]struct{ event, data, want string }{
		"lowered": {"sandbox_escape_attempted", begin + `"trust_from":"high","trust_to":"medium"}`,
			tried + ". It was killed, and its crossing failed; ada is paused, its trust went from high to medium, and a person is asked in review rv_1"},
		"at the floor": {"sandbox_escape_attempted", begin + `"trust_from":"baseline","trust_to":"baseline"}`,
			tried + ". It was killed, and its crossing failed; ada is paused, its trust stays baseline, the lowest, and a person is asked in review rv_1"},
		"with an intent": {"sandbox_escape_attempted", begin + `"trust_from":"high","trust_to":"medium","intent":"i7","intent_failed":true}`,
			tried + ". It was killed, and its crossing failed; ada is paused, its trust went from high to medium, intent i7 failed, and a person is asked in review rv_1"},
		"with an intent that stands": {"sandbox_escape_attempted", begin + `"trust_from":"high","trust_to":"medium","intent":"i7","intent_failed":false}`,
			tried + ". It was killed, and its crossing failed; ada is paused, its trust went from high to medium, intent i7 could not be failed, and a person is asked in review rv_1"},
		"late": {"sandbox_escape_attempted", begin + `"trust_from":"high","trust_to":"medium","late":true}`,
			tried + ", which was heard of after its crossing had ended. It was killed; ada is paused, its trust went from high to medium, and a person is asked in review rv_1"},
		"a violation": {"sandbox_violation", begin + `"level":"WARNING"}`,
			"code of ada at exec/python3.11 was ended for ptrace (call 101, x86_64), which its sandbox does not allow (request r1)"},
		"out of time": {"sandbox_ended", `{"request_id":"r1","boundary":"exec/python3.11","state":"TIMEOUT"}`,
			"code of ada at exec/python3.11 was ended: its time by the wall was over (request r1)"},
		"out of memory": {"sandbox_ended", `{"request_id":"r1","boundary":"exec/python3.11","state":"OOM"}`,
			"code of ada at exec/python3.11 was ended: its memory was used up (request r1)"},
		"no walls": {"sandbox_ended", `{"request_id":"r1","boundary":"exec/python3.11","state":"SPAWN_ERROR","kind":"NamespaceError"}`,
			"code of ada at exec/python3.11 did not run: its sandbox could not be built, NamespaceError (request r1)"},
		"another event": {"agent_paused", begin + `"level":"WARNING"}`, ""},
		"no data":       {"sandbox_violation", `[`, ""},
	} {
		if got := Event(&ledger.Event{Name: c.event, Subject: "ada", Data: []byte(c.data)}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
