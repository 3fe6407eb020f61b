package executor

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// domain names whose reasons they are in an ErrorInfo.
const domain = "holdfast"

// refusal is err as a status, with its kind, gate, rule, hint, crossing and
// review as ErrorInfo. Of an inner error nothing is said.
func refusal(err error, out *holdfast.Outcome) error {
	why, hint := letter(err)
	kind := holdfast.KindOf(err)
	st := status.New(codes.Code(errorcode.Lookup(kind).GRPC), text(why))
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
