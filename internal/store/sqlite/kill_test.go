package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/store/storetest"
	"github.com/holdfast-dev/holdfast/ledger"
)

// killEnv names the store for which the test binary is the writer.
const killEnv = "HOLDFAST_TEST_WRITER"

// readEnv names the store that the test binary reads, to print its size.
const readEnv = "HOLDFAST_TEST_READER"

func TestMain(m *testing.M) {
	if path := os.Getenv(killEnv); path != "" {
		writer(path)
		return
	}
	if path := os.Getenv(readEnv); path != "" {
		reader(path)
		return
	}
	os.Exit(m.Run())
}

func reader(path string) {
	s, err := Open(context.Background(), Options{Path: path, ReadOnly: true})
	if err == nil {
		err = s.View(context.Background(), func(tx kernel.Tx) error {
			hs, err := tx.Heads()
			if err == nil {
				fmt.Print(hs[0].Size)
			}
			return err
		})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// writer writes crossings, and prints each one that was acknowledged, until
// it is killed.
func writer(path string) {
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var t testing.T
	rec := storetest.Record(&t, "killed")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for {
				id := uuid.Must(uuid.NewV7()).String()
				for _, kind := range []ledger.Kind{ledger.KindBegin, ledger.KindEntry} {
					update := s.Update
					if kind == ledger.KindEntry && i%2 == 0 {
						update = s.UpdateUnhurried
					}
					err := update(context.Background(), func(tx kernel.Tx) error {
						_, err := tx.Append(ledger.Leaf{Tenant: "acme", Kind: kind, Crossing: id, At: time.Now(), Record: rec})
						if err != nil || kind == ledger.KindBegin {
							return err
						}
						r, err := tx.Draw([]budget.Draw{{Key: "entries", Amount: 1, Limit: 1 << 60}})
						if r != nil {
							return fmt.Errorf("refused: %+v", r)
						}
						return err
					})
					if err != nil {
						fmt.Println("error", err)
						os.Exit(1)
					}
					// One write, so that a kill cannot leave half a line
					// that looks whole.
					fmt.Printf("%d %s.\n", kind, id)
				}
			}
		})
	}
	wg.Wait()
}

// A writer killed at any moment loses nothing that it acknowledged: every
// acknowledged leaf is there once, the tree verifies, and the counter is what
// the entries say.
func TestKill9(t *testing.T) {
	rounds := testrepeat.Times(30, 8)
	path := filepath.Join(t.TempDir(), "db")
	acked := map[string]bool{}
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killEnv+"="+path)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		// Every other writer is killed after a number of acknowledgements,
		// so that a slow machine does not kill them all while they open
		// the store.
		wait, left := time.Minute, 1+rand.IntN(300)
		if round%2 == 0 {
			wait, left = time.Duration(10+rand.IntN(100))*time.Millisecond, math.MaxInt
		}
		timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			line := lines.Text()
			if left--; left == 0 {
				_ = cmd.Process.Kill()
			}
			if strings.HasPrefix(line, "error") {
				t.Errorf("the writer says: %s", line)
			} else if strings.HasSuffix(line, ".") {
				acked[strings.TrimSuffix(line, ".")] = true
			}
		}
		_ = cmd.Wait()
		timer.Stop()
	}
	if len(acked) == 0 {
		t.Fatal("nothing was acknowledged")
	}
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	recovered(t, s, acked)
	t.Logf("%d acknowledged leaves over %d kills", len(acked), rounds)
}

func recovered(t *testing.T, s *Store, acked map[string]bool) {
	err := s.View(t.Context(), func(tx kernel.Tx) error {
		found := map[string]bool{}
		entries := int64(0)
		tree := new(ledger.Tree)
		err := tx.Leaves("acme", 0, 1<<39, func(l ledger.Stored) error {
			key := fmt.Sprintf("%d %s", l.Kind, l.Crossing)
			if found[key] || l.Seq != tree.Size() || l.Hash != ledger.LeafHash(l.Record) {
				return fmt.Errorf("leaf %d, %s: doubled, out of place or with a wrong hash", l.Seq, key)
			}
			found[key] = true
			tree.Append(l.Hash)
			if l.Kind == ledger.KindEntry {
				entries++
			}
			return nil
		})
		if err != nil {
			return err
		}
		for key := range acked {
			if !found[key] {
				return fmt.Errorf("%s was acknowledged and is lost", key)
			}
		}
		hs, err := tx.Heads()
		if err != nil || hs[0] != tree.Head("acme") {
			return fmt.Errorf("head %v, the leaves make %v, %w", hs, tree.Head("acme"), err)
		}
		c, err := tx.Counter(budget.Draw{Key: "entries"})
		if err != nil || c.Used != entries {
			return fmt.Errorf("the counter says %d and there are %d entries, %w", c.Used, entries, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
