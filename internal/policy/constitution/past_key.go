package constitution

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// keyOf hashes a value's canonical form: as JSON, with sorted keys, in which a
// number has one form whatever its type, and what JSON has no form for (times,
// bytes, types) a letter before its text. Values that CEL holds equal have one
// form.
func keyOf(v ref.Val) (string, error) {
	k := keyWriter{}
	if err := k.value(v, 0); err != nil {
		return "", err
	}
	sum := sha256.Sum256(k.out)
	return string(sum[:]), nil
}

type keyWriter struct{ out []byte }

func (k *keyWriter) put(s string) error {
	if len(k.out)+len(s) > MaxPastKey {
		return &failure.Failure{Kind: failure.ErrEval, Text: "the value is larger than " +
			strconv.Itoa(MaxPastKey) + " bytes"}
	}
	k.out = append(k.out, s...)
	return nil
}

func (k *keyWriter) value(v ref.Val, depth int) error {
	if depth > maxNesting {
		return &failure.Failure{Kind: failure.ErrEval, Text: "the value is nested too deeply"}
	}
	switch v := v.(type) {
	case types.Null:
		return k.put("null")
	case types.Bool:
		return k.put(strconv.FormatBool(bool(v)))
	case types.String:
		return k.text(string(v))
	case types.Bytes:
		if len(v) > MaxPastKey {
			return k.put(strings.Repeat(" ", MaxPastKey+1))
		}
		return k.put(`b"` + hex.EncodeToString(v) + `"`)
	case types.Int:
		return k.put(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		return k.put(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		return k.double(float64(v))
	case types.Timestamp:
		return k.put(`t"` + v.Time.UTC().Format(time.RFC3339Nano) + `"`)
	case types.Duration:
		return k.put(`d"` + strconv.FormatInt(int64(v.Duration), 10) + `"`)
	case traits.Mapper:
		return k.object(v, depth)
	case traits.Lister:
		return k.list(v, depth)
	case *types.Type:
		return k.put(`y"` + v.TypeName() + `"`)
	}
	return &failure.Failure{Kind: failure.ErrEval, Text: "the value cannot be compared"}
}

// text quotes a string. One that is too long is not quoted first.
func (k *keyWriter) text(s string) error {
	if len(s) > MaxPastKey {
		return k.put(s)
	}
	return k.put(strconv.Quote(s))
}

// double writes a whole number as an integer is written. Beyond 2^53 a double
// may stand for many numbers of a payload, which must not be taken for one.
func (k *keyWriter) double(f float64) error {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return &failure.Failure{Kind: failure.ErrEval, Text: "the value is not a number"}
	case f == 0:
		return k.put("0")
	case math.Abs(f) >= 1<<53:
		return &failure.Failure{Kind: failure.ErrEval, Text: "the number is too large to be told from its neighbours"}
	case f == math.Trunc(f):
		return k.put(strconv.FormatFloat(f, 'f', -1, 64))
	}
	return k.put(strconv.FormatFloat(f, 'e', -1, 64))
}

func (k *keyWriter) list(l traits.Lister, depth int) error {
	if err := k.put("["); err != nil {
		return err
	}
	for it, first := l.Iterator(), true; it.HasNext() == types.True; first = false {
		if !first {
			if err := k.put(","); err != nil {
				return err
			}
		}
		if err := k.value(it.Next(), depth+1); err != nil {
			return err
		}
	}
	return k.put("]")
}

// object writes members by their keys' canonical forms.
func (k *keyWriter) object(m traits.Mapper, depth int) error {
	if n, ok := m.Size().(types.Int); !ok || n > MaxPastKey/4 {
		return k.put(strings.Repeat(" ", MaxPastKey+1))
	}
	members := map[string]ref.Val{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		w := keyWriter{}
		if err := w.value(key, depth+1); err != nil {
			return err
		}
		members[string(w.out)] = m.Get(key)
	}
	keys := make([]string, 0, len(members))
	for key := range members {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	if err := k.put("{"); err != nil {
		return err
	}
	for i, key := range keys {
		between := ","
		if i == 0 {
			between = ""
		}
		if err := k.put(between + key + ":"); err != nil {
			return err
		}
		if err := k.value(members[key], depth+1); err != nil {
			return err
		}
	}
	return k.put("}")
}

// numberAt finds a number of a payload by the names that lead to it.
func numberAt(payload any, path []string) (json.Number, bool) {
	for _, name := range path {
		o, ok := payload.(map[string]any)
		if !ok {
			return "", false
		}
		if payload, ok = o[name]; !ok {
			return "", false
		}
	}
	n, ok := payload.(json.Number)
	return n, ok
}

// millionths reads an amount. A double counts if its shortest form has at most
// six decimals and so few digits that no other such number is meant.
func millionths(v ref.Val) (int64, error) {
	switch v := v.(type) {
	case types.Int:
		return textMillionths(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		return textMillionths(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		f := float64(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return 0, &failure.Failure{Kind: failure.ErrEval, Text: "the amount is not a number"}
		}
		if a := math.Abs(f); a >= 1<<53 || a >= 1e9 && f != math.Trunc(f) {
			return 0, &failure.Failure{Kind: failure.ErrEval, Text: "the amount is too large to be exact"}
		}
		return textMillionths(strconv.FormatFloat(f, 'f', -1, 64))
	}
	return 0, &failure.Failure{Kind: failure.ErrEval, Text: "the amount is not a number"}
}

// textMillionths reads a JSON number exactly.
func textMillionths(s string) (int64, error) {
	if len(s) > MaxPastKey {
		return 0, &failure.Failure{Kind: failure.ErrEval, Text: "the amount has too many digits"}
	}
	rest, negative := strings.CutPrefix(s, "-")
	mantissa, power, scaled := strings.Cut(strings.ToLower(rest), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent := -len(fraction)
	if trimmed := strings.TrimRight(digits, "0"); trimmed != digits {
		exponent += len(digits) - len(trimmed)
		digits = trimmed
	}
	for i := 0; i < len(digits); i++ {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, &failure.Failure{Kind: failure.ErrEval, Text: "the amount is not a number"}
		}
	}
	if whole+fraction == "" {
		return 0, &failure.Failure{Kind: failure.ErrEval, Text: "the amount is not a number"}
	}
	if digits == "" {
		return 0, nil
	}
	if scaled {
		n, err := strconv.Atoi(power)
		if err != nil || n > 1_000_000 || n < -1_000_000 {
			return 0, &failure.Failure{Kind: failure.ErrEval, Text: "the amount is too large, or has too many decimals"}
		}
		exponent += n
	}
	if exponent < -6 {
		return 0, &failure.Failure{Kind: failure.ErrEval, Text: "the amount has more than six decimals"}
	}
	if len(digits)+exponent+6 > 19 {
		return 0, &failure.Failure{Kind: failure.ErrEval, Text: "the amount is too large"}
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", exponent+6), 10, 64)
	if err != nil {
		return 0, &failure.Failure{Kind: failure.ErrEval, Text: "the amount is too large"}
	}
	if negative {
		n = -n
	}
	return n, nil
}
