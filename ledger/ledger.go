// Package ledger is what was done: leaves, one RFC 6962 tree per tenant,
// signed checkpoints, proofs, and their verification offline. It works on
// bytes and stores nothing (D6, D14).
//
// A leaf's record is one line of JSON in one spelling: Begin, Entry or Event,
// sealed by redaction. Redaction may change the content of a string that
// Exempt does not name; it changes neither the fields nor their order, so that
// what was sealed still parses. The leaf hash is SHA-256 over a zero byte and
// the record; the tree over the leaf hashes is RFC 6962's. A part stands
// beside the record and can be erased, because the record holds only its
// salted hash.
//
// A checkpoint is a C2SP signed note over a tenant's size and root. Whoever
// holds one can prove with Inclusion that a record is under it, with
// Consistency that a later one continues it, and with ExportVerifier that a
// whole export does. Each checkpoint of a tenant is itself a leaf of the tree
// of CheckpointsTenant, so that no tree can be cut back with its own
// checkpoints alone: CheckpointLog says what each must still contain, and
// verification reads it first. What a checkpoint does not cover, only the store
// vouches for; what verification can and cannot find is said at Checker, and the
// export's format at Exporter.
package ledger

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/redact"
	"golang.org/x/mod/sumdb/tlog"
)

// Kind is the kind of a leaf (D6). The numbers are stored.
type Kind int8

// The kinds. At most one begin and exactly one entry per crossing.
const (
	KindBegin Kind = 1
	KindEntry Kind = 2
	KindEvent Kind = 3
)

// Leaf is one record before it has a place. Record can only be made by the
// redaction engine (D14a).
type Leaf struct {
	Tenant string
	Kind   Kind
	// Crossing is the crossing's UUIDv7, empty for events without one.
	Crossing string
	At       time.Time
	Record   redact.Record
	// Part is the erasable part, salt first (16 bytes), or nil. The record
	// holds its PartHash, so that erasing it breaks no proof (D14).
	Part []byte
}

// Place is where a leaf stands in its tenant's tree.
type Place struct {
	Tenant string    `json:"tenant_id"`
	Seq    int64     `json:"seq"`
	Hash   tlog.Hash `json:"hash"`
}

// Stored is a leaf as it was read back.
type Stored struct {
	Place
	Kind     Kind
	Crossing string
	At       time.Time
	Record   []byte
	Part     []byte
}

// Head is a tenant's tree: how many leaves, and the root over them.
type Head struct {
	Tenant string    `json:"tenant_id"`
	Size   int64     `json:"size"`
	Root   tlog.Hash `json:"root"`
}

// SignedCheckpoint is a C2SP signed note over a Head.
type SignedCheckpoint struct {
	Head
	At   time.Time
	Note []byte
}

// Nodes gives the tree's hashes for proofs.
type Nodes interface {
	// LeafHashes returns the hashes of the leaves in [from, to).
	LeafHashes(from, to int64) ([]tlog.Hash, error)
	// Tile returns the 256 hashes of a complete tile. At level 0 they are
	// the leaf hashes n*256 to n*256+255; at level 1 and above hash i is
	// the root of the complete subtree of 256^level leaves that starts at
	// leaf (n*256+i) * 256^level. Only tiles that are complete are asked
	// for. A Nodes may also be a Roots.
	Tile(level int, n int64) ([]tlog.Hash, error)
}
