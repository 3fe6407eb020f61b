package sqlite

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/store/storetest"
)

func openStore(t testing.TB, dir string) *Store {
	t.Helper()
	return openWith(t, Options{Path: filepath.Join(dir, "state", "holdfast.db")})
}

func openWith(t testing.TB, opt Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB, dir string) kernel.Store {
		return openWith(t, Options{Path: filepath.Join(dir, "state", "holdfast.db"), Tables: storetest.Tables()})
	})
}

// faulty arms the next commit.
type faulty struct{ step string }

func (f *faulty) fault(step string) error {
	if f.step == step {
		f.step = ""
		return errors.New("injected at " + step)
	}
	return nil
}

func TestFaults(t *testing.T) {
	for _, step := range []string{"begin", "flush", "commit"} {
		t.Run(step, func(t *testing.T) {
			var mu sync.Mutex
			seams := map[kernel.Store]*faulty{}
			storetest.Faults(t, func(t testing.TB, dir string) kernel.Store {
				f := new(faulty)
				s, err := Open(t.Context(), Options{Path: filepath.Join(dir, "db"), Tables: storetest.Tables(),
					Fault: f.fault})
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				seams[s] = f
				return s
			}, func(s kernel.Store, f storetest.Fault) {
				mu.Lock()
				defer mu.Unlock()
				seams[s].step = map[storetest.Fault]string{storetest.NotPersisted: step, storetest.Persisted: "committed"}[f]
			})
		})
	}
}
