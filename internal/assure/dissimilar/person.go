package dissimilar

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
)

// ParseOperator reads an operator's public key: one line of words, the first
// of which is its sort and the second the key's 32 bytes in base64.
func ParseOperator(line string) (ed25519.PublicKey, error) {
	f := strings.Fields(line)
	if len(f) < 2 || f[0] != "holdfast-operator-v1" {
		return nil, errors.New("not an operator's public key")
	}
	key, err := base64.StdEncoding.Strict().DecodeString(f[1])
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("not an operator's public key")
	}
	return key, nil
}

// statement is what a person signed.
type statement struct {
	Act         string    `json:"act"`
	Subject     string    `json:"subject"`
	Tenant      string    `json:"tenant_id"`
	Exact       string    `json:"exact_hash"`
	PreviewHash string    `json:"preview_hash"`
	Policy      string    `json:"policy"`
	Nonce       string    `json:"nonce"`
	Value       string    `json:"value"`
	Reviewer    string    `json:"reviewer"`
	Reason      string    `json:"reason"`
	Until       time.Time `json:"until"`
	At          time.Time `json:"at"`
	ID          string    `json:"id"`
	Runtime     string    `json:"runtime"`
}

// domain stands before every statement that is signed.
const domain = "holdfast-operator-v1\n"

// longestStatement bounds a statement, in bytes.
const longestStatement = 16 << 10

// said is a signed statement as an event holds it, and what is wrong with it.
type said struct {
	statement
	text []byte
	// unsure says why the signature cannot be judged; wrong, what is wrong.
	unsure, wrong string
}

// signed reads the statement of an event's data and judges its signature and
// its spelling: what was signed is in its canonical form.
func (v *Verifier) signed(text, signature string) *said {
	s := &said{}
	raw, err := base64.StdEncoding.DecodeString(text)
	sig, err2 := base64.StdEncoding.DecodeString(signature)
	if err != nil || err2 != nil || len(raw) == 0 || len(raw) > longestStatement {
		s.wrong = "there is no signed statement"
		return s
	}
	s.text = raw
	if len(v.opt.Operators) == 0 {
		s.unsure = "no operator's public key was given"
	} else if !v.signedByAny(raw, sig) {
		s.wrong = "no operator's key signed it"
		return s
	}
	canonical, err := Canonical(raw)
	switch {
	case json.Unmarshal(raw, &s.statement, json.RejectUnknownMembers(true)) != nil:
		s.wrong = "what was signed is no statement"
	case err != nil || !bytes.Equal(canonical, raw):
		s.wrong = "the statement is not in its one spelling"
	case s.ID == "" || s.At.IsZero() || s.Reviewer == "":
		s.wrong = "the statement does not say who or when"
	case v.opt.Runtime != "" && s.Runtime != v.opt.Runtime:
		s.wrong = "the statement was made for runtime " + quote(s.Runtime)
	}
	return s
}

func (v *Verifier) signedByAny(text, sig []byte) bool {
	msg := append([]byte(domain), text...)
	for _, key := range v.opt.Operators {
		if ed25519.Verify(key, msg, sig) {
			return true
		}
	}
	return false
}

// How long before it is carried out a statement may be made, and how far its
// maker's clock may be ahead (D11).
const (
	statementAge   = stamp(5*60*1_000_000) + minute
	statementAhead = minute + minute
)

// fresh judges that a statement was carried out in time, and only once.
func (v *Verifier) fresh(s *said, at stamp) {
	when := stamp(s.At.UnixMicro())
	// An erasure of several parts is several events of one statement: of one
	// crossing's they stand together, what is old is erased in steps. So do the
	// answer to an attempt and the pause that it lifts.
	_, again := v.words.get(s.ID)
	same := v.several == s.ID && (v.severalAt == v.r.seq-1 || s.Act == "erase" && strings.HasPrefix(s.Subject, "before "))
	if v.several = ""; s.Act == "erase" || s.Act == "unpause" || s.Act == "approve" {
		v.several, v.severalAt = s.ID, v.r.seq
	}
	if same {
		return
	}
	if again && s.wrong == "" {
		s.wrong = "the statement was carried out already"
	}
	v.words.put(s.ID, struct{}{})
	switch {
	case s.wrong != "":
	case when+statementAge < at:
		s.wrong = fmt.Sprintf("the statement was made at %s, too long before", when)
	case when > at+statementAhead:
		s.wrong = fmt.Sprintf("the statement was made at %s, after it was carried out", when)
	}
}

// person judges a statement of an event, and counts it.
func (v *Verifier) person(s *said, at stamp, says string) bool {
	if s.wrong == "" {
		v.fresh(s, at)
	}
	switch {
	case s.wrong != "":
		v.bad(K7Person, says, s.wrong)
		return false
	case s.unsure != "":
		v.unknown(K7Person, s.unsure)
	default:
		v.good(K7Person)
	}
	return true
}

// sameName compares a person's name with a caller's or an agent's, whatever
// word for its sort stands before either.
func sameName(a, b string) bool { return a != "" && b != "" && bare(a) == bare(b) }

func bare(s string) string {
	for {
		s = strings.TrimSpace(strings.ToLower(s))
		sort, rest, found := strings.Cut(s, ":")
		if !found || sort != "user" && sort != "agent" && sort != "operator" {
			break
		}
		s = rest
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}
