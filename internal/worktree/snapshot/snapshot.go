// Package snapshot keeps versions of work trees, and puts them back (spec 001,
// layer 3; D40). What a work tree holds is an agent's, and hostile: Holdfast
// walks it by itself, follows no link, and hands git nothing but bytes. git
// keeps them, in a repository of Holdfast's own beside the state; of the tree it
// only reads the names that .gitignore files leave out.
//
// Never part of a snapshot, and so never rolled back, are git's own folders and
// whatever Options.Own names: the latch, the ledger, limits, configuration.
package snapshot

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// BoundaryPrefix is what the names of Holdfast's own boundaries of versions begin with.
const BoundaryPrefix = "snapshot/"

// Agent is who keeps versions on Holdfast's own behalf, by which the ledger knows it.
const Agent = "holdfast"

// Tree is one work tree whose versions are kept.
type Tree struct {
	// Path is absolute and without symbolic links.
	Path string
	// Kind is "code" or "state": how commits in it are worded.
	Kind string
	// KeepIgnored keeps what .gitignore leaves out, too.
	KeepIgnored bool
}

// Limits bound one tree; the zero value of each is the default's.
type Limits struct {
	Names int           // entries of all kinds, 1 000 000
	Depth int           // folders within folders, 128
	File  int64         // bytes of one file; a larger one is left out and named; 1 GiB
	Bytes int64         // of all files, 64 GiB
	Time  time.Duration // for one tree, 10 minutes
}

func (l Limits) orDefault() Limits {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&l.Names, 1_000_000)
	set(&l.Depth, 128)
	if l.File <= 0 {
		l.File = 1 << 30
	}
	if l.Bytes <= 0 {
		l.Bytes = 64 << 30
	}
	if l.Time <= 0 {
		l.Time = 10 * time.Minute
	}
	return l
}

// Options is what a Keeper is made of.
type Options struct {
	// Dir is where versions are kept, made 0700 where it is missing.
	Dir string
	// Git is the program; "git" of the path if empty.
	Git string
	// Own are files and folders that are never part of a snapshot, absolute.
	Own    func() []string
	Limits Limits
	// Before is told of the snapshot of what was there before a rollback touches
	// anything; its error keeps the rollback from it. Nil is told nothing.
	Before func(*Manifest) error
	// After is told what a rollback has made of a tree, before it is over: with its error
	// the rollback stands as begun, and Finish goes on. Nil is told nothing.
	After func(r *Rolled, who string) error
	// Ledger is where the record stands when a tree is looked at. Nil is nowhere.
	Ledger func(context.Context) (Position, error)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// kind is what an entry of a tree is.
type kind uint8

const (
	file kind = iota + 1
	program
	link
	folder
)

// entry is one name in a tree.
type entry struct {
	path string // below the tree, with slashes; any bytes but NUL
	kind kind
	perm uint32 // of 0777; 0 of a link
	size int64
	blob [20]byte // git's name of the content
	sum  [32]byte // SHA-256 of the content
	seen stamp
	read bool // blob and sum are of the content
}

// stamp tells whether a file was touched since. All of it is zero in an entry that
// was not found on a disk.
type stamp struct {
	ino          uint64
	mtime, ctime int64 // nanoseconds
}

// Left is what a snapshot leaves out, and why.
type Left struct {
	// Path is quoted as Go does where it is not plain text.
	Path  string `json:"path"`
	Why   string `json:"why"`
	Files int    `json:"files,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// unreadable says that it could not be read at all, so that to try again is of no use.
	unreadable bool
}

// maxLeft is how many a manifest names; the others are only counted.
const maxLeft = 200

// MinGit is the oldest git that is good enough.
const MinGit = "2.30"

func refused(k holdfast.Kind, hint, why string, args ...any) error {
	return &holdfast.Error{Kind: k, Why: fmt.Sprintf(why, args...), Hint: hint}
}
