// Package sandbox describes requests to run untrusted code, whatever tier runs it: code
// (Spec), a program in a work tree (Workspace), and its network (Network). Results and
// postures are in internal/policy/posture. It touches nothing; the tiers are packages
// below it.
//
// Spec 003 sections 2.1 and 2.2, spec 000 "Sandboxing model", decisions D15 to
// D21a.
package sandbox

import (
	"crypto/sha256"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"time"
)

// Spec is one request to run code: the document's ExecutionRequest (003 2.1)
// with what Holdfast adds. The zero value of a limit is its default.
type Spec struct {
	// ID names the run in the ledger, in its host name and in its result:
	// 1 to 64 letters, digits, "-" and "_".
	ID string
	// Language is a row of the tier's table, exact or loose: "python3.11",
	// "python3".
	Language string
	// Code is the program's text, or the program itself where the language is
	// "static": at most 10 MB.
	Code []byte
	// Environment is what the code finds in its environment; never a secret.
	Environment map[string]string
	// Files stand in the scratch when the code starts: at most 10,000 of
	// together 100 MB, by relative paths.
	Files map[string][]byte
	// Timeout is by the wall: 10 s if zero, at most 30 s; see LimitsOf for the
	// stronger tiers.
	Timeout time.Duration
	// MemoryMB is 256 if zero, at most 512; likewise.
	MemoryMB int64
	// AnyMemory says that nobody asked for MemoryMB: a stronger tier that runs it
	// instead, or has less, gives what it has.
	AnyMemory bool
	// CPUPeriod and CPUQuota are the share of processors: one if both are
	// zero, at most two (quota is at most twice the period); likewise.
	CPUPeriod, CPUQuota time.Duration
	// Narrow takes system calls out of the language's allowlist (D18).
	Narrow []string
	// Need is the least posture; empty means every wall (D20).
	Need []posture.Wall
	// Tier is the tier that was chosen, whose limits hold; none has the process
	// tier's. Chosen says why it was, for results and records. Whoever runs it
	// runs it in that tier or a stronger one, or not at all.
	Tier   posture.Tier
	Chosen string

	// searched is the digest of the environment in which Check found no secret.
	searched [sha256.Size]byte
}

// The limits of 003 2.1, which are the process tier's, and of what the document
// leaves open.
const (
	DefaultTimeout  = 10 * time.Second
	MaxTimeout      = 30 * time.Second
	DefaultMemoryMB = 256
	MaxMemoryMB     = 512
	minMemoryMB     = 16
	DefaultPeriod   = 100 * time.Millisecond
	MaxCores        = 2
	MaxCode         = 10 << 20
	MaxFiles        = 10_000
	MaxFileBytes    = 100 << 20
	ScratchBytes    = 100 << 20
	ScratchInodes   = 16 << 10
	MaxOutput       = 1 << 20 // of standard output, and again of standard error
	MaxOutputBytes  = 100 << 20
	OpenFiles       = 256
	maxEnvironment  = 256
	maxEnvBytes     = 128 << 10
)

// Static is the language of a statically linked program: its code is the
// program.
const Static = "static"
