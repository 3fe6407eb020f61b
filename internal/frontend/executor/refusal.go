package executor

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-dev/holdfast"
)

// domain names whose reasons they are in an ErrorInfo.
const domain = "holdfast"

// refusal is err as a status, with its kind, gate, rule, hint, crossing and
// review as ErrorInfo. Of an inner error nothing is said.
func refusal(err error, out *holdfast.Outcome) error {
	why, hint := letter(err)
	kind := holdfast.KindOf(err)
	st := status.New(codeOf(kind), text(why))
	info := &errdetails.ErrorInfo{Reason: string(kind), Domain: domain, Metadata: map[string]string{}}
	set := func(name, value string) {
		if value != "" {
			info.Metadata[name] = text(value)
		}
	}
	set("hint", hint)
	var e *holdfast.Error
	if errors.As(err, &e) {
		set("rule", e.Rule)
		set("crossing", e.Crossing)
		if e.Gate != 0 {
			set("gate", e.Gate.String())
		}
	}
	if out != nil {
		set("crossing", out.Crossing)
		set("review", out.Review)
	}
	if with, bad := st.WithDetails(info); bad == nil {
		st = with
	}
	return st.Err()
}

func letter(err error) (why, hint string) {
	var e *holdfast.Error
	if errors.As(err, &e) {
		return e.Why, e.Hint
	}
	return "an internal error, which the log has", ""
}

// codeOf maps an error kind to gRPC, in one place. What may be tried again is
// Unavailable or ResourceExhausted; what a person must change first is not.
func codeOf(k holdfast.Kind) codes.Code {
	switch k {
	case holdfast.KindProtocol, holdfast.KindLanguage, holdfast.KindCodeSize, holdfast.KindLimit,
		holdfast.KindUsage, holdfast.KindValue, holdfast.KindType, holdfast.KindValidation, holdfast.KindPayloadTooLarge:
		return codes.InvalidArgument
	case holdfast.KindJWT, holdfast.KindJWTDecode, holdfast.KindExpiredToken, holdfast.KindRevokedToken, holdfast.KindTenantContext:
		return codes.Unauthenticated
	case holdfast.KindPermission, holdfast.KindRoleNotFound, holdfast.KindProhibited, holdfast.KindRejected, holdfast.KindNoBoundary,
		holdfast.KindEvalFailure, holdfast.KindRule, holdfast.KindEscape:
		return codes.PermissionDenied
	case holdfast.KindHeld, holdfast.KindHalted, holdfast.KindPaused, holdfast.KindApprovalTimeout:
		return codes.FailedPrecondition
	case holdfast.KindBounds, holdfast.KindTimeout:
		return codes.ResourceExhausted
	case holdfast.KindConflict, holdfast.KindMismatch:
		return codes.AlreadyExists
	case holdfast.KindCanceled:
		return codes.Canceled
	case holdfast.KindWALWrite, holdfast.KindRevocationCache, holdfast.KindUsageTracking:
		return codes.Unavailable
	}
	return codes.Internal
}
