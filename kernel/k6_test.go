package kernel_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/operator"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2026)) }

// sql runs a statement on the store's file past the store.
func (w *world) sql(q string) error {
	db, err := sql.Open("sqlite", "file:"+w.file()+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(q)
	return err
}

// count asks the store's file for one number, past the store.
func (w *world) count(q string) int {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.file()+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow(q).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// nowhere fails if a text stands in any byte of the store's files.
func (w *world) nowhere(texts ...string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "*"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, s := range texts {
			for form, v := range forms(s) {
				if bytes.Contains(b, []byte(v)) {
					w.t.Errorf("%s holds %q as %s", filepath.Base(f), s, form)
				}
			}
		}
	}
}

// forms are the ways in which a text could hide in a file: as it is, in hex,
// and in base64 at each alignment.
func forms(s string) map[string]string {
	out := map[string]string{"itself": s, "hex": hex.EncodeToString([]byte(s))}
	for shift := range 3 {
		if len(s) < 12 {
			break
		}
		b := []byte(s)[(3-shift)%3:]
		out[fmt.Sprintf("base64 at %d", shift)] = base64.StdEncoding.EncodeToString(b[:len(b)/3*3])
	}
	return out
}

// decisionOf is the signed statement that an event keeps.
func decisionOf(t *testing.T, data []byte) operator.Signed {
	t.Helper()
	var s operator.Signed
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return s
}
