package domain

import "github.com/holdfast-dev/holdfast"

// RiskOf is the risk of one request by its method (D25c): HIGH for email and
// messaging whatever the method, since their APIs post by GET too; else LOW for
// GET and HEAD, MEDIUM for all others. Risk overrides it. A request that
// upgrades is no GET: ask with the empty method.
func (d *Domain) RiskOf(method string) holdfast.Risk {
	return holdfast.Prohibited
}

// Contract is the boundary's contract: one http_requests per crossing, one
// messages as well where these are the unit; bytes and tokens are what the door
// adds. The rate is not part of it: it is the tenant's, and the daemon's to
// make from Rate.
func (d *Domain) Contract() holdfast.Contract {
	return holdfast.Contract{Boundary: d.Boundary(), Risk: d.RiskOf(""), Source: d.Source}
}

// Weakenings are sentences, one for each thing that d permits and the default
// does not.
func (d *Domain) Weakenings() []string { return nil }
