package egress

import (
	"bytes"
	"net/http"

	"github.com/holdfast-dev/holdfast"
)

// heldResponse keeps an answer until the kernel has judged it: rules and
// predicates on outputs may withhold it (D12).
type heldResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
	max    int64
	whole  bool
}

// maxHeld bounds an answer that is held, in bytes.
const maxHeld = 16 << 20

func newHeld(most int64) *heldResponse { return &heldResponse{header: http.Header{}, max: most} }

// Header implements http.ResponseWriter.
func (h *heldResponse) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *heldResponse) WriteHeader(status int) {
	if h.status == 0 && status >= 200 {
		h.status = status
	}
}

// Write implements http.ResponseWriter. Its error is a PayloadTooLargeError.
func (h *heldResponse) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	if int64(h.body.Len()+len(p)) > h.max {
		return 0, &holdfast.Error{Kind: holdfast.KindForward, Why: "the answer is too large to be judged before it is given",
			Hint: "ask for less at a time"}
	}
	return h.body.Write(p)
}

// Flush does nothing: an answer is judged whole.
func (h *heldResponse) Flush() {}

// give writes the answer to the client.
func (h *heldResponse) give(w http.ResponseWriter) {
	for name, values := range h.header {
		w.Header()[name] = values
	}
	h.WriteHeader(http.StatusOK)
	w.WriteHeader(h.status)
	w.Write(h.body.Bytes())
}
