// Package schema makes and migrates the tables of a SQLite store.
package schema
