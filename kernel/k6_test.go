package kernel_test

import (
	"database/sql"
	"math/rand/v2"
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
