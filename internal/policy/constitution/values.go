package constitution

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// tree gives JSON trees to CEL without copying them: maps and lists are
// wrapped and their members are converted when a rule reads them.
type tree struct{}

// NativeToValue implements types.Adapter. Anything that is not part of a JSON
// tree or one of the declared facts is an error value, which denies.
func (tree) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case nil:
		return types.NullValue
	case bool:
		return types.Bool(v)
	case string:
		return types.String(v)
	case json.Number:
		return number(v)
	case map[string]any:
		return types.NewStringInterfaceMap(tree{}, v)
	case []any:
		return types.NewDynamicList(tree{}, v)
	case ref.Val:
		return v
	case []string:
		return types.NewStringList(tree{}, v)
	case int:
		return types.Int(v)
	case int64:
		return types.Int(v)
	case float64:
		return types.Double(v)
	case time.Time:
		return types.Timestamp{Time: v}
	case []ref.Val:
		return types.NewRefValList(tree{}, v)
	case map[ref.Val]ref.Val:
		return types.NewRefValMap(tree{}, v)
	}
	return types.WrapErr(&failure.Failure{Kind: failure.ErrType, Text: fmt.Sprintf("a Go %T", v)})
}

// number makes an int of an integer written without fraction and exponent
// that fits 64 bits, and a double of every other number. A number that
// overflows a double is an error, not infinity (D10).
func number(n json.Number) ref.Val {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return types.Int(i)
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return types.WrapErr(&failure.Failure{Kind: failure.ErrEval, Text: "a number is out of range"})
	}
	return types.Double(f)
}
