package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// CheckpointsTenant is the reserved tenant whose tree is the log of all
// tenants' checkpoints (D14): its leaves are the events of CheckpointEvent.
// No token may name it.
const CheckpointsTenant = "_checkpoints"

// maxNote bounds a signed note with its cosignatures, in bytes.
const maxNote = 16 << 10

// Signer signs checkpoints with the runtime's Ed25519 key.
type Signer struct {
	runtime string
	key     ed25519.PrivateKey
}

// Verifier knows a runtime's public key. A tenant's notes are signed under
// the tenant's origin as key name, as C2SP tlog-checkpoint asks, with this
// one key; NoteKey gives the name's key string to a witness.
type Verifier struct {
	runtime string
	key     ed25519.PublicKey
}

// GenerateKey makes a key for the runtime with that id, from 32 bytes of rand.
func GenerateKey(rand io.Reader, runtime string) (*Signer, error) {
	if runtime == "" || len(runtime) > maxID {
		return nil, refuse("runtime id is empty or longer than %d bytes", maxID)
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(rand, seed); err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	return &Signer{runtime, ed25519.NewKeyFromSeed(seed)}, nil
}

func refuse(format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.KindWALFormat, Gate: holdfast.K6, Why: fmt.Sprintf(format, args...)}
}

// algEd25519 is the algorithm byte of signed-note keys.
const algEd25519 = 1

// Secret is the private key in the text form of signed notes.
func (s *Signer) Secret() holdfast.Secret {
	name := s.Verifier().name()
	key := append([]byte{algEd25519}, s.key.Seed()...)
	return holdfast.NewSecret(fmt.Sprintf("PRIVATE+KEY+%s+%08x+%s", name, keyHash(name, s.Verifier().key),
		base64.StdEncoding.EncodeToString(key)))
}

// ParseSigner reads what Secret gave. Its errors quote nothing of it.
func ParseSigner(secret holdfast.Secret) (*Signer, error) {
	f := strings.Split(secret.Reveal(), "+")
	bad := refuse("signing key is malformed")
	if len(f) < 5 {
		return nil, bad
	}
	runtime, ok := runtimeOf(f[2])
	// The base64 may itself hold a plus.
	key, err := base64.StdEncoding.DecodeString(strings.Join(f[4:], "+"))
	if !ok || err != nil || len(key) != 1+ed25519.SeedSize || key[0] != algEd25519 {
		return nil, bad
	}
	s := &Signer{runtime, ed25519.NewKeyFromSeed(key[1:])}
	if s.Secret().Reveal() != secret.Reveal() {
		return nil, bad
	}
	return s, nil
}

// Verifier returns the public side.
func (s *Signer) Verifier() *Verifier {
	return &Verifier{s.runtime, s.key.Public().(ed25519.PublicKey)}
}

// ParseVerifier reads the key string that String gives.
func ParseVerifier(vkey string) (*Verifier, error) {
	name, rest, _ := strings.Cut(vkey, "+")
	_, b64, _ := strings.Cut(rest, "+")
	runtime, ok := runtimeOf(name)
	key, err := base64.StdEncoding.DecodeString(b64)
	if !ok || err != nil || len(key) != 1+ed25519.PublicKeySize || key[0] != algEd25519 {
		return nil, refuse("ledger key is malformed")
	}
	v := &Verifier{runtime, key[1:]}
	if v.String() != vkey {
		return nil, refuse("ledger key is malformed")
	}
	return v, nil
}

// String is the key string of signed notes, under the runtime's name: what
// `ledger key` prints and what offline verification needs.
func (v *Verifier) String() string { return vkeyString(v.name(), v.key) }

// NoteKey is the same key under the origin of one tenant, for C2SP witnesses
// and other note verifiers.
func (v *Verifier) NoteKey(tenant string) string { return vkeyString(v.Origin(tenant), v.key) }

// Runtime is the id of the runtime whose key this is.
func (v *Verifier) Runtime() string { return v.runtime }

// Origin is the first line of the tenant's checkpoints:
// holdfast/<runtime>/tenant/<tenant>, both percent-encoded.
func (v *Verifier) Origin(tenant string) string { return v.name() + tenantInfix + escape(tenant) }

const tenantInfix = "/tenant/"

func (v *Verifier) name() string { return "holdfast/" + escape(v.runtime) }

func runtimeOf(name string) (string, bool) {
	enc, ok := strings.CutPrefix(name, "holdfast/")
	runtime, ok2 := unescapeName(enc)
	return runtime, ok && ok2 && runtime != ""
}

func vkeyString(name string, key ed25519.PublicKey) string {
	b := append([]byte{algEd25519}, key...)
	return fmt.Sprintf("%s+%08x+%s", name, keyHash(name, key), base64.StdEncoding.EncodeToString(b))
}

// keyHash is the id of a key in a signed note.
func keyHash(name string, key ed25519.PublicKey) uint32 {
	sum := sha256.Sum256(append([]byte(name+"\n\x01"), key...))
	return binary.BigEndian.Uint32(sum[:4])
}

// escape percent-encodes all bytes but letters, digits and "-._~", so that no
// name can hold a newline, a space, a plus or a slash.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// unescapeName reads what escape wrote and nothing else.
func unescapeName(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(n))
		i += 2
	}
	return b.String(), escape(b.String()) == s
}

// text is the signed part of a note: origin, size, root, and when it was
// signed as an extension line.
func (v *Verifier) text(h Head, at time.Time) string {
	return v.Origin(h.Tenant) + "\n" + strconv.FormatInt(h.Size, 10) + "\n" + h.Root.String() + "\nat " +
		string(appendTime(nil, at)) + "\n"
}

