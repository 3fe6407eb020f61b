package holdfast

import (
	"errors"
	"log/slog"
	"strings"
	"time"
)

// Kind is an error kind: the document's exception name (D14c). The empty kind
// is an internal error, of which people outside see only that.
type Kind string

// The kinds of spec 003 section 1, and those the decisions add.
const (
	// The machine (1.1).
	KindReentry    Kind = "ReentrantEntryError"
	KindTransition Kind = "StateViolationError"
	KindCanceled   Kind = "CancelledError"
	KindTasks      Kind = "PendingTaskError"
	KindHalted     Kind = "HaltedError"
	KindPaused     Kind = "AgentPausedError"
	// KindGoalsPaused is of goals alone: everything else goes on (D47).
	KindGoalsPaused Kind = "GoalsPausedError"
	// KindChainEnded and KindTenantBlocked are what exceeding a budget brings
	// (D41): that chain is refused for ever, that tenant until the window ends.
	KindChainEnded    Kind = "ChainEndedError"
	KindTenantBlocked Kind = "TenantBlockedError"
	KindAbandoned     Kind = "AbandonedError"
	KindUnknown       Kind = "UnknownOutcomeError"
	KindNoBoundary    Kind = "BoundaryNotFoundError"
	KindOperation     Kind = "OperationError"
	// K1.
	KindSchemaNotFound  Kind = "SchemaNotFoundError"
	KindSchemaParse     Kind = "SchemaParseError"
	KindValidation      Kind = "ValidationError"
	KindPayloadTooLarge Kind = "PayloadTooLargeError"
	// K2.
	KindJWT                Kind = "JWTError"
	KindJWTDecode          Kind = "JWTDecodeError"
	KindExpiredToken       Kind = "ExpiredTokenError"
	KindRevokedToken       Kind = "RevokedTokenError"
	KindPermission         Kind = "PermissionError"
	KindRoleNotFound       Kind = "RoleNotFoundError"
	KindRevocationCache    Kind = "RevocationCacheError"
	KindPermissionRegistry Kind = "PermissionRegistryError"
	// K3.
	KindBudgetNotFound Kind = "BudgetNotFoundError"
	KindBounds         Kind = "BoundsExceeded"
	KindUsageTracking  Kind = "UsageTrackingError"
	KindInvalidBudget  Kind = "InvalidBudgetError"
	KindOverflow       Kind = "OverflowError"
	// K4.
	KindTenantContext Kind = "TenantContextError"
	// K5.
	KindCanonicalize Kind = "CanonicalizeError"
	KindMismatch     Kind = "IdempotencyMismatchError"
	// K6.
	KindWALWrite  Kind = "WALWriteError"
	KindRedaction Kind = "RedactionError"
	KindWALFormat Kind = "WALFormatError"
	// K7.
	KindConfidence      Kind = "ConfidenceError"
	KindApprovalTimeout Kind = "ApprovalTimeout"
	KindRejected        Kind = "OperationRejected"
	KindApprovalChannel Kind = "ApprovalChannelError"
	KindProhibited      Kind = "ProhibitedError"
	KindSelfApproval    Kind = "SelfApprovalError"
	KindApprovalUsed    Kind = "ApprovalUsedError"
	// K8.
	KindPredicateNotFound Kind = "PredicateNotFoundError"
	KindPredicateParse    Kind = "PredicateParseError"
	KindEval              Kind = "EvalError"
	KindEvalFailure       Kind = "EvalGateFailure"
	KindRule              Kind = "ConstitutionError"
	// The sandbox (2.1, 2.2).
	KindProtocol  Kind = "ProtocolError"
	KindLanguage  Kind = "UnsupportedLanguageError"
	KindCodeSize  Kind = "CodeSizeError"
	KindLimit     Kind = "InvalidLimitError"
	KindSpawn     Kind = "SpawnError"
	KindNamespace Kind = "NamespaceError"
	KindMount     Kind = "MountError"
	KindCgroup    Kind = "CgroupError"
	KindSeccomp   Kind = "SeccompError"
	KindEscape    Kind = "SandboxEscapeError"
	// Egress (3.1). MisdirectedError is a request whose names for the server
	// do not agree (D25a).
	KindDomainBlocked  Kind = "DomainBlockedError"
	KindRateLimit      Kind = "RateLimitError"
	KindBudgetExceeded Kind = "BudgetExceededError"
	KindLogging        Kind = "LoggingError"
	KindForward        Kind = "ForwardError"
	KindMisdirected    Kind = "MisdirectedError"
	// Shared by several gates.
	KindTimeout Kind = "TimeoutError"
	KindValue   Kind = "ValueError"
	KindType    Kind = "TypeError"
	// Everything else.
	KindInternal Kind = "InternalError"
	KindUsage    Kind = "UsageError"
	KindNotFound Kind = "NotFoundError"
	KindConflict Kind = "ConflictError"
	// KindHeld is a hold where a caller without a channel for it needs an
	// error.
	KindHeld Kind = "HeldForReview"
)

// Error is an error as a letter to a person: what happened, and what to do.
// Why is lower case without a full stop and holds nothing secret; Err is the
// inner cause, for the log only.
type Error struct {
	Kind     Kind
	Gate     Gate
	Rule     string
	Why      string
	Hint     string
	Crossing string
	// After is how long until the same may go well; 0 where nobody knows.
	After time.Duration
	Err   error
	// PutBack reports that Why also has the text of Outcome.PutBack.
	PutBack bool
}

