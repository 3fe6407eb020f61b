// Package health says how a day went: facts of the ledger in, the Safety Net's
// daily report out (spec 001, "Daily Health Report"; D41b). It is pure: whoever
// reads the ledger tells a Day of each crossing and each event, and the same
// facts make the same report whenever it is asked for.
//
// What is not known is shown as unknown and makes the report YELLOW; it is never
// shown as zero. What is switched off is not configured, which is no fault.
package health

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Level is the health of a day (D41b). The zero Level is the worst.
type Level uint8

// The levels.
const (
	Red Level = iota
	Yellow
	Green
)

// String is the document's word.
func (l Level) String() string {
	switch l {
	case Yellow:
		return "YELLOW"
	case Green:
		return "GREEN"
	}
	return "RED"
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(b []byte) error {
	for _, one := range [...]Level{Red, Yellow, Green} {
		if one.String() == string(b) {
			*l = one
			return nil
		}
	}
	return fmt.Errorf("no level of health: %q", b)
}

// Known says whether there is a figure.
type Known uint8

// The states of a figure. The zero one is that nobody knows.
const (
	Unknown Known = iota
	Is            // it is known
	Off           // what would be counted is not configured, or was not asked for
)

// Count is a number of something, or why there is none. Amounts of money are in
// millionths of a dollar. In JSON it is a number, null where it is unknown, and
// "not configured" where that is so.
type Count struct {
	N     int64
	State Known
}

func of(n int64) Count { return Count{N: n, State: Is} }

// notConfigured is how a figure is written that is switched off.
const notConfigured = "not configured"

// String is the number, "unknown" or "not configured".
func (c Count) String() string {
	switch c.State {
	case Is:
		return strconv.FormatInt(c.N, 10)
	case Off:
		return notConfigured
	}
	return "unknown"
}

// MarshalJSON implements json.Marshaler.
func (c Count) MarshalJSON() ([]byte, error) {
	switch c.State {
	case Is:
		return strconv.AppendInt(nil, c.N, 10), nil
	case Off:
		return json.Marshal(notConfigured)
	}
	return []byte("null"), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Count) UnmarshalJSON(b []byte) error {
	*c = Count{}
	switch string(b) {
	case "null":
		return nil
	case strconv.Quote(notConfigured):
		c.State = Off
		return nil
	}
	c.State = Is
	return json.Unmarshal(b, &c.N)
}

// plus is the sum of two figures: unknown where either is, and off only where both
// are.
func (c Count) plus(other Count) Count {
	switch {
	case c.State == Off:
		return other
	case other.State == Off:
		return c
	case c.State == Unknown || other.State == Unknown:
		return Count{}
	}
	return of(sum(c.N, other.N))
}

// sum adds, and stops at the ends of what there is.
func sum(a, b int64) int64 {
	switch s := a + b; {
	case a > 0 && b > 0 && s < 0:
		return 1<<63 - 1
	case a < 0 && b < 0 && s >= 0:
		return -1 << 63
	default:
		return s
	}
}
