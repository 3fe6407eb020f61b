// Package connection is one connection to a SQLite file: its prepared statements and the
// rows they return.
package connection
