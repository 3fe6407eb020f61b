package review

import "time"

// Answer is what this review says to a request that is bound to it, at now and
// under the given policy (D11):
//
//	Approved  the person agreed, and the request may act once
//	Pending   nobody has answered yet
//	Rejected  refused, or changes were asked for; holds until Expires
//	Expired   nobody answered, or the approval was not used, in time
//	Voided    asked or approved under another policy: ask again
//	None      nothing; ask anew
//
// What a review about something else than a request says to one is Pending or
// None: no answer to it lets anything pass.
func (r *Review) Answer(now time.Time, policy string) State {
	if r.About != "" {
		if r.Waiting(now) {
			return Pending
		}
		return None
	}
	switch r.State {
	case Pending, Deferred:
		if !now.Before(r.Expires) {
			return Expired
		}
		if r.Policy != policy {
			return Voided
		}
		return Pending
	case Approved:
		if !now.Before(r.Expires) {
			return Expired
		}
		if r.Policy != policy {
			return Voided
		}
		return Approved
	case Rejected, Changes:
		if now.Before(r.Expires) {
			return Rejected
		}
	case Expired:
		return Expired
	}
	return None
}
