package dialect

import "github.com/holdfast-dev/holdfast"

// The words that say where a charge is from.
const (
	HowComplete = holdfast.UsageComplete // the provider said it
	HowPartial  = "partial"              // the provider said the input; the output was seen in part
	HowReserved = "reserved"             // the request's bound: nobody knows better
	HowRefused  = "refused"              // nothing: the provider did not begin
	HowFree     = "free"                 // nothing: such requests cost nothing
)

// underway is how much output a provider may have made and not sent when an answer
// breaks off, in tokens.
const underway = 256

// perCall is what stands around the arguments of a tool's call, in tokens: its name
// too.
const perCall = 64

// Charge is what the answer costs, and one of the words above. It is never less
// because the client left, or because the answer cannot be understood.
func (m *Meter) Charge() (holdfast.Tokens, string) {
	a := m.Answer()
	switch {
	case m.r.Dialect.Free():
		return holdfast.Tokens{}, HowFree
	case a.State == Complete:
		return a.Usage.Tokens, HowComplete
	case a.State == Missing && m.refused(&a):
		return holdfast.Tokens{}, HowRefused
	case a.State == Partial && !m.use.absurd(m.bound, 0):
		t := a.Usage.Tokens
		t.Output = max(t.Output, m.unfinished(a.Said))
		return t, HowPartial
	}
	return m.bound.Tokens(), HowReserved
}

// unfinished is the most output that there can have been, by what was seen of it. Of
// what is thought a stream need not show anything.
func (m *Meter) unfinished(said int64) int64 {
	if m.r.Thinks || m.thought || m.a.Unread {
		return m.bound.Output
	}
	return min(m.bound.Output, said+int64(len(m.a.Calls))*perCall+underway)
}

// refused says whether the provider refused before it began: then it charges
// nothing.
func (m *Meter) refused(a *Answer) bool {
	if a.Began || a.Unread && m.status < 400 {
		return false
	}
	if m.status >= 400 && m.status < 500 || m.status == 503 || m.status == 529 {
		return true
	}
	if m.status >= 300 || a.Failure == nil {
		return false
	}
	for _, word := range []string{a.Failure.Type, a.Failure.Code} {
		switch word {
		case "overloaded_error", "rate_limit_error", "invalid_request_error", "authentication_error", "permission_error", "not_found_error",
			"request_too_large", "billing_error", "rate_limit_exceeded", "insufficient_quota", "server_overloaded":
			return true
		}
	}
	return false
}
