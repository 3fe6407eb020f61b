// Package refusal writes the answer to a request that was refused, in the form that its
// client reads.
package refusal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// HeaderCrossing names the crossing in every answer.
const HeaderCrossing = "Holdfast-Crossing"

// HeaderRedacted tells a client what was changed in its request or its answer.
const HeaderRedacted = "Holdfast-Redacted"

// RuleBusy names the refusal of a body for which there is no memory now.
const RuleBusy = "egress/busy"

// RuleGuest marks that nobody is known who asks: the answer is 401.
const RuleGuest = "egress/guest"

// refusalBody is what a client is told. The member error is what clients of
// model APIs look for.
type refusalBody struct {
	Error refusalError `json:"error"`
}

type refusalError struct {
	Type     string `json:"type"`
	Message  string `json:"message"`
	Why      string `json:"why"`
	Hint     string `json:"hint,omitempty"`
	Crossing string `json:"crossing,omitempty"`
	Review   string `json:"review,omitempty"`
}

// Answer writes why a request was refused, in the form of provider where the
// client takes Holdfast for one. Nothing has been written to w.
func Answer(w http.ResponseWriter, r *http.Request, provider dialect.Provider, o *holdfast.Outcome, err error) {
	kind := holdfast.KindOf(err)
	if kind == holdfast.KindCanceled {
		panic(http.ErrAbortHandler) // nobody is there to read it
	}
	e := told(kind, err)
	if o != nil {
		if e.Crossing == "" {
			e.Crossing = o.Crossing
		}
		e.Review = o.Review
		if e.Review != "" && e.Hint == "" {
			e.Hint = "a person must approve it: `holdfast review approve " + e.Review + "`, then send the same request again"
		}
	}
	e.Message = e.Why
	if e.Hint != "" {
		e.Message += " (hint: " + e.Hint + ")"
	}
	h := w.Header()
	for name := range h { // what an answer that never began left there
		if name != "Connection" {
			delete(h, name)
		}
	}
	if e.Crossing != "" {
		h.Set(HeaderCrossing, e.Crossing)
	}
	status := errorcode.Lookup(kind).Egress
	if he, ok := errors.AsType[*holdfast.Error](err); ok && he.Rule == RuleBusy {
		status = http.StatusServiceUnavailable // no limit of the tenant's: the proxy itself has no room
		h.Set("Retry-After", "10")
	} else if ok && he.Rule == RuleGuest {
		status = http.StatusUnauthorized
	} else if ok && he.After > 0 {
		h.Set("Retry-After", wholeSeconds(he.After))
	}
	if provider != dialect.NoProvider {
		writeAs(provider, w, r, status, e, err)
		return
	}
	write(w, r, status, e)
}

// writeAs is write in the form of a provider, so that its client libraries raise
// what they raise of the provider's own refusals.
func writeAs(provider dialect.Provider, w http.ResponseWriter, r *http.Request, status int, e refusalError, err error) {
	f := dialect.Refusal{Status: status, Code: e.Type, Why: "holdfast: " + e.Message}
	if e.Crossing != "" {
		f.Why += " (crossing " + e.Crossing + ")"
	}
	if he, ok := errors.AsType[*holdfast.Error](err); ok && status != http.StatusServiceUnavailable {
		f.After = he.After
	}
	body, header := f.Body(provider)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	for name, value := range header {
		h.Set(name, value)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

// wholeSeconds is d as Retry-After has it (RFC 9110 section 10.2.3), never less.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// told is what of an error may be said to a client: its letter, without the
// cause. The kernel and the doors keep secrets out of letters.
func told(kind holdfast.Kind, err error) refusalError {
	e := refusalError{Type: string(kind), Why: "an internal error"}
	he, ok := errors.AsType[*holdfast.Error](err)
	if !ok {
		return e
	}
	e.Crossing = he.Crossing
	if kind != holdfast.KindInternal {
		e.Why, e.Hint = he.Why, he.Hint
	}
	return e
}

func write(w http.ResponseWriter, r *http.Request, status int, e refusalError) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	var b []byte
	if npm := isNPM(r.Header); npm || wantsJSON(r.Header) {
		h.Set("Content-Type", "application/json")
		var v any = refusalBody{e}
		if npm {
			v = map[string]string{"error": "holdfast: " + e.Message}
		}
		b, _ = json.Marshal(v) // of strings: it cannot fail
		b = append(b, '\n')
	} else {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		b = plain(e)
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(b)
	}
}

func plain(e refusalError) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "holdfast: %s\n", e.Why)
	for _, l := range []struct{ name, text string }{{"hint", e.Hint}, {"kind", e.Type}, {"crossing", e.Crossing}, {"review", e.Review}} {
		if l.text != "" {
			fmt.Fprintf(&b, "%s: %s\n", l.name, l.text)
		}
	}
	return b.Bytes()
}

// isNPM says whether a client is npm, which shows the member error of an answer if
// it is a text, as those of its registry are, and nothing else of it.
func isNPM(h http.Header) bool { return strings.HasPrefix(h.Get("User-Agent"), "npm/") }

// wantsJSON says whether a client takes or sends JSON.
func wantsJSON(h http.Header) bool {
	for _, name := range []string{"Accept", "Content-Type"} {
		for _, v := range h[name] {
			if strings.Contains(strings.ToLower(v), "json") {
				return true
			}
		}
	}
	return false
}