// Error returns "kind: why". The hint and the cause are not part of it.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	b.WriteString(": ")
	b.WriteString(e.Why)
	return b.String()
}

// Unwrap returns the inner cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrNotStarted is in the chain of a hand's error where what it was asked to do
// provably never began: nothing has left this machine. The kernel then gives
// back what was reserved (D9).
var ErrNotStarted = errors.New("nothing was begun")

// KindOf returns the kind of the first *Error in err's chain, KindInternal
// for any other error, and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) && e.Kind != "" {
		return e.Kind
	}
	return KindInternal
}

// LevelCritical is the document's CRITICAL, above slog.LevelError.
const LevelCritical = slog.LevelError + 4

// Signal is one row of the document's error tables: how loud a kind is when a
// gate raises it, and the trace event it leaves.
type Signal struct {
	// Gate is GateHalt in the rows of what no gate but the act itself raises.
	Gate  Gate
	Kind  Kind
	Level slog.Level
	// Event is the trace event's name; every row leaves one, and where the
	// document names none it is derived from gate and kind.
	Event string
}

// Signals returns the table of spec 003 sections 1.2 to 1.9 and 3.1 (D14c): the
// rows that the document spells out, then those it leaves to the reader. The
// slice is the caller's.
func Signals() []Signal {
	const e, w, i = slog.LevelError, slog.LevelWarn, slog.LevelInfo
	return []Signal{
		{K1, KindSchemaNotFound, e, "trace.k1_schema_missing"},
		{K1, KindSchemaParse, e, "trace.k1_schema_parse"},
		{K1, KindValidation, w, "trace.k1_invalid_payload"},
		{K1, KindTimeout, e, "trace.k1_timeout"},
		{K1, KindPayloadTooLarge, w, "trace.k1_payload_too_large"},
		{K2, KindJWT, w, "trace.k2_jwt_invalid"},
		{K2, KindExpiredToken, i, "trace.k2_token_expired"},
		{K2, KindRevokedToken, w, "trace.k2_token_revoked"},
		{K2, KindPermission, w, "trace.k2_unauthorized"},
		{K2, KindRoleNotFound, e, "trace.k2_role_not_found"},
		{K2, KindJWTDecode, e, "trace.k2_jwt_malformed"},
		{K2, KindRevocationCache, e, "trace.k2_revocation_unavailable"},
		{K2, KindPermissionRegistry, e, "trace.k2_registry_unavailable"},
		{K3, KindBudgetNotFound, e, "trace.k3_budget_missing"},
		{K3, KindBounds, w, "trace.k3_bounds_exceeded"},
		{K3, KindUsageTracking, e, "trace.k3_usage_unavailable"},
		{K3, KindInvalidBudget, e, "trace.k3_budget_invalid"},
		{K3, KindOverflow, e, "trace.k3_overflow"},
		{K4, KindTenantContext, e, "trace.k4_tenant_missing"},
		{K4, KindValue, w, "trace.k4_correlation_invalid"},
		{K5, KindValue, w, "trace.k5_not_json"},
		{K5, KindCanonicalize, e, "trace.k5_canonicalize"},
		{K5, KindMismatch, w, "trace.k5_mismatch"},
		{K6, KindWALWrite, e, "trace.k6_wal_write_failed"},
		{K6, KindRedaction, e, "trace.k6_redaction_failed"},
		{K6, KindWALFormat, e, "trace.k6_wal_format"},
		{K7, KindConfidence, e, "trace.k7_confidence_failed"},
		{K7, KindApprovalTimeout, w, "trace.k7_approval_timeout"},
		{K7, KindRejected, i, "trace.k7_human_rejected"},
		{K7, KindApprovalChannel, e, "trace.k7_channel_unavailable"},
		{K7, KindProhibited, w, "trace.k7_prohibited"},
		{K8, KindPredicateNotFound, e, "trace.k8_predicate_missing"},
		{K8, KindPredicateParse, e, "trace.k8_predicate_parse"},
		{K8, KindEval, e, "trace.k8_eval_error"},
		{K8, KindEvalFailure, i, "trace.k8_eval_gate_failure"},
		{K8, KindTimeout, w, "trace.k8_timeout"},
		{K8, KindRule, w, "trace.k8_rule"},
		{K2, KindDomainBlocked, w, "trace.egress_domain_blocked"},
		{K2, KindMisdirected, w, "trace.egress_misdirected"},
		{K3, KindRateLimit, i, "trace.egress_rate_limited"},
		{K3, KindBudgetExceeded, w, "trace.egress_budget_exceeded"},
		{K6, KindLogging, e, "trace.egress_logging_failed"},
		{GateHalt, KindForward, w, "trace.egress_forward_error"},
		{GateHalt, KindTimeout, w, "trace.act_timeout"},
	}
}

// SignalOf returns the row for a gate's kind. A pair that is not in the table
// is an ERROR with an event named after both, so that nothing is silent.
func SignalOf(g Gate, k Kind) Signal {
	for _, s := range Signals() {
		if s.Gate == g && s.Kind == k {
			return s
		}
	}
	return Signal{g, k, slog.LevelError, "trace." + strings.ToLower(g.String()) + "_" + strings.ToLower(string(k))}
}
