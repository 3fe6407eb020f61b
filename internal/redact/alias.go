package redact

import (
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/guess"
	"github.com/holdfast-dev/holdfast/internal/redact/memory"
	"github.com/holdfast-dev/holdfast/internal/redact/placeholder"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/stream"
)

// What an engine gives and takes.
type (
	Finding  = finding.Finding
	Result   = finding.Result
	Masks    = placeholder.Masks
	Probable = guess.Probable
	Memory   = memory.Memory
	Stream   = stream.Stream
	Found    = stream.Found
	Kinds    = rule.Kinds
)

// What BodyOf searches for.
const (
	AllKinds     = rule.AllKinds
	OnlySecrets  = rule.OnlySecrets
	OnlyPersonal = rule.OnlyPersonal
)

// The styles of masks.
const (
	Ledger     = placeholder.Ledger
	Egress     = placeholder.Egress
	Pseudonyms = placeholder.Pseudonyms
)

// The kinds of what is probable.
const (
	Secrets    = guess.Secrets
	Phones     = guess.Phones
	Names      = guess.Names
	Addresses  = guess.Addresses
	Everything = guess.Everything
)
