package schema

import (
	"strconv"
	"strings"
	"time"
)

// isDate reports whether s is a day of RFC 3339.
func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isTime reports whether s is a time of day with an offset (RFC 3339). A leap
// second is the last one of a day in UTC.
func isTime(s string) bool {
	hour, minute, ok := parseClock(s)
	if !ok || len(s) < 9 || s[5] != ':' {
		return false
	}
	second, ok := parseTwoDigits(s[6:8], 60)
	if !ok {
		return false
	}
	offset := s[8:]
	if offset[0] == '.' {
		n := countDigits(offset[1:])
		if n == 0 {
			return false
		}
		offset = offset[1+n:]
	}
	if offset != "Z" && offset != "z" {
		if len(offset) != 6 || offset[0] != '+' && offset[0] != '-' {
			return false
		}
		h, m, ok := parseClock(offset[1:])
		if !ok {
			return false
		}
		if offset[0] == '+' {
			h, m = -h, -m
		}
		hour, minute = hour+h, minute+m
	}
	const day = 24 * 60
	return second < 60 || (hour*60+minute+day)%day == day-1
}

// parseClock reads the hours and minutes that s begins with.
func parseClock(s string) (hour, minute int, ok bool) {
	if len(s) < 5 || s[2] != ':' {
		return 0, 0, false
	}
	hour, okHour := parseTwoDigits(s[:2], 23)
	minute, okMinute := parseTwoDigits(s[3:5], 59)
	return hour, minute, okHour && okMinute
}

// parseTwoDigits reads a number of two digits that is at most highest.
func parseTwoDigits(s string, highest int) (int, bool) {
	if countDigits(s) != 2 {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= highest
}

// isDateTime reports whether s is a moment of RFC 3339.
func isDateTime(s string) bool {
	return len(s) > 11 && (s[10] == 'T' || s[10] == 't') && isDate(s[:10]) && isTime(s[11:])
}

// isDuration reports whether s is a duration (RFC 3339, appendix A): weeks, or
// some of years to seconds in order.
func isDuration(s string) bool {
	s, ok := strings.CutPrefix(s, "P")
	if !ok || s == "" {
		return false
	}
	if weeks, ok := strings.CutSuffix(s, "W"); ok {
		return weeks != "" && countDigits(weeks) == len(weeks)
	}
	date, clock, hasClock := strings.Cut(s, "T")
	return areUnits(date, "YMD") && (!hasClock || clock != "" && areUnits(clock, "HMS"))
}

// areUnits reports whether s is numbers, each with one of the units, in order.
func areUnits(s, units string) bool {
	for s != "" {
		n := countDigits(s)
		if n == 0 || n == len(s) {
			return false
		}
		i := strings.IndexByte(units, s[n])
		if i < 0 {
			return false
		}
		s, units = s[n+1:], units[i+1:]
	}
	return true
}

// isPeriod reports whether s is two moments, or one and a duration.
func isPeriod(s string) bool {
	start, end, ok := strings.Cut(s, "/")
	switch {
	case !ok:
		return false
	case strings.HasPrefix(start, "P"):
		return isDuration(start) && isDateTime(end)
	case strings.HasPrefix(end, "P"):
		return isDateTime(start) && isDuration(end)
	}
	return isDateTime(start) && isDateTime(end)
}
