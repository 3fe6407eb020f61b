package review

import "github.com/holdfast-dev/holdfast/internal/leaf/operator"

// NewStatement returns an act on the review, bound to what the review holds. Its signer
// adds the rest.
func (r *Review) NewStatement(act string) operator.Statement {
	return operator.Statement{Act: act, Subject: r.ID, Tenant: r.Tenant, Exact: r.Exact, PreviewHash: r.PreviewHash,
		Policy: r.Policy, Nonce: r.Nonce}
}
