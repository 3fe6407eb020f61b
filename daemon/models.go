package daemon

import (
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/bearer"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// mountModels adds the gateway to models to the pages' address: /llm/anthropic and
// /llm/openai, for clients that bring a token of Holdfast's where their provider's
// key would stand. It goes the way of the proxy, which is opened at the first
// request.
func (d *Daemon) mountModels(mux *http.ServeMux) {
	mux.Handle("/llm/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, err := d.egress.Gateway()
		if err != nil {
			why, _ := usage.Explain(err)
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	}))
}

// modelGuest is who brings a token, in either of the fields in which clients of models
// send their key.
func (d *Daemon) modelGuest(r *http.Request) (egress.Guest, error) {
	header := r.Header.Values("Authorization")
	if keys := r.Header.Values("X-Api-Key"); len(header) == 0 {
		for _, k := range keys {
			header = append(header, "Bearer "+k)
		}
	}
	tok, id, err := d.bearer.Verify(r.Context(), "llm", header)
	if err != nil {
		return egress.Guest{}, err
	}
	return egress.Guest{Group: bearer.CallerOf(id), Caller: egress.Caller{Token: func() (holdfast.Secret,
		error) {
		return tok, nil
	}}}, nil
}
