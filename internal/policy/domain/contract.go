package domain

import (
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// exchangeTime bounds one exchange as a whole, streams included. How long an
// upstream may be silent is the proxy's to say.
const exchangeTime = 24 * time.Hour

// RiskOf is the risk of one request by its method (D25c): HIGH for email and
// messaging whatever the method, since their APIs post by GET too; else LOW for
// GET and HEAD, MEDIUM for all others. Risk overrides it. A request that
// upgrades is no GET: ask with the empty method.
func (d *Domain) RiskOf(method string) holdfast.Risk {
	switch {
	case d.Risk != nil:
		return *d.Risk
	case d.Name == "":
		return holdfast.Prohibited
	}
	return riskBy(d.Type, method)
}

func riskBy(kind, method string) holdfast.Risk {
	switch {
	case kind == Email || kind == Messaging:
		return holdfast.High
	case method == "GET" || method == "HEAD":
		return holdfast.Low
	}
	return holdfast.Medium
}

// Contract is the boundary's contract: one http_requests per crossing, one
// messages as well where these are the unit; bytes and tokens are what the door
// adds. The rate is not part of it: it is the tenant's, and the daemon's to
// make from Rate.
func (d *Domain) Contract() holdfast.Contract {
	c := holdfast.Contract{
		Boundary:  d.Boundary(),
		Operation: "egress",
		Consumes:  map[holdfast.Resource]int64{holdfast.HTTPRequests: 1},
		Risk:      d.RiskOf(""),
		Refusals: holdfast.Refusals{Rate: holdfast.KindRateLimit, Amount: holdfast.KindBudgetExceeded,
			Record: holdfast.KindLogging},
		Timeout:  exchangeTime,
		Weakened: strings.Join(d.Weakenings(), "; "),
		Source:   d.Source,
	}
	if reading := d.RiskOf("GET"); reading != c.Risk {
		c.ReadRisk = reading
	}
	if d.Unit == Messages {
		c.Consumes[holdfast.Messages] = 1
	}
	return c
}

// Weakenings are sentences, one for each thing that d permits and that lets
// out, or in, what nobody looked at or could read.
func (d *Domain) Weakenings() []string {
	var out []string
	say := func(is bool, what string) {
		if is {
			out = append(out, "egress: "+d.Name+" "+what)
		}
	}
	say(d.Plain, "may be reached without TLS")
	say(d.Inspect == Opaque, "is an opaque tunnel: nothing inside it is judged or redacted")
	say(d.Binary, "takes bodies that cannot be looked into")
	say(d.Parts == UnsearchedParts, "is sent documents that are not searched for secrets")
	say(d.Request == Off && d.Inspect != Opaque, "is sent requests that are not redacted")
	say(d.Response == Off && d.Inspect != Opaque, "answers without its responses being redacted")
	say(d.Personal == Pass, "passes personal data as it is")
	say(d.Type == LLM && d.Inspect != Opaque && (d.Request == Mask || d.Request == Refuse),
		"masks or refuses requests to models, although placeholders would be restored")
	say(d.Request == Placeholder && d.Response != Restore,
		"does not restore the placeholders of its requests: files that an agent writes hold them")
	say(d.AgentCredentials, "is sent the agent's own credentials")
	const uncounted = ": no budget of tokens or money holds there"
	switch why := d.Unmetered(); {
	case why != "":
		say(true, why+uncounted)
	case d.covers != "":
		say(true, "covers hosts of models, such as "+d.covers+", in a row that is not of type llm"+uncounted)
	case d.Models.Unmetered:
		say(true, "is asked what nobody can meter"+uncounted)
	}
	say(d.Risk != nil && *d.Risk > riskBy(d.Type, ""), "has a lower risk than its type's")
	return out
}
