package domain

import "github.com/holdfast-dev/holdfast"

// kindBlocked is the document's name for a domain that is not allowed.
const kindBlocked holdfast.Kind = "DomainBlockedError"

// Table is the allowlist. A nil Table, and one without rows, denies everything.
// It does not change after NewTable, so that any number may ask it at once.
type Table struct{}

// NewTable checks the rows, fills in what they leave out and indexes them. The
// error is the first mistake, after its row's Source: a UsageError. The rows
// are copied; their slices must not be changed afterwards.
func NewTable(ds []Domain) (*Table, error) {
	return &Table{}, nil
}

// Domains are the rows, defaults filled in, in the order they were given. They
// must not be changed.
func (t *Table) Domains() []*Domain { return nil }

// Ask is one request as far as the allowlist is concerned.
type Ask struct {
	Origin Origin
	// Method is as it was sent; methods are case-sensitive. CONNECT asks for an
	// opaque tunnel, and its Target is empty.
	Method string
	// Target is what ParseURL returns: path and query, escaped.
	Target string
	// Upgrade is the Upgrade header, empty where there is none.
	Upgrade string
}

// ReadsOnly says whether the request only reads: GET or HEAD, and no upgrade.
func (a Ask) ReadsOnly() bool {
	return (a.Method == "GET" || a.Method == "HEAD") && a.Upgrade == ""
}

// Find is the row for an origin, by name, port and TLS alone: what is known at
// CONNECT, before there is a request. The most specific name decides, and
// within it a row with ":port" before one without. The error is a
// DomainBlockedError of K2 with a hint.
func (t *Table) Find(o Origin) (*Domain, *holdfast.Error) {
	return nil, blocked(o.Host.String()+" is not in the allowlist", "")
}

// Decide is Find, and then method, path and upgrade. CONNECT is allowed on an
// opaque row, and nothing else is; elsewhere it is refused.
func (t *Table) Decide(a Ask) (*Domain, *holdfast.Error) {
	return t.Find(a.Origin)
}

func blocked(why, hint string) *holdfast.Error {
	return &holdfast.Error{Kind: kindBlocked, Gate: holdfast.K2, Why: why, Hint: hint}
}
