package sqlite

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// BenchmarkView is what a view of cached facts costs while nothing commits.
func BenchmarkView(b *testing.B) {
	s := openStore(b, b.TempDir())
	defer s.Close()
	err := s.Update(b.Context(), func(tx kernel.Tx) error {
		return tx.PutAgent(holdfast.Agent{Tenant: "acme", Name: "coder"})
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		err := s.View(b.Context(), func(tx kernel.Tx) error {
			_, err := tx.Agent("acme", "coder")
			_, err2 := tx.Revoked("acme", "jti")
			return errors.Join(err, err2)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
