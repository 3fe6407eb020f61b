package streamable

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// httpError is an answer that no core gives: an HTTP status with a JSON-RPC
// error as its body.
type httpError struct {
	status int
	code   int // 0 is errorcode.Refused
	why    string
	hint   string
	data   []byte // instead of hint
	id     []byte // the client's, nil where it is not known
	later  bool   // the same request may succeed soon
}

func (e *httpError) Error() string { return e.why }

// bad is a request that breaks the protocol.
func bad(code int, why, hint string) *httpError {
	return &httpError{status: http.StatusBadRequest, code: code, why: why, hint: hint}
}

// about returns err as the answer to the request with an id.
func aboutID(err error, id []byte) error {
	var e *httpError
	if errors.As(err, &e) && e.id == nil {
		e.id = id
	}
	return err
}

// refuse answers with an error.
func (h *Handler) refuse(w http.ResponseWriter, id []byte, err error) {
	var e *httpError
	if !errors.As(err, &e) {
		h.odd("the HTTP front of the MCP gateway failed", err)
		e = &httpError{status: http.StatusInternalServerError, why: "internal error", hint: "see holdfast's log"}
	}
	if e.id != nil {
		id = e.id
	}
	if e.code == 0 {
		e.code = errorcode.Refused
	}
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if e.later {
		w.Header().Set("Retry-After", "1")
	}
	body := mcp.Failure(id, e.code, e.why, e.hint)
	if e.data != nil {
		told := mcp.Encode(struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		}{e.code, e.why, e.data})
		body = mcp.Message{ID: orNull(id), Error: told}.Line()
	}
	writeJSON(w, e.status, body)
}

func orNull(id []byte) []byte {
	if id == nil {
		return []byte("null")
	}
	return id
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// A client that has gone needs no answer.
	_, _ = w.Write(body)
}

// batchBefore is the first version without batches.
const batchBefore = "2025-06-18"

func hasSession(version string) bool {
	return version != mcp.StatelessSince && slices.Contains(mcp.ListVersions(), version)
}

// unspoken is the answer to a version that nobody here speaks.
func unspoken(version string) *httpError {
	e := bad(mcp.CodeVersion, "this protocol version is not spoken here", "")
	e.data = mcp.Encode(map[string]any{"supported": mcp.ListVersions(), "requested": version})
	return e
}

// lost is the answer where a core ended before it answered.
func lost(err error) *httpError {
	e := &httpError{status: http.StatusBadGateway, why: "the MCP session ended before it answered", hint: "whether the call took effect is not known"}
	var told *holdfast.Error
	switch {
	case errors.As(err, &told):
		e.why, e.hint = told.Error(), told.Hint
	case errors.Is(err, gateway.ErrServerEnded):
		e.why = gateway.ErrServerEnded.Error()
	}
	return e
}
