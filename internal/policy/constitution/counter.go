package constitution

import (
	"encoding/json"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// counter counts the calls that CEL would charge one unit for whatever their
// size: calls on payload members, whose overload is not known before they are
// made, and comparisons of nested values.
type counter struct{}

// CallCost implements cost.ActualCostEstimator. Nil leaves the call to CEL.
func (counter) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if n, ours := pastUnits(function); ours {
		return &n
	}
	var units uint64
	switch {
	case len(args) == 2 && (function == operators.Equals || function == operators.NotEquals):
		units = min(weight(args[0]), weight(args[1]))
	case len(args) == 2 && function == operators.In:
		units = weight(args[1])
	case overload != "":
		return nil
	case function == operators.Add:
		units = weight(result)
	default:
		for _, a := range args {
			units += shallow(a)
		}
	}
	units++
	return &units
}

// shallow is the size of a value without its members' sizes: a unit for an
// element, a tenth for a byte of text.
func shallow(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 10
	case types.Bytes:
		return uint64(len(v)) / 10
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok && n > 0 {
			return uint64(n)
		}
	}
	return 0
}

// weight is the size of a value with all that it holds. It stops counting
// above MaxRuleCost.
func weight(v ref.Val) uint64 {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		if n := heavy(v.Value(), 0); n > 0 {
			return n
		}
	}
	return shallow(v)
}

// heavy weighs a JSON tree, and a list that was made while judging. Zero means
// that it is neither.
func heavy(v any, sum uint64) uint64 {
	if sum > MaxRuleCost {
		return sum
	}
	switch v := v.(type) {
	case string:
		return sum + 1 + uint64(len(v))/10
	case json.Number:
		return sum + 1
	case map[string]any:
		sum++
		for k, e := range v {
			if sum = heavy(e, sum+1+uint64(len(k))/10); sum > MaxRuleCost {
				return sum
			}
		}
	case []any:
		sum++
		for _, e := range v {
			if sum = heavy(e, sum+1); sum > MaxRuleCost {
				return sum
			}
		}
	case []ref.Val:
		sum++
		for _, e := range v {
			if sum += 1 + weight(e); sum > MaxRuleCost {
				return sum
			}
		}
	}
	return sum
}
