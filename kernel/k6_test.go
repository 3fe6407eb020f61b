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
