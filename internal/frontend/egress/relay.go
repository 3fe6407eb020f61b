package egress

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/headerfield"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

const (
	// maxWhole is how much of an answer is held to be read as one document,
	// in bytes; what is longer is read as text, as it comes.
	maxWhole = 1 << 20
	// maxFindings is how many findings of one answer are kept.
	maxFindings = 1000
)

// relayAnswer gives resp to the client, redacted as d says, and closes its body. Short
// answers, JSON and forms are redacted as one document; longer text as it comes,
// so that what was written is at every time the beginning of the redaction of
// the whole (D25b); events one by one. Binary answers pass where d says so. The
// answer has no trailers, no Alt-Svc, no Set-Cookie (but where d lets the
// agent's own credentials pass), and a length of its own.
//
// Where the error comes with began, the client has part of the answer: its
// connection must be broken, so that it does not take it for all. Else the
// error's kind says what to answer: ForwardError (the upstream broke off, or sent
// what cannot be decoded), DomainBlockedError (binary, or found where d refuses),
// PayloadTooLargeError, RedactionError, refusal.RuleBusy.
//
// m is what is asked of a model, which meters the answer; nil where none is. masked is what was masked in the request.
func (p *Proxy) relayAnswer(
	ctx context.Context, w http.ResponseWriter, d *domain.Domain, resp *http.Response, m *model,
	masked []redact.Finding,
) (relayed, error) {
	defer resp.Body.Close()
	a := &answer{ctx: ctx, p: p, d: d, mode: responseOf(d, m), w: w, resp: resp, model: m, hash: sha256.New(),
		most: maxResponse(d), masked: masked}
	a.got.restored = a.mode == domain.Restore
	a.got.status, a.got.contentType = resp.StatusCode, resp.Header.Get("Content-Type")
	m.begin(a.got.status, a.got.contentType)
	relay := a.relay
	if kind, _ := coding.MediaKind(a.got.contentType); m != nil && m.judge != nil && kind != "text/event-stream" {
		relay = a.relayJudged
	}
	err := answerLost(relay(ctx))
	if why := context.Cause(ctx); err == nil && why != nil && why != error(errGone) {
		err = why // an upstream that ends its answer well when it is cut off would make it look whole
	}
	a.hash.Sum(a.got.sum[:0])
	a.got.text = string(a.text)
	if err != nil && ctx.Err() != nil {
		err = &holdfast.Error{
			Kind: holdfast.KindForward, Rule: "egress/ended", Err: err,
			Why: "the answer was ended before all of it came", Hint: "the client left, or the run was stopped",
		}
	}
	return a.got, err
}

// answerLost is an error of redaction, or for want of memory, as it is of an answer:
// what was asked has left by then.
func answerLost(err error) error {
	e, ok := errors.AsType[*holdfast.Error](err)
	if !ok || e.Kind != holdfast.KindRedaction && e.Rule != refusal.RuleBusy {
		return err
	}
	own := *e
	own.Hint = "what was asked may have been done, and is charged; its answer cannot be shown"
	return &own
}

// answer is one answer on its way to the client. It belongs to one goroutine at
// a time.
type answer struct {
	ctx  context.Context // of the request: whose memory it takes
	p    *Proxy
	d    *domain.Domain
	w    http.ResponseWriter
	resp *http.Response
	c    cleaner.Cleaner
	mode domain.Redaction // what happens to this answer

	model  *model           // nil where none was asked
	masked []redact.Finding // in the request

	header http.Header // as the client gets it
	hash   hash.Hash
	text   []byte
	secret []byte // the credential that was sent; it does not come back
	binary bool   // what passes is not text
	flush  bool   // after every write
	most   int64
	got    relayed
}

func (a *answer) relay(ctx context.Context) error {
	if err := a.open(); err != nil {
		return err
	}
	if a.resp.StatusCode < 200 {
		return upstreamLied(a.resp, "an answer that nobody asked for", nil)
	}
	if said := a.resp.Header["Content-Length"]; len(said) > 1 || len(said) == 1 && a.resp.ContentLength < 0 {
		return upstreamLied(a.resp, "a length that is none, or two", nil) // HTTP/2 would let it pass
	}
	if a.bodyless() {
		a.begin()
		return nil
	}
	if a.resp.ContentLength > a.most {
		return coding.NewSizeError("answer", a.most)
	}
	return a.body(ctx)
}

