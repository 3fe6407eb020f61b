package statedir

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

// checkKeys signs and verifies with the ledger's pair, and prints the keys in
// every usual way.
func checkKeys(t *testing.T, k *Keys) {
	t.Helper()
	s, err := note.NewSigner(k.Ledger.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(k.LedgerPub)
	if err != nil || v.Name() != "holdfast/"+k.Runtime || v.KeyHash() != s.KeyHash() {
		t.Fatalf("verifier %v, %v", k.LedgerPub, err)
	}
	signed, err := note.Sign(&note.Note{Text: "x\n"}, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open(signed, note.VerifierList(v)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "keys", k, "value", *k)
	js, _ := json.Marshal(struct{ K *Keys }{k})
	for _, out := range []string{fmt.Sprint(k, *k), fmt.Sprintf("%v %+v %#v %s", k, *k, k, k), log.String(), string(js)} {
		for _, secret := range []string{k.Ledger.Reveal(), base64.StdEncoding.EncodeToString(k.Seal), fmt.Sprint(k.Seal), fmt.Sprint([]byte(k.Token))} {
			if strings.Contains(out, strings.Trim(secret, "[]")) {
				t.Errorf("a key is printed: %s", out)
			}
		}
	}
}