// Sign makes the C2SP checkpoint of a head, with microseconds of at.
func (s *Signer) Sign(h Head, at time.Time) (SignedCheckpoint, error) {
	at = at.UTC().Truncate(time.Microsecond)
	if y := at.Year(); h.Tenant == "" || len(h.Tenant) > maxID || h.Size < 0 || at.IsZero() || y < 0 || y > 9999 {
		return SignedCheckpoint{}, refuse("checkpoint of tenant %q at size %d and time %v cannot be signed", h.Tenant, h.Size, at)
	}
	v := s.Verifier()
	text := v.text(h, at)
	origin := v.Origin(h.Tenant)
	sig := binary.BigEndian.AppendUint32(nil, keyHash(origin, v.key))
	sig = append(sig, ed25519.Sign(s.key, []byte(text))...)
	return SignedCheckpoint{h, at, []byte(text + "\n— " + origin + " " + base64.StdEncoding.EncodeToString(sig) + "\n")}, nil
}

// Open checks a note's signature and reads it. The note must be exactly as
// Sign writes it; after the runtime's signature may stand those of witnesses,
// each once and well formed, which are not checked here.
func (v *Verifier) Open(msg []byte) (SignedCheckpoint, error) {
	if len(msg) > maxNote {
		return SignedCheckpoint{}, refuse("checkpoint of more than %d bytes", maxNote)
	}
	origin, rest, _ := strings.Cut(string(msg), "\n")
	tenant, ok := strings.CutPrefix(origin, v.name()+tenantInfix)
	tenant, ok2 := unescapeName(tenant)
	if !ok || !ok2 || tenant == "" {
		return SignedCheckpoint{}, refuse("checkpoint's origin %q is not one of runtime %q", cut(origin), v.runtime)
	}
	nv, err := note.NewVerifier(v.NoteKey(tenant))
	if err != nil {
		return SignedCheckpoint{}, refuse("checkpoint's origin: %v", err)
	}
	n, err := note.Open(msg, note.VerifierList(nv))
	if err != nil {
		return SignedCheckpoint{}, refuse("checkpoint of tenant %q: %v", tenant, err)
	}
	c, err := readHead(tenant, rest)
	if err != nil {
		return SignedCheckpoint{}, err
	}
	if n.Text != v.text(c.Head, c.At) || !printsBack(n, msg) {
		return SignedCheckpoint{}, refuse("checkpoint of tenant %q is not in its one form", tenant)
	}
	c.Note = append([]byte(nil), msg...)
	return c, nil
}

func cut(s string) string { return s[:min(len(s), 80)] }

// readHead reads size, root and time; whether they print back is for the
// caller to see.
func readHead(tenant, rest string) (SignedCheckpoint, error) {
	c := SignedCheckpoint{Head: Head{Tenant: tenant}}
	lines := strings.SplitN(rest, "\n", 4)
	if len(lines) != 4 || len(lines[2]) != len("at ")+timeLen {
		return c, refuse("checkpoint of tenant %q has not its four lines", tenant)
	}
	size, err := strconv.ParseInt(lines[0], 10, 64)
	root, err2 := tlog.ParseHash(lines[1])
	at, ok := parseTime([]byte(lines[2][len("at "):]))
	if err != nil || size < 0 || err2 != nil || !ok {
		return c, refuse("checkpoint of tenant %q has no size, root or time", tenant)
	}
	c.Size, c.Root, c.At = size, root, at
	return c, nil
}

// printsBack says whether the note is spelled in the one way that it has.
func printsBack(n *note.Note, msg []byte) bool {
	b := append([]byte(n.Text), '\n')
	for _, s := range append(n.Sigs, n.UnverifiedSigs...) {
		if _, err := base64.StdEncoding.Strict().DecodeString(s.Base64); err != nil || strings.ContainsAny(s.Base64, "\r\n") {
			return false
		}
		b = append(b, "— "+s.Name+" "+s.Base64+"\n"...)
	}
	return string(b) == string(msg)
}

// CheckpointEvent is the leaf that stands for a checkpoint in the tree of
// CheckpointsTenant. Its subject is the head: the tenant percent-encoded, the
// size and the root in hex, a space between them. It stands there because
// redaction reads everything under data.
func CheckpointEvent(id string, c SignedCheckpoint) *Event {
	return &Event{ID: id, TenantID: CheckpointsTenant, Timestamp: c.At, Name: "checkpoint", Who: "holdfast",
		Subject: fmt.Sprintf("%s %d %x", escape(c.Tenant), c.Size, c.Root[:])}
}

// CheckpointHead reads the head from an event that CheckpointEvent made.
func CheckpointHead(e *Event) (Head, error) {
	bad := refuse("event %q is not one of a checkpoint", e.ID)
	f := strings.Split(e.Subject, " ")
	if e.TenantID != CheckpointsTenant || e.Name != "checkpoint" || len(f) != 3 {
		return Head{}, bad
	}
	tenant, ok := unescapeName(f[0])
	size, err := strconv.ParseInt(f[1], 10, 64)
	root, err2 := hex.DecodeString(f[2])
	if !ok || tenant == "" || err != nil || size < 0 || err2 != nil || len(root) != tlog.HashSize {
		return Head{}, bad
	}
	h := Head{tenant, size, tlog.Hash(root)}
	if CheckpointEvent(e.ID, SignedCheckpoint{Head: h}).Subject != e.Subject {
		return Head{}, bad
	}
	return h, nil
}
