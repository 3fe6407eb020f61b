// Package operator is the key of a person (D11). Whoever can open it may
// approve, resume, unpause and change policy; nothing else makes somebody a
// person to Holdfast. It is an Ed25519 key, sealed by a passphrase with age,
// and what a person says with it is a signed Statement.
//
// The package works on bytes: it reads no file, no terminal and no clock. It
// draws random bytes from the system.
//
// Sources: D11; age's scrypt recipient (age-encryption.org/v1); RFC 8032
// (Ed25519); RFC 8785 (canonical JSON).
package operator

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/holdfast-dev/holdfast"
)

// Limits of a sealed key and of its passphrase.
const (
	MaxSealed     = 8 << 10 // bytes
	MinPassphrase = 8       // code points
	MaxPassphrase = 1024    // bytes
)

// Work factors of scrypt: 2 to that power. The default takes 256 MiB of
// memory and below a second on a small machine, each step more doubles both.
// A file that asks for more than the most is refused before the work is done.
const (
	defaultWork = 18
	leastWork   = 15
	mostWork    = 20
)

// secretPrefix and publicPrefix begin the two texts of a key.
const (
	secretPrefix = "HOLDFAST-OPERATOR-SECRET-V1 "
	publicPrefix = "holdfast-operator-v1 "
)

// Options change how a key is sealed. The zero Options are the safe ones.
type Options struct {
	// WorkFactor is scrypt's, from 15 to 20; 0 is 18. Tests use 15.
	WorkFactor int
}

// Key is an opened key. It prints nothing of itself and cannot be written as
// JSON or text. The zero Key signs nothing.
type Key struct {
	// private is behind a pointer because fmt does not ask a value's own
	// methods when it sits in somebody's unexported field.
	private *ed25519.PrivateKey
}

func newKey(private ed25519.PrivateKey) Key { return Key{&private} }

// key returns the private key, nil if there is none.
func (k Key) key() ed25519.PrivateKey {
	if k.private == nil {
		return nil
	}
	return *k.private
}

// Public is what others know of a person. The zero Public verifies nothing.
type Public struct {
	key  ed25519.PublicKey
	name string
}

// New makes a key and seals it with the passphrase. sealed is ASCII text for a
// file of mode 0600; public is the line that ParsePublic reads.
func New(passphrase holdfast.Secret, o Options) (sealed []byte, public Public, err error) {
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, Public{}, fmt.Errorf("making an operator key: %w", err)
	}
	sealed, err = seal(private, passphrase, o)
	if err != nil {
		return nil, Public{}, err
	}
	return sealed, Public{key: pub}, nil
}

// Reseal seals an opened key with another passphrase.
func Reseal(k Key, passphrase holdfast.Secret, o Options) (sealed []byte, err error) {
	if len(k.key()) == 0 {
		return nil, refuse(holdfast.KindValue, "there is no operator key", "", nil)
	}
	return seal(k.key(), passphrase, o)
}

func seal(private ed25519.PrivateKey, passphrase holdfast.Secret, o Options) ([]byte, error) {
	if err := CheckPassphrase(passphrase); err != nil {
		return nil, err
	}
	work := o.WorkFactor
	if work == 0 {
		work = defaultWork
	}
	if work < leastWork || work > mostWork {
		return nil, fmt.Errorf("sealing the operator key: work factor %d is not between %d and %d", work, leastWork, mostWork)
	}
	r, err := age.NewScryptRecipient(passphrase.Reveal())
	if err != nil {
		return nil, fmt.Errorf("sealing the operator key: %w", err)
	}
	r.SetWorkFactor(work)
	var out bytes.Buffer
	if err := encrypt(&out, r, secretPrefix+base64.StdEncoding.EncodeToString(private.Seed())); err != nil {
		return nil, fmt.Errorf("sealing the operator key: %w", err)
	}
	return out.Bytes(), nil
}

func encrypt(out io.Writer, r age.Recipient, text string) error {
	a := armor.NewWriter(out)
	w, err := age.Encrypt(a, r)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return a.Close()
}

// CheckPassphrase refuses what is too short to protect a key: fewer than eight
// code points, or one character over and over.
func CheckPassphrase(passphrase holdfast.Secret) error {
	p := passphrase.Reveal()
	const hint = "four or more unrelated words are easy to remember and hard to guess"
	switch {
	case !utf8.ValidString(p) || strings.ContainsAny(p, "\x00\r\n"):
		return refuse(holdfast.KindUsage, "the passphrase must be one line of UTF-8 text", hint, nil)
	case len(p) > MaxPassphrase:
		return refuse(holdfast.KindUsage, fmt.Sprintf("the passphrase is longer than %d bytes", MaxPassphrase), "", nil)
	case utf8.RuneCountInString(p) < MinPassphrase:
		return refuse(holdfast.KindUsage, fmt.Sprintf("the passphrase has fewer than %d characters", MinPassphrase), hint, nil)
	}
	if _, n := utf8.DecodeRuneInString(p); strings.Repeat(p[:n], len(p)/n) == p {
		return refuse(holdfast.KindUsage, "the passphrase is one character over and over", hint, nil)
	}
	return nil
}

