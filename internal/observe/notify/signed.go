package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Signed posts notices to one address, with a signature by a shared secret.
type Signed struct {
	URL string
	// Secret reads the secret, at each use: one that was changed counts.
	Secret func() (holdfast.Secret, error)
	// Plain lets http cross the network.
	Plain     bool
	UserAgent string
	// Review reads a review, and Page returns its address, or "" if there are no pages.
	Review func(ctx context.Context, id string) (review.Review, error)
	Page   func(id string) string
}

// pushed is a notice as its receiver gets it: a preview and hashes, never a payload.
type pushed struct {
	ID       string          `json:"id"` // the same at each try
	At       time.Time       `json:"at"`
	Runtime  string          `json:"runtime"`
	Level    string          `json:"level"`
	Event    string          `json:"event"`
	Tenant   string          `json:"tenant_id,omitempty"`
	Agent    string          `json:"agent,omitempty"`
	Boundary string          `json:"boundary,omitempty"`
	Crossing string          `json:"crossing,omitempty"`
	Why      string          `json:"why"`
	Review   *pushedQuestion `json:"review,omitempty"`
}

// pushedQuestion is the question that a notice is about.
type pushedQuestion struct {
	ID          string       `json:"id"`
	About       string       `json:"about,omitempty"` // empty: a crossing waits for the answer
	State       review.State `json:"state"`
	Risk        string       `json:"risk"`
	Preview     string       `json:"preview"`
	PreviewHash string       `json:"preview_hash"`
	Cut         bool         `json:"cut,omitempty"`
	Masked      bool         `json:"masked,omitempty"`
	Exact       string       `json:"exact_hash"`
	Expires     time.Time    `json:"expires_at,omitzero"` // without: it waits until it is answered
	Reviewer    string       `json:"reviewer_id,omitempty"`
	// URL is the review's page, if there are pages.
	URL string `json:"url,omitempty"`
}

// Send implements Transport for notices, within 20 s.
func (s *Signed) Send(ctx context.Context, i Item) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	secret, err := s.Secret()
	if err != nil {
		why, _ := usage.Explain(err)
		return &Failure{why}
	}
	n := i.Notice
	body, err := json.Marshal(&pushed{
		ID: i.Message.ID, At: i.Message.At, Runtime: i.Message.Runtime, Level: n.Level, Event: n.Event,
		Tenant: n.Tenant,
		Agent:  n.Agent, Boundary: n.Boundary, Crossing: n.Crossing, Why: n.Why, Review: s.readQuestion(ctx, n.Review),
	})
	if err != nil {
		return failed("it could not be written")
	}
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", s.UserAgent)
	header.Set("Holdfast-Delivery", i.Message.ID)
	header.Set("Holdfast-Signature", signBody(secret, time.Now(), body))
	_, err = postOver(ctx, s.Plain, s.URL, header, body)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return plainly(err)
}

// readQuestion returns a question as it is now, or nil.
func (s *Signed) readQuestion(ctx context.Context, id string) *pushedQuestion {
	if id == "" {
		return nil
	}
	r, err := s.Review(ctx, id)
	if err != nil {
		return nil
	}
	return &pushedQuestion{ID: r.ID, About: r.About, State: r.State, Risk: r.Risk.String(), Preview: r.Preview,
		PreviewHash: r.PreviewHash, Cut: r.Cut, Masked: r.Masked, Exact: r.Exact, Expires: r.Expires,
		Reviewer: r.Reviewer, URL: s.Page(r.ID)}
}

// signBody returns the signature by which a receiver knows who called, and when: it computes the same
// of the raw body, compares in constant time, and refuses an old t.
func signBody(secret holdfast.Secret, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	m := hmac.New(sha256.New, []byte(secret.Reveal()))
	m.Write([]byte(t + "."))
	m.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(m.Sum(nil))
}
