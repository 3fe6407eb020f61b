package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// Snapshots keeps versions of work trees. What it answers is JSON, as people and
// programs get it.
type Snapshots interface {
	Take(ctx context.Context, who, note string) (json.RawMessage, error)
	List(ctx context.Context) (json.RawMessage, error)
	Show(ctx context.Context, id string) (json.RawMessage, error)
	Verify(ctx context.Context, id string) (json.RawMessage, error)
	// Archive writes one away from this state, the newest where id is empty.
	Archive(ctx context.Context, who, id string) (json.RawMessage, error)
	// Find says which versions a rollback would put back.
	Find(ctx context.Context, subject, tree string) (json.RawMessage, error)
	// Look says what a rollback would do; Rollback does it on a person's word.
	Look(ctx context.Context, subject, tree string) (json.RawMessage, error)
	Rollback(ctx context.Context, tenant string, signed operator.Signed) (json.RawMessage, error)
}

// SnapshotAsk is a request about snapshots.
type SnapshotAsk struct {
	// ID is a snapshot's, or, of a rollback, "before " and a crossing.
	ID   string `json:"id,omitempty"`
	Tree string `json:"tree,omitempty"`
	Who  string `json:"who,omitempty"`
	Note string `json:"note,omitempty"`
}

func (s *Server) takeSnapshot(ctx context.Context, in SnapshotAsk) (json.RawMessage, error) {
	return s.Snapshots.Take(ctx, in.Who, in.Note)
}

// askEvery is how often an owner that keeps versions is asked whether it is there.
const askEvery = 30 * time.Second

// TakeSnapshot takes one; it takes as long as it takes.
func (c *Client) TakeSnapshot(ctx context.Context, who, note string) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.patient(ctx, askEvery, "POST", "/v1/snapshot", SnapshotAsk{Who: who, Note: note}, &out)
	return out, err
}

// Snapshots lists them.
func (c *Client) Snapshots(ctx context.Context) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.timed(ctx, "GET", "/v1/snapshots", nil, &out)
	return out, err
}

// Snapshot says what is in one.
func (c *Client) Snapshot(ctx context.Context, id string) (json.RawMessage, error) {
	if strings.Trim(id, ".") == "" { // no part of an address
		return nil, &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no snapshot %q", excerpt.Of(id, 100)), Hint: "`holdfast snapshot ls` lists them"}
	}
	var out json.RawMessage
	err := c.timed(ctx, "GET", "/v1/snapshots/"+url.PathEscape(id), nil, &out)
	return out, err
}

// VerifySnapshot restores one elsewhere and compares it.
func (c *Client) VerifySnapshot(ctx context.Context, id string) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.patient(ctx, askEvery, "POST", "/v1/snapshots/verify", SnapshotAsk{ID: id}, &out)
	return out, err
}

// ArchiveSnapshot writes one away from the state, the newest where id is empty.
func (c *Client) ArchiveSnapshot(ctx context.Context, who, id string) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.patient(ctx, askEvery, "POST", "/v1/snapshots/archive", SnapshotAsk{ID: id, Who: who}, &out)
	return out, err
}

// FindRollback says which versions a rollback would put back, and looks at no tree.
func (c *Client) FindRollback(ctx context.Context, subject, tree string) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.patient(ctx, askEvery, "POST", "/v1/rollback/find", SnapshotAsk{ID: subject, Tree: tree}, &out)
	return out, err
}

// LookRollback says what a rollback would do.
func (c *Client) LookRollback(ctx context.Context, subject, tree string) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.patient(ctx, askEvery, "POST", "/v1/rollback/look", SnapshotAsk{ID: subject, Tree: tree}, &out)
	return out, err
}

// Rollback puts work trees back.
func (c *Client) Rollback(ctx context.Context, p PersonsWord) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.patient(ctx, askEvery, "POST", "/v1/rollback", p, &out)
	return out, err
}
