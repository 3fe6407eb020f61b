// Package story tells people what a record holds: on a terminal and on a page
// the same words. It is pure; what comes from agents and servers is passed on
// as it is, and whoever shows it makes it fit to be looked at.
package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Ago says how long ago t was, such as "3 min ago", "in 2 days" where it is to
// come, "never" for the zero time.
func Ago(t, now time.Time) string {
	d := now.Sub(t).Round(time.Second)
	switch {
	case t.IsZero():
		return "never"
	case d < 0:
		return "in " + Short(-d)
	case d < time.Second:
		return "now"
	}
	return Short(d) + " ago"
}

// Short is a duration in its largest units, whole seconds at least: "5 s",
// "3 min", "4 h 05 min", "2 days". A negative one is "no time".
func Short(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < 0:
		return "no time"
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%d h %02d min", d/time.Hour, d/time.Minute%60)
	case d >= time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// Count is n with the word for one or for many.
func Count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Text is a column that may be NULL, "" for that.
func Text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Draws are what was reserved, apart by semicolons.
func Draws(ds []ledger.Draw) string {
	var out []string
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%d of %s", d.Amount, drawName(d)))
	}
	return strings.Join(out, "; ")
}

// Uses are what was used of it, and what was before.
func Uses(us []ledger.Use) string {
	var out []string
	for _, u := range us {
		used := "nothing"
		if u.Used != nil {
			used = fmt.Sprint(*u.Used)
		}
		out = append(out, fmt.Sprintf("%s of %s (%d of %d before)", used, drawName(u.Draw), u.Before, u.Draw.Limit))
	}
	return strings.Join(out, "; ")
}

// Spoken are the rules that spoke, with the beginning of their versions.
func Spoken(e *ledger.Entry) string {
	var out []string
	for _, s := range e.Spoken {
		out = append(out, fmt.Sprintf("%s %s (%s, version %s)", s.Rule, s.How, s.Severity, s.Version[:min(len(s.Version), 12)]))
	}
	if e.More > 0 {
		out = append(out, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(out, "; ")
}

func drawName(d ledger.Draw) string {
	if d.Name != "" {
		return d.Name
	}
	return string(d.Resource) + " " + d.Key
}

// Run says how code that was run ended where that was not well, "" of anything
// else: "TIMEOUT, exit code 137", "exit code 3".
func Run(e *ledger.Entry) string {
	switch {
	case e.Run == "" || e.Run == "COMPLETED" && e.ExitCode == 0:
		return ""
	case e.Run == "COMPLETED":
		return fmt.Sprintf("exit code %d", e.ExitCode)
	}
	return fmt.Sprintf("%s, exit code %d", e.Run, e.ExitCode)
}

// Came is what an outcome came to: Allow where the act was done, Hold where
// nobody knows or nobody answered, else Deny.
func Came(o ledger.Outcome) holdfast.Verdict {
	switch o {
	case ledger.Done, ledger.Replayed:
		return holdfast.Allow
	case ledger.HeldExpired, ledger.Unknown, ledger.Abandoned, ledger.Canceled:
		return holdfast.Hold
	}
	return holdfast.Deny
}
