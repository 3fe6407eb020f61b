// Package errorcode has the table from the kind of an error to the codes that the command
// and the frontends answer with. It is next to holdfast.Signals, the table from gate and
// kind to level and trace event (D14c).
//
// Four answers do not follow from the kind alone, and are made where they are given:
//   - the command exits with 2 for a mistake in its arguments, and with 1 for a UsageError
//     of the daemon;
//   - what the gates said of a request exits with 3 for a denial of any kind but
//     HaltedError (D36);
//   - the proxy answers 503 if it has no capacity, and 401 to a client without a credential;
//   - a stream of a model that has begun ends with the error type of 403.
package errorcode

import (
	"cmp"

	"github.com/holdfast-dev/holdfast"
)

// Codes are the answers to one kind of error.
type Codes struct {
	Exit int    // exit code of the command (D36)
	GRPC uint32 // status of the code executor, as google.golang.org/grpc/codes numbers it
	RPC  int    // JSON-RPC error code of the MCP gateway

	// HTTP statuses.
	API    int // of the API for commands
	Pages  int // of the pages for people
	MCP    int // of the MCP gateway, if it does not let a client in
	Egress int // of the proxy and the model gateway (D25)
}

// Refused is the JSON-RPC error code of all that Holdfast itself refuses.
const Refused = -32000

// others are the codes of a kind that the table does not list, and of an answer that a row
// of the table leaves out.
var others = Codes{Exit: 1, GRPC: 13, RPC: Refused, API: 500, Pages: 500, MCP: 403, Egress: 403}

var table = map[holdfast.Kind]Codes{
	// The machine.
	holdfast.KindCanceled:      {GRPC: 1},
	holdfast.KindHalted:        {Exit: 5, GRPC: 9, API: 503, Egress: 503},
	holdfast.KindPaused:        {Exit: 3, GRPC: 9, API: 403},
	holdfast.KindGoalsPaused:   {Exit: 3, API: 403},
	holdfast.KindChainEnded:    {Exit: 3, API: 403},
	holdfast.KindTenantBlocked: {Exit: 3, API: 403},
	holdfast.KindNoBoundary:    {GRPC: 7},
	holdfast.KindOperation:     {Egress: 502},
	// K1.
	holdfast.KindValidation:      {GRPC: 3, API: 400, Egress: 400},
	holdfast.KindPayloadTooLarge: {GRPC: 3, Egress: 413},
	// K2.
	holdfast.KindJWT:             {GRPC: 16, MCP: 401},
	holdfast.KindJWTDecode:       {GRPC: 16, MCP: 401},
	holdfast.KindExpiredToken:    {GRPC: 16, MCP: 401},
	holdfast.KindRevokedToken:    {GRPC: 16, MCP: 401},
	holdfast.KindPermission:      {Exit: 3, GRPC: 7, API: 403},
	holdfast.KindRoleNotFound:    {GRPC: 7},
	holdfast.KindRevocationCache: {GRPC: 14},
	// K3.
	holdfast.KindBudgetNotFound: {Egress: 402},
	holdfast.KindBounds:         {GRPC: 8, Egress: 429},
	holdfast.KindUsageTracking:  {GRPC: 14, Egress: 500},
	// K4 and K5.
	holdfast.KindTenantContext: {GRPC: 16, MCP: 401},
	holdfast.KindCanonicalize:  {Egress: 400},
	holdfast.KindMismatch:      {GRPC: 6},
	// K6.
	holdfast.KindWALWrite:  {GRPC: 14, API: 503, Egress: 500},
	holdfast.KindRedaction: {Egress: 500},
	holdfast.KindWALFormat: {Egress: 500},
	// K7.
	holdfast.KindApprovalTimeout: {GRPC: 9},
	holdfast.KindRejected:        {GRPC: 7},
	holdfast.KindProhibited:      {Exit: 3, GRPC: 7},
	holdfast.KindSelfApproval:    {Exit: 3, API: 403},
	holdfast.KindApprovalUsed:    {API: 409},
	// K8.
	holdfast.KindEvalFailure: {GRPC: 7},
	holdfast.KindRule:        {GRPC: 7},
	// The sandbox.
	holdfast.KindProtocol: {GRPC: 3, API: 400},
	holdfast.KindLanguage: {GRPC: 3, API: 400},
	holdfast.KindCodeSize: {GRPC: 3, API: 400},
	holdfast.KindLimit:    {GRPC: 3, API: 400},
	holdfast.KindEscape:   {GRPC: 7},
	// Egress.
	holdfast.KindRateLimit:      {Egress: 429},
	holdfast.KindBudgetExceeded: {Egress: 402},
	holdfast.KindLogging:        {Egress: 500},
	holdfast.KindForward:        {Egress: 502},
	holdfast.KindMisdirected:    {Egress: 421},
	// Shared by several gates, and everything else.
	holdfast.KindTimeout:  {GRPC: 8, Egress: 504},
	holdfast.KindValue:    {GRPC: 3, API: 400, Egress: 400},
	holdfast.KindType:     {GRPC: 3},
	holdfast.KindInternal: {Egress: 500},
	holdfast.KindUsage:    {GRPC: 3, API: 400, Pages: 400},
	holdfast.KindNotFound: {API: 404, Pages: 404, Egress: 404},
	holdfast.KindConflict: {GRPC: 6, API: 409},
	holdfast.KindHeld:     {Exit: 4, GRPC: 9, Egress: 428},
}

// Lookup returns the codes of a kind.
func Lookup(kind holdfast.Kind) Codes {
	row := table[kind]
	return Codes{
		Exit: cmp.Or(row.Exit, others.Exit), GRPC: cmp.Or(row.GRPC, others.GRPC), RPC: cmp.Or(row.RPC, others.RPC),
		API: cmp.Or(row.API, others.API), Pages: cmp.Or(row.Pages, others.Pages),
		MCP: cmp.Or(row.MCP, others.MCP), Egress: cmp.Or(row.Egress, others.Egress),
	}
}

// ProviderTypes are the error types by which the client libraries of model providers know
// an HTTP status.
type ProviderTypes struct {
	Anthropic string
	OpenAI    string
}

// LookupProvider returns the error types of an HTTP status, which for a kind is its Egress.
func LookupProvider(status int) ProviderTypes {
	switch status {
	case 401:
		return ProviderTypes{"authentication_error", "authentication_error"}
	case 402:
		return ProviderTypes{"billing_error", "insufficient_quota"}
	case 403, 421, 428:
		return ProviderTypes{"permission_error", "permission_error"}
	case 404:
		return ProviderTypes{"not_found_error", "invalid_request_error"}
	case 413:
		return ProviderTypes{"request_too_large", "invalid_request_error"}
	case 429:
		return ProviderTypes{"rate_limit_error", "rate_limit_exceeded"}
	case 504:
		return ProviderTypes{"timeout_error", "server_error"}
	}
	if status >= 500 {
		return ProviderTypes{"api_error", "server_error"}
	}
	return ProviderTypes{"invalid_request_error", "invalid_request_error"}
}
