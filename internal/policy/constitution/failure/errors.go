package failure

import (
	"context"
	"errors"
	"strings"

	"cel.dev/cel-go/interpreter"
)

// How a rule, a predicate or a score can fail. A failure denies (D3); which of
// these it was decides the error kind that the kernel records.
var (
	// ErrCost says that the work was more than MaxRuleCost or MaxJudgeCost.
	ErrCost = errors.New("more work than a rule may do")
	// ErrTimeout says that the context ended before an answer was found.
	ErrTimeout = errors.New("no answer in time")
	// ErrEval says that the expression or check itself failed.
	ErrEval = errors.New("could not be evaluated")
	// ErrType says that a value cannot be given to a rule at all: it is no
	// JSON tree, or nested deeper than a tree can honestly be.
	ErrType = errors.New("not a JSON tree")
	// ErrValue says that an expression gave a score that is no number from 0 to 1,
	// an amount that is no whole number, or a name that is no text.
	ErrValue = errors.New("its value cannot be taken for what is asked")
	// ErrFact says that a fact which a rule names is not there: it was not fetched,
	// or could not be. It comes with ErrEval.
	ErrFact = errors.New("a fact cannot be told")
	// ErrHistory says that a past function has no answer: there is no history, it
	// is not ready, or it cannot be read. It comes with ErrEval.
	ErrHistory = errors.New("the past cannot be told")
)

// Failure is a sentinel with a text that is fit for people (nothing in it was
// taken from a payload) and a cause that is for the log only.
type Failure struct {
	Kind  error
	Text  string
	Cause error
}

func (f *Failure) Error() string {
	if f.Text == "" {
		return f.Kind.Error()
	}
	return f.Kind.Error() + ": " + f.Text
}

func (f *Failure) Unwrap() []error {
	if f.Cause == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.Cause}
}

// FromEvaluation sorts an error of the evaluator into one of the sentinels. source is
// the expression: a key is named to people only if the rule's author wrote it,
// because every other key is the agent's text.
func FromEvaluation(ctx context.Context, err error, source string) error {
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause != interpreter.ContextCancelled,
		errors.Is(err, ErrCost):
		return &Failure{ErrCost, "", err}
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &Failure{ErrTimeout, "", err}
	case errors.Is(err, ErrType):
		return &Failure{ErrType, "", err}
	}
	var own *Failure
	if errors.As(err, &own) && own.Kind == ErrEval && own.Text != "" {
		return own
	}
	return readCEL(err, err.Error(), source)
}

// missingKey is the cause of a failure to read a key that is not there.
type missingKey struct{ error }

func (m missingKey) Unwrap() error { return m.error }

// readCEL makes the failure for an error of CEL. CEL's errors have no types: text is what
// it says.
func readCEL(err error, text, source string) error {
	key, missing := strings.CutPrefix(text, "no such key: ")
	switch {
	case !missing:
		return &Failure{ErrEval, evalText(text), err}
	case key != "" && strings.Contains(source, key):
		return &Failure{ErrEval, "there is no key " + key, missingKey{err}}
	}
	return &Failure{ErrEval, "a key that the rule reads is missing", missingKey{err}}
}

func evalText(text string) string {
	switch {
	case strings.HasPrefix(text, "no such overload"):
		return "a value is of another type than the rule expects"
	case strings.Contains(text, "out of bounds"), strings.Contains(text, "out of range"):
		return "an index or number is out of range"
	case strings.Contains(text, "by zero"), strings.Contains(text, "overflow"):
		return "arithmetic failed (" + arithmetic(text) + ")"
	}
	return ""
}

func arithmetic(text string) string {
	if strings.Contains(text, "by zero") {
		return "division by zero"
	}
	return "overflow"
}

// HintFor tells the rule's author what to do about a failure.
func HintFor(err error) string {
	switch {
	case errors.Is(err, ErrCost):
		return "make the rule cheaper, or the request smaller"
	case errors.Is(err, ErrTimeout):
		return "ask again; if it stays so, make the rules cheaper"
	case errors.Is(err, ErrFact):
		return "`holdfast rules explain` fetches facts as the daemon does; `rules: facts:` of the configuration declares them"
	case errors.Is(err, ErrHistory):
		return "`holdfast status` says which rules cannot ask the past yet, and until when"
	case errors.As(err, new(missingKey)):
		return "a rule may test with has() whether a key is there"
	}
	return ""
}
