package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast-dev/holdfast/internal/operator"
	"github.com/holdfast-dev/holdfast/internal/review"
)

func (s *Server) life(w http.ResponseWriter, r *http.Request) {
	steps, err := s.Kernel.Life(r.Context(), r.PathValue("id"))
	s.answer(w, append([]review.Step{}, steps...), err)
}

func (s *Server) remembered(w http.ResponseWriter, r *http.Request) {
	rules, err := s.Kernel.Remembered(r.Context(), tenant(r.URL.Query().Get("tenant")))
	s.answer(w, rules, err)
}

func (s *Server) remember(w http.ResponseWriter, r *http.Request) {
	var p PersonsWord
	if s.read(w, r, &p) {
		m, err := s.Kernel.Remember(p.Signed)
		s.answer(w, m, err)
	}
}

func (s *Server) forget(w http.ResponseWriter, r *http.Request) {
	var p PersonsWord
	if s.read(w, r, &p) {
		m, err := s.Kernel.Forget(p.Signed)
		s.answer(w, m, err)
	}
}

func (s *Server) changed(w http.ResponseWriter, r *http.Request) {
	c, err := s.Kernel.Changed(r.Context(), r.URL.Query().Get("boundary"))
	s.answer(w, c, err)
}

func (s *Server) accept(w http.ResponseWriter, r *http.Request) {
	var p PersonsWord
	if s.read(w, r, &p) {
		c, err := s.Kernel.Accept(p.Signed)
		s.answer(w, c, err)
	}
}

func (s *Server) admit(w http.ResponseWriter, r *http.Request) {
	var p PersonsWord
	if s.read(w, r, &p) {
		pub, err := s.Kernel.Admit(p.Signed)
		s.answer(w, pub, err)
	}
}

// Admit makes another person an operator, and records it.
func (c *Client) Admit(ctx context.Context, p PersonsWord) error {
	var out operator.Public
	return c.timed(ctx, "POST", "/v1/admit", p, &out)
}

// Life says what became of a review, step by step.
func (c *Client) Life(ctx context.Context, id string) ([]review.Step, error) {
	var out []review.Step
	err := c.timed(ctx, "GET", "/v1/reviews/"+url.PathEscape(id)+"/life", nil, &out)
	return out, err
}

// Remembered lists a tenant's remembered rules, newest first.
func (c *Client) Remembered(ctx context.Context, tenant string) ([]review.Remembered, error) {
	var out []review.Remembered
	err := c.timed(ctx, "GET", "/v1/remembered?"+url.Values{"tenant": {tenant}}.Encode(), nil, &out)
	return out, err
}

// Remember makes a narrow rule of an approved review.
func (c *Client) Remember(ctx context.Context, p PersonsWord) (*review.Remembered, error) {
	var out review.Remembered
	return &out, c.timed(ctx, "POST", "/v1/remember", p, &out)
}

// Forget ends a remembered rule.
func (c *Client) Forget(ctx context.Context, p PersonsWord) (*review.Remembered, error) {
	var out review.Remembered
	return &out, c.timed(ctx, "POST", "/v1/forget", p, &out)
}

// Changed tells how a tool differs from what it was at first sight.
func (c *Client) Changed(ctx context.Context, boundary string) (*review.Change, error) {
	var out review.Change
	return &out, c.timed(ctx, "GET", "/v1/changed?"+url.Values{"boundary": {boundary}}.Encode(), nil, &out)
}

// Accept takes a changed tool for what it is now.
func (c *Client) Accept(ctx context.Context, p PersonsWord) (*review.Change, error) {
	var out review.Change
	return &out, c.timed(ctx, "POST", "/v1/accept", p, &out)
}
