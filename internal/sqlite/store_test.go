package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/storetest"
)

func openStore(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: filepath.Join(dir, "state", "holdfast.db")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB, dir string) kernel.Store { return openStore(t, dir) })
}
