package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Bounds of what a client is given to bring back, in bytes.
const (
	maxSealed = 1 << 20  // the whole, as it is written
	maxTheirs = 64 << 10 // the server's own state
)

// How long a retry is taken: with the answers to a server's questions, and of a
// request that was held, which is as long as a review lasts.
const (
	askedFor = time.Hour
	heldFor  = 24 * time.Hour
)

// state is what the gateway hands to a client of 2026-07-28 with a question and
// gets back with the retry. It is signed, not secret, and carries no authority:
// whatever comes with it is judged again.
type state struct {
	// Boundary and Request name what was asked: the server, the method, the
	// tool, and the hash of the exact bytes.
	Boundary string `json:"boundary"`
	Request  string `json:"request"`
	// Until is when it ends, in Unix seconds.
	Until int64 `json:"until"`
	// Review is the hold that the client was told of, "" for none.
	Review string `json:"review,omitempty"`
	// Asked are the server's questions by their key, nil where it asked none.
	Asked map[string]askedOf `json:"asked,omitempty"`
	// Theirs is the state that the server wants back; nil where it gave none.
	Theirs *string `json:"theirs,omitempty"`
	// Answers is the JSON of the client's answers to Asked, where the
	// request that brought them was held.
	Answers string `json:"answers,omitempty"`
}

// askedOf is one question of the server; Params is JSON.
type askedOf struct {
	Method string `json:"method"`
	Params string `json:"params"`
}

// fingerprint is the hash of the exact bytes that a request is judged by.
func fingerprint(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sign is the MAC of a state's bytes under the session's key.
func (s *session) sign(b []byte) []byte {
	m := hmac.New(sha256.New, s.Seal)
	m.Write([]byte("holdfast: an MCP request state, version 1\n"))
	m.Write(b)
	return m.Sum(nil)
}

var errLargeState = errors.New("what the client would have to bring back is too large")

// seal writes a state as the text that the client brings back.
func (s *session) seal(st state) (string, error) {
	b, err := json.Marshal(st)
	if err != nil {
		return "", err
	}
	t := base64.RawURLEncoding.EncodeToString(b) + "." + base64.RawURLEncoding.EncodeToString(s.sign(b))
	if len(t) > maxSealed {
		return "", errLargeState
	}
	return t, nil
}

// unseal reads what the client brought back for the request c. Its errors are
// for people.
func (s *session) unseal(t string, c *call, now time.Time) (state, error) {
	var st state
	forged := errors.New("params.requestState was not given out here, or was changed")
	body, mac, ok := strings.Cut(t, ".")
	if !ok || len(t) > maxSealed {
		return st, forged
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil {
		return st, forged
	}
	sum, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	if err != nil || !hmac.Equal(sum, s.sign(b)) {
		return st, forged
	}
	if err := json.Unmarshal(b, &st); err != nil {
		return state{}, forged
	}
	switch {
	case st.Boundary != c.boundary || st.Request != c.asked:
		return state{}, errors.New("params.requestState was given out for another request")
	case now.Unix() >= st.Until:
		return state{}, errors.New("params.requestState has expired")
	}
	return st, nil
}