// Open opens a sealed key. A wrong passphrase is a PermissionError; something
// that is no sealed key is a ValueError. It takes up to a second and 256 MiB,
// which is the point of it: callers allow one at a time.
func Open(sealed []byte, passphrase holdfast.Secret) (Key, error) {
	bad := func(err error) (Key, error) {
		return Key{}, refuse(holdfast.KindValue, "the operator key file is damaged or is none", "restore it from a copy, or make a new key", err)
	}
	if len(sealed) > MaxSealed {
		return bad(errors.New("too long"))
	}
	p := passphrase.Reveal()
	if p == "" || len(p) > MaxPassphrase {
		return Key{}, wrongPassphrase(nil)
	}
	id, err := age.NewScryptIdentity(p)
	if err != nil {
		return bad(err)
	}
	id.SetMaxWorkFactor(mostWork)
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), id)
	if none := (*age.NoIdentityMatchError)(nil); errors.As(err, &none) && slices.Equal(none.StanzaTypes, []string{"scrypt"}) {
		return Key{}, wrongPassphrase(err)
	}
	if err != nil {
		return bad(err)
	}
	text, err := io.ReadAll(io.LimitReader(r, 1<<10))
	if err != nil {
		return bad(err)
	}
	return parseSecret(string(text), bad)
}

func wrongPassphrase(err error) error {
	return refuse(holdfast.KindPermission, "the passphrase does not open the operator key", "", err)
}

func parseSecret(text string, bad func(error) (Key, error)) (Key, error) {
	enc, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return bad(errors.New("no operator secret inside"))
	}
	seed, err := base64.StdEncoding.Strict().DecodeString(enc)
	if err != nil || len(seed) != ed25519.SeedSize {
		return bad(errors.New("no operator secret inside"))
	}
	return newKey(ed25519.NewKeyFromSeed(seed)), nil
}

// Public returns the key that others know.
func (k Key) Public() Public {
	if len(k.key()) == 0 {
		return Public{}
	}
	return Public{key: k.key().Public().(ed25519.PublicKey)}
}

// String returns REDACTED.
func (Key) String() string { return "REDACTED" }

// Format writes REDACTED for every verb; without it %d would print the bytes.
func (Key) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, "REDACTED") }

// LogValue implements slog.LogValuer.
func (Key) LogValue() slog.Value { return slog.StringValue("REDACTED") }

// MarshalText refuses: an opened key is never written.
func (Key) MarshalText() ([]byte, error) {
	return nil, errors.New("an opened operator key cannot be written")
}

// ParsePublic reads the line that String writes, with or without one line end:
// the key, and the person's name where it has one.
func ParsePublic(text string) (Public, error) {
	no := func(why string) (Public, error) {
		return Public{}, refuse(holdfast.KindValue, "the operator's public key "+why, "it is one line that begins with "+strings.TrimSpace(publicPrefix), nil)
	}
	line := strings.TrimSuffix(text, "\n")
	enc, ok := strings.CutPrefix(line, publicPrefix)
	if !ok {
		return no("does not begin with " + strings.TrimSpace(publicPrefix))
	}
	enc, name, named := strings.Cut(enc, " ")
	if named && CheckName(name) != nil {
		return no("has a name that no key can bear")
	}
	key, err := base64.StdEncoding.Strict().DecodeString(enc)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return no("is not 32 bytes in base64")
	}
	p := Public{key: key, name: name}
	if p.String() != line { // the decoder skips line breaks
		return no("is not written as it should be")
	}
	return p, nil
}

// String returns the public key as one line without a line end, "" for none.
func (p Public) String() string {
	if len(p.key) != ed25519.PublicKeySize {
		return ""
	}
	text := publicPrefix + base64.StdEncoding.EncodeToString(p.key)
	if p.name != "" {
		text += " " + p.name
	}
	return text
}

// Name is the person's, where the key has one: then nothing may be said with it
// under another.
func (p Public) Name() string { return p.name }

// MarshalText writes String.
func (p Public) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what ParsePublic reads.
func (p *Public) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePublic(string(b))
	return err
}

// ID names the key for people and records: "operator:" and the first 16 hex
// digits of its SHA-256. It is "" for the zero Public.
func (p Public) ID() string {
	if len(p.key) != ed25519.PublicKeySize {
		return ""
	}
	sum := sha256.Sum256(p.key)
	return "operator:" + hex.EncodeToString(sum[:8])
}

// Equal says whether both are the same key, whatever their names. No key equals the zero Public.
func (p Public) Equal(q Public) bool {
	return len(p.key) == ed25519.PublicKeySize && p.key.Equal(q.key)
}

// refuse makes the error of K7, whose reviewers these are.
func refuse(kind holdfast.Kind, why, hint string, cause error) error {
	return &holdfast.Error{Kind: kind, Gate: holdfast.K7, Why: why, Hint: hint, Err: cause}
}

// Wipe overwrites the key where it lies, so that it signs nothing any more.
// Copies of the Key are the same key. Nobody may use it meanwhile.
func (k Key) Wipe() {
	if k.private != nil {
		clear(*k.private)
		*k.private = nil
	}
}
