package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// key is the ledger's public key: one Ed25519 key under the name of the
// runtime, from which each tenant's key name is made.
type key struct {
	name string // holdfast/RUNTIME, percent-encoded
	raw  []byte // the algorithm's byte, 1, and the 32 bytes of the key
}

func parseKey(text string) (*key, error) {
	f := strings.SplitN(text, "+", 3)
	if len(f) != 3 || !strings.HasPrefix(f[0], "holdfast/") {
		return nil, errors.New("not a ledger key: NAME+HASH+BASE64")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(f[2])
	if err != nil || len(raw) != 33 || raw[0] != 1 {
		return nil, errors.New("not an Ed25519 key")
	}
	k := &key{f[0], raw}
	if k.String() != text {
		return nil, errors.New("the key's hash is not that of its name and bytes")
	}
	return k, nil
}

// String is the key as `holdfast ledger key` prints it.
func (k *key) String() string { return k.under(k.name) }

// under is the key string of a signed note whose signer has that name.
func (k *key) under(name string) string {
	sum := sha256.Sum256(append([]byte(name+"\n"), k.raw...))
	return fmt.Sprintf("%s+%08x+%s", name, binary.BigEndian.Uint32(sum[:4]), base64.StdEncoding.EncodeToString(k.raw))
}

// head is a tree: how many leaves, and the root over them.
type head struct {
	tenant string
	size   int64
	root   tlog.Hash
}

// open checks the signature of a checkpoint and reads it.
func (k *key) open(text string) (head, error) {
	origin, _, _ := strings.Cut(text, "\n")
	encoded, ok := strings.CutPrefix(origin, k.name+"/tenant/")
	tenant, err := unescape(encoded)
	if !ok || err != nil {
		return head{}, errors.New("a checkpoint of another ledger")
	}
	nv, err := note.NewVerifier(k.under(origin))
	if err != nil {
		return head{}, err
	}
	n, err := note.Open([]byte(text), note.VerifierList(nv))
	if err != nil {
		return head{}, fmt.Errorf("checkpoint of tenant %q: %v", tenant, err)
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[3], "at ") || lines[4] != "" {
		return head{}, fmt.Errorf("checkpoint of tenant %q has not its four lines", tenant)
	}
	if !isTime(lines[3][len("at "):]) {
		return head{}, fmt.Errorf("checkpoint of tenant %q was signed at no time", tenant)
	}
	size, err := readInt([]byte(lines[1]))
	root, err2 := tlog.ParseHash(lines[2])
	if err != nil || err2 != nil || root.String() != lines[2] {
		return head{}, fmt.Errorf("checkpoint of tenant %q has no size or no root", tenant)
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(n.Sigs[0].Base64); err != nil {
		return head{}, fmt.Errorf("checkpoint of tenant %q: a signature in another spelling", tenant)
	}
	return head{tenant, size, root}, nil
}

// unescape reads a name in its one spelling: every byte but letters, digits and
// -._~ as %XX.
func unescape(encoded string) (string, error) {
	name, err := url.PathUnescape(encoded)
	if err != nil || name == "" {
		return "", errors.New("not a name")
	}
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.String() != encoded {
		return "", errors.New("a name in another spelling")
	}
	return name, nil
}

// splitNotes splits several signed notes with empty lines between them.
func splitNotes(text string) []string {
	var out []string
	cur, signed := "", false
	for line := range strings.Lines(text) {
		sig := strings.HasPrefix(line, "— ")
		if signed && !sig {
			out, cur, signed = append(out, cur), "", false
		}
		if cur == "" && strings.TrimSpace(line) == "" {
			continue
		}
		cur, signed = cur+line, signed || sig
	}
	if cur != "" {
		out = append(out, cur)
	}
	return out
}
