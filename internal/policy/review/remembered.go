package review

import "time"

// Remembered is a rule that a person made of an approval, as it stands.
type Remembered struct {
	ID   string `json:"id"`
	Rule Rule   `json:"rule"`
	// Words say what it covers.
	Words    []string  `json:"words"`
	Reviewer string    `json:"reviewer_id"`
	Reason   string    `json:"reason,omitempty"`
	Made     time.Time `json:"made_at"`
	Expires  time.Time `json:"expires_at"`
	Uses     int64     `json:"uses"`
	LastUse  time.Time `json:"last_used_at,omitzero"`
	// Ended says why it holds no more: empty while it does.
	Ended string `json:"ended,omitempty"`
}

// Step is one event in the life of a review.
type Step struct {
	// Event is proposed, decided, executed, returned, expired or voided.
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	Who   string    `json:"who"`
	// How is the decision, or the outcome of what returned.
	How string `json:"how,omitempty"`
}

// Fate says in a few words where the review stands.
func (r *Review) Fate(life []Step) string {
	if r.About == "" {
		return Fate(r.State, life)
	}
	switch r.State {
	case Pending:
		return "nobody has seen it yet"
	case Approved:
		return "seen, and the agent may go on"
	case Rejected:
		return "seen, and the agent stays stopped"
	}
	return string(r.State)
}

// Fate says in a few words where a review stands, of its state and its life:
// "approved, never ran" is another thing than "ran, never returned".
func Fate(s State, life []Step) string {
	did := map[string]string{}
	for _, step := range life {
		did[step.Event] = "yes " + step.How
	}
	switch {
	case did["returned"] != "":
		return "ran: " + did["returned"][len("yes "):]
	case did["executed"] != "" || s == Used:
		return "ran, never returned"
	case s == Approved:
		return "approved, not run yet"
	case (s == Expired || s == Voided) && did["decided"] == "yes "+string(Approved):
		return "approved, never ran"
	}
	return string(s)
}
