package redact

import (
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/memory"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/stream"
)

// What an engine gives and takes.
type (
	Finding = finding.Finding
	Result  = finding.Result
	Masks   = mask.Masks
	Memory  = memory.Memory
	Stream  = stream.Stream
	Found   = stream.Found
	Class   = rule.Class
)

// What BodyOf searches for.
const (
	AnyClass     = rule.AnyClass
	OnlySecrets  = rule.OnlySecrets
	OnlyPersonal = rule.OnlyPersonal
)

// The styles of masks.
const (
	Ledger     = mask.Ledger
	Egress     = mask.Egress
	Pseudonyms = mask.Pseudonyms
)
