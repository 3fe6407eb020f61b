package main

import (
	"database/sql"
	"strconv"

	"github.com/holdfast-dev/holdfast/ledger"
	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"
)

// spoil changes a closed store behind Holdfast's back with real SQL, and puts
// the triggers back as they were, unless they are what it takes away:
//
//	spoil FILE cut TENANT KEEP | remove TENANT | sql STATEMENT | triggers
func spoil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: spoil FILE HOW [ARGUMENT...]")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	s := spoiler{ts, db}
	back := s.dropTriggers()
	switch args[1] {
	case "cut":
		keep, err := strconv.ParseInt(args[3], 10, 64)
		ts.Check(err)
		s.cut(args[2], keep)
	case "remove":
		s.remove(args[2])
	case "sql":
		s.run(args[2])
	case "triggers":
		return
	default:
		ts.Fatalf("spoil knows no %s", args[1])
	}
	s.run(back)
}

type spoiler struct {
	ts *testscript.TestScript
	db *sql.DB
}

func (s spoiler) run(text string, args ...any) {
	_, err := s.db.Exec(text, args...)
	s.ts.Check(err)
}

func (s spoiler) dropTriggers() (back string) {
	rows, err := s.db.Query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
	s.ts.Check(err)
	drop := ""
	for rows.Next() {
		var name, text string
		s.ts.Check(rows.Scan(&name, &text))
		drop, back = drop+"DROP TRIGGER "+name+";", back+text+";"
	}
	s.run(drop)
	return back
}

// cut takes away a tenant's leaves from keep on with their checkpoints, and
// makes a head that fits what is left.
func (s spoiler) cut(tenant string, keep int64) {
	var id int64
	s.ts.Check(s.db.QueryRow("SELECT id FROM tenant WHERE name = ?", tenant).Scan(&id))
	s.run("DELETE FROM leaf WHERE tenant = ? AND seq >= ?", id, keep)
	s.run("DELETE FROM checkpoint WHERE tenant = ? AND size > ?", tenant, keep)
	s.run("DELETE FROM tile WHERE tenant = ?", id)
	rows, err := s.db.Query("SELECT record FROM leaf WHERE tenant = ? ORDER BY id", id)
	s.ts.Check(err)
	var tree ledger.Tree
	for rows.Next() {
		var b []byte
		s.ts.Check(rows.Scan(&b))
		tree.Append(ledger.LeafHash(b))
	}
	if tree.Size() != keep {
		s.ts.Fatalf("%s had only %d leaves", tenant, tree.Size())
	}
	root := tree.Root()
	s.run("UPDATE head SET size = ?, root = ?, settled = min(settled, ?) WHERE tenant = ?", keep, root[:], keep, id)
}

func (s spoiler) remove(tenant string) {
	s.run("PRAGMA foreign_keys = 0")
	for _, table := range []string{"leaf", "tile", "head"} {
		s.run("DELETE FROM "+table+" WHERE tenant = (SELECT id FROM tenant WHERE name = ?)", tenant)
	}
	s.run("DELETE FROM tenant WHERE name = ?", tenant)
	s.run("DELETE FROM checkpoint WHERE tenant = ?", tenant)
}
