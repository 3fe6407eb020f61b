package kernel

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// ask prepares a question that Holdfast itself puts to a person, about nothing that
// was asked of it: about says what for, and shown is what the person sees of it. Who
// asks it, of whom and why is the caller's to fill in. domain begins what the exact
// hash is over, so that it is never that of a payload.
func (k *Kernel) ask(about, domain string, shown any) (review.Review, error) {
	id, err := k.reviewID()
	if err != nil {
		return review.Review{}, err
	}
	nonce, err := k.randomHex(16)
	if err != nil {
		return review.Review{}, err
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return review.Review{}, err
	}
	seen, err := k.records.Preview(text)
	if err != nil {
		return review.Review{}, err
	}
	return review.Review{ID: id, About: about, Binding: review.Binding{Exact: sha([]byte(domain + seen.Text))},
		Risk:    holdfast.High,
		Preview: seen.Text, PreviewHash: seen.Hash(), Cut: seen.Cut, Masked: seen.Masked, Nonce: nonce,
		State: review.Pending, Created: k.instant()}, nil
}

// proposed is the event of such a question.
func proposed(r *review.Review) Event {
	return Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_proposed", Who: r.Principal, Subject: r.ID, Part: []byte(r.Preview),
		Data: map[string]any{"about": r.About, "agent": r.Agent, "boundary": r.Boundary, "exact_hash": r.Exact, "preview_hash": r.PreviewHash, "policy": r.Policy, "why": r.Why}}
}
