package statedir

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"golang.org/x/mod/sumdb/note"
)

// Keys are the runtime's own keys. Every way of printing them yields REDACTED.
type Keys struct {
	// Ledger is the signer of checkpoints, encoded as x/mod/sumdb/note does,
	// and LedgerPub its verifier, which may be shown to anyone. The key's
	// name is "holdfast/" and Runtime.
	Ledger    holdfast.Secret
	LedgerPub string
	// Seal is the 32-byte key of what must be given back on a replay (D10).
	Seal []byte
	// Token signs local tokens (D8).
	Token ed25519.PrivateKey
	// Runtime is a UUIDv4, made once, that names this state directory.
	Runtime string
}

// String returns REDACTED.
func (Keys) String() string { return "REDACTED" }

// GoString returns REDACTED.
func (Keys) GoString() string { return "REDACTED" }

// LogValue implements slog.LogValuer.
func (Keys) LogValue() slog.Value { return slog.StringValue("REDACTED") }

// MarshalText writes REDACTED.
func (Keys) MarshalText() ([]byte, error) { return []byte("REDACTED"), nil }

// LoadKeys reads the four key files of the state directory and makes those
// that are missing. Only the owner calls it, and before the store is opened:
// once there is a store, a missing key is an error, because a new one would
// break what the lost one signed or sealed. So is a missing store, once there
// was one (StoreGone).
func LoadKeys(o *Owner) (*Keys, error) {
	if o == nil || o.file == nil {
		return nil, usage.Errorf("only the owner of the state directory may load its keys")
	}
	p := o.Paths
	if err := StoreGone(p); err != nil {
		return nil, err
	}
	_, err := os.Lstat(p.DB)
	if err != nil && !missing(err) {
		return nil, err
	}
	made := err == nil
	var k Keys
	if k.Runtime, err = keyFile(p.RuntimeID, made, "runtime", parseRuntime, newRuntime); err != nil {
		return nil, err
	}
	if k.Seal, err = keyFile(p.SealKey, made, "seal", parse32, random32); err != nil {
		return nil, err
	}
	seed, err := keyFile(p.TokenKey, made, "token", parse32, random32)
	if err != nil {
		return nil, err
	}
	k.Token = ed25519.NewKeyFromSeed(seed)
	signer, err := keyFile(p.LedgerKey, made, "ledger", parseSigner, func() (string, error) {
		s, _, err := note.GenerateKey(rand.Reader, "holdfast/"+k.Runtime)
		return s, err
	})
	if err != nil {
		return nil, err
	}
	k.Ledger = holdfast.NewSecret(signer)
	k.LedgerPub, err = verifierOf(signer)
	return &k, err
}

// keyFile reads a file of one line, "holdfast NAME v1 TEXT", or makes it.
func keyFile[T any](path string, mustExist bool, name string, parse func(string) (T, error), fresh func() (string, error)) (T, error) {
	var none T
	prefix := "holdfast " + name + " v1 "
	b, err := guard.ReadRegular(path, guard.MaxKeyFile, guard.CheckPrivate(path))
	if missing(err) {
		if mustExist {
			return none, usage.HintErrorf("put it back from a backup, or start anew with another --state",
				"%s is missing, but the store it belongs to is there", path)
		}
		text, err := fresh()
		if err != nil {
			return none, fmt.Errorf("make %s: %w", path, err)
		}
		b = []byte(prefix + text + "\n")
		if err := writeNew(path, b); err != nil {
			return none, fmt.Errorf("write %s: %w", path, err)
		}
	} else if err != nil {
		return none, err
	}
	text, ok := strings.CutPrefix(string(b), prefix)
	text, whole := strings.CutSuffix(text, "\n")
	v, err := parse(text)
	if !ok || !whole || err != nil {
		return none, usage.HintErrorf("put it back from a backup", "%s does not hold a %s key", path, name)
	}
	return v, nil
}

// writeNew makes a 0600 file that has all of b or does not exist, durable, and
// never replaces one. A crash leaves at most a temporary file.
func writeNew(path string, b []byte) error {
	if _, err := os.Lstat(path); !missing(err) {
		return errors.Join(err, fs.ErrExist)
	}
	// The owner's lock keeps every other writer away, so nothing is replaced.
	return durable.ReplaceFile(path, b, 0o600)
}

func random32() (string, error) {
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

func parse32(s string) ([]byte, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != 32 || bytes.Equal(b, make([]byte, 32)) {
		return nil, errors.New("not 32 bytes in base64")
	}
	return b, nil
}

func newRuntime() (string, error) {
	id, err := uuid.NewRandom()
	return id.String(), err
}

func parseRuntime(s string) (string, error) {
	id, err := uuid.Parse(s)
	if err != nil || id.String() != s || id.Version() != 4 {
		return "", errors.New("not a UUIDv4")
	}
	return s, nil
}

func parseSigner(s string) (string, error) {
	_, err := note.NewSigner(s)
	return s, err
}

// verifierOf derives the verifier key from an encoded signer: what follows the
// name and the hash is one byte of algorithm and the Ed25519 seed.
func verifierOf(signer string) (string, error) {
	s, err := note.NewSigner(signer)
	if err != nil {
		return "", err
	}
	parts := strings.SplitN(signer, "+", 5)
	if len(parts) != 5 {
		return "", errors.New("signer key without five parts")
	}
	raw, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(raw) != 1+ed25519.SeedSize {
		return "", errors.New("signer key without an Ed25519 seed")
	}
	pub := ed25519.NewKeyFromSeed(raw[1:]).Public().(ed25519.PublicKey)
	return note.NewEd25519VerifierKey(s.Name(), pub)
}
