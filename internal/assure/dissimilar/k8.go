package dissimilar

import (
	"bytes"
	"fmt"
)

// result judges K8 of an entry: what did not pass gave no output, is named, and
// is no success; what gave one passed.
func (v *Verifier) result(r, b *record) {
	failed := r.Passed != nil && !*r.Passed
	says := fmt.Sprintf("k8_eval_passed %s, outcome %s, exit code %d", word(r.Passed), r.Outcome, *r.ExitCode)
	switch {
	case failed && r.Outcome != "withheld" && r.Outcome != "denied":
		v.bad(K8Result, says, "what K8 refuses is denied or withheld")
	case failed && (r.State == "IDLE" || *r.ExitCode < 1):
		v.bad(K8Result, says, "what K8 refuses is no success")
	case r.Outcome == "withheld" && !failed:
		v.bad(K8Result, says, "only what K8 refuses is withheld")
	case r.Outcome == "withheld":
		v.withheld(r, says)
	case (r.Outcome == "done" || r.Outcome == "replayed") && r.Passed == nil:
		v.bad(K8Result, says, "what was given had passed K8")
	default:
		v.good(K8Result)
	}
	switch {
	case r.Outcome != "done" && r.Outcome != "withheld":
	case len(r.Predicates) > 0:
		v.unknown(K8Judged, "predicates and output schemas are not in the ledger")
	default:
		v.unknown(K8Judged, "rules are not in the ledger")
	}
}

// withheld judges that the record keeps the reason, not the output: the text
// that its caller was given begins with the error's kind.
func (v *Verifier) withheld(r *record, says string) {
	evaluated := r.ErrorKind == "EvalGateFailure" || r.ErrorKind == "EvalError" || r.ErrorKind == "TypeError" || r.ErrorKind == "TimeoutError"
	switch {
	case r.Gate != "K8" || !evaluated:
		v.bad(K8Result, says+", "+r.Gate+" "+quote(r.ErrorKind), "an output is withheld by K8")
	case r.ErrorKind == "EvalGateFailure" && r.Rule == "":
		v.bad(K8Result, says, "no predicate is named")
	case r.ResultHash == nil:
		v.bad(K8Result, says+", and no result", "the reason is recorded")
	case r.part == nil:
		v.unknown(K8Result, "the result was erased")
	case len(r.part) < saltSize || !bytes.HasPrefix(r.part[saltSize:], []byte(r.ErrorKind+": ")):
		v.bad(K8Result, says, "the recorded result is something other than the reason")
	default:
		v.good(K8Result)
	}
}
