package service

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// The engine of a row masks what is registered, and a credential
// from the request on that needs it first, and the newest one.
func TestEgress_Engine_knowsTheCredentials(t *testing.T) {
	t.Parallel()
	dir := testfile.Write(t, map[string]string{"key": "first-value-of-the-key\n"})
	file := filepath.Join(dir, "key")
	s := New(Options{Log: slog.New(slog.DiscardHandler)})
	d := rowWithFile(file)
	shown := func(text string) string { return string(s.engine(d).Text([]byte(text)).Out) }
	if got := shown("it is first-value-of-the-key, ann@example.com"); got != "it is [secret], [email]" {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(file, []byte("another-value-of-it\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.values.Read(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	if got := shown("first-value-of-the-key another-value-of-it"); got != "[secret] [secret]" {
		t.Errorf("%q", got)
	}
	if made := s.engine(d); made != s.engine(d) {
		t.Error("the engine is not kept")
	}
	// More than an engine takes refuses, and masks less never.
	for i := range 1100 {
		s.values.Keep(fmt.Sprint("source", i), holdfast.NewSecret(fmt.Sprintf("value-number-%06d", i)))
	}
	if s.engine(d) != nil {
		t.Error("an engine that does not know everything")
	}
}

// rowWithFile returns a row whose credential is in the file.
func rowWithFile(file string) *domain.Domain {
	source := credential.Source{File: file}
	return &domain.Domain{Name: "a.example.com",
		Credential: &domain.Credential{Header: "Authorization", Source: source.Text()}}
}