// open makes the header that the client gets.
func (a *answer) open() error {
	var sent string
	if a.resp.Request != nil {
		sent = sentCredential(a.d, a.resp.Request.Header)
		a.secret = []byte(sent)
	}
	if a.isRedacted() {
		var failed *holdfast.Error
		if a.c, failed = a.p.out.cleaners.OpenAnswer(a.d, sent); failed != nil {
			return failed
		}
	}
	named, signed := headerfield.NamedByConnection(a.resp.Header), a.findSigned()
	kept, cookies := make(http.Header, len(a.resp.Header)), []string(nil)
	for name, values := range a.resp.Header {
		switch key := textproto.CanonicalMIMEHeaderKey(name); {
		case headerfield.ConnectionOnly(name, named), key == "Accept-Ranges", key == refusal.HeaderCrossing,
			key == refusal.HeaderRedacted, sent != "" && holdsFold(name, sent):
		case key == "Set-Cookie", key == "Set-Cookie2":
			if a.d.AgentCredentials {
				cookies = append(cookies, values...)
			}
		case sent != "" && strings.Contains(strings.Join(values, "\n"), sent) && !a.isRedacted():
			// Nothing masks it there.
		case key == "Location" && signed != "":
		case key == "Content-Type":
			kept[key] = values[:1] // the one that was judged
		default:
			kept[name] = values
		}
	}
	if a.isRedacted() {
		clean, found, failed := a.p.out.cleaners.CleanHeader(a.c, a.listRules(), kept)
		if failed != nil {
			return failed
		}
		kept = clean
		a.found(found)
	}
	if len(cookies) > 0 {
		kept["Set-Cookie"] = cookies
	}
	if signed != "" {
		kept["Location"] = []string{signed}
	}
	a.header = kept
	return nil
}

// listRules returns what happens to what is found in the answer.
func (a *answer) listRules() cleaner.Rules { return cleaner.AnswerRules(a.d, a.mode) }

// findSigned returns the Location of a redirect whose URL has a signature, and remembers it: the caller may follow it
// (cleaner.FindSigned). It returns "" for other answers.
func (a *answer) findSigned() string {
	r, list, own := a.resp.Request, a.resp.Header["Location"], ownerOf(a.ctx)
	if !a.isRedacted() || r == nil || own == nil || len(list) != 1 || a.resp.StatusCode/100 != 3 ||
		r.Method != http.MethodGet && r.Method != http.MethodHead {
		return ""
	}
	to := a.c.FindSigned(r.URL, list[0])
	if to == "" {
		return ""
	}
	own.redirects.Add(to, a.p.now())
	return list[0]
}

// describeChanges returns the changes of its request and its answer for the client, as far as they are known, "" for
// nothing.
func (a *answer) describeChanges() string {
	return cleaner.DescribeChanges(a.model.countPlaceholders(), cleaner.CountMasked(a.masked, a.got.findings))
}

// isRedacted reports whether what is found in the answer is masked or refused.
func (a *answer) isRedacted() bool { return a.mode != domain.Off && a.mode != domain.Restore }

// holdsFold says whether a field's name holds what, in any case: names are read
// in all, so that an engine that tells them apart would miss it.
func holdsFold(name, what string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(what))
}

// bodyless says whether the answer has no body, whatever its header says (RFC
// 9110 section 6.4.1).
func (a *answer) bodyless() bool {
	head := a.resp.Request != nil && a.resp.Request.Method == http.MethodHead
	return head || a.resp.StatusCode == http.StatusNoContent || a.resp.StatusCode == http.StatusNotModified ||
		a.resp.StatusCode == http.StatusResetContent
}

// begin writes status and header, once.
func (a *answer) begin() {
	if a.got.began {
		return
	}
	h := a.w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	if told := a.describeChanges(); told != "" {
		h[refusal.HeaderRedacted] = []string{told}
	}
	if _, said := a.header["Content-Type"]; !said {
		h["Content-Type"] = nil // or Go would guess
	}
	a.got.began = true
	a.w.WriteHeader(a.resp.StatusCode)
}

// Write gives b, which is redacted, to the client.
func (a *answer) Write(b []byte) (int, error) {
	if a.got.bytes+int64(len(b)) > a.most {
		return 0, coding.NewSizeError("answer", a.most)
	}
	a.begin()
	n, err := a.w.Write(b)
	a.got.bytes += int64(n)
	a.hash.Write(b[:n])
	if !a.binary && a.mode != domain.Restore {
		a.keepText(b[:n])
	}
	if err == nil && a.flush {
		err = http.NewResponseController(a.w).Flush()
	}
	return n, err
}

// found keeps findings for the record, up to a bound.
func (a *answer) found(list []redact.Finding) {
	a.got.findings = append(a.got.findings, list[:min(len(list), max(0, maxFindings-len(a.got.findings)))]...)
}

// upstreamLied is the ForwardError for what an upstream sent against HTTP, or
// against what it was asked.
func upstreamLied(resp *http.Response, what string, err error) error {
	host := "the upstream"
	if resp.Request != nil && resp.Request.URL != nil {
		host = resp.Request.URL.Hostname()
	}
	return &holdfast.Error{
		Kind: holdfast.KindForward, Rule: "egress/answer", Err: err,
		Why: host + " sent " + what, Hint: "what was asked may have been done; the answer cannot be shown",
	}
}

// readError tells an upstream that broke off from what its bytes made fail.
func (a *answer) readError(err error) error {
	switch known := (*holdfast.Error)(nil); {
	case err == nil, errors.As(err, &known):
		return err
	case err == coding.ErrTooLarge:
		return coding.NewSizeError("answer", a.most)
	case err == coding.ErrNoMemory:
		return memory.Busy()
	case err == coding.ErrBomb:
		return upstreamLied(a.resp, "a body that expands too far", err)
	case err == io.ErrUnexpectedEOF:
		return upstreamLied(a.resp, "less than it announced", err)
	}
	return upstreamLied(a.resp, "a body that broke off or cannot be decoded", err)
}
