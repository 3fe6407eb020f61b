package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
)

// How long the reopening of a server waits, where no keeper says.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 30 * time.Second
	steady      = time.Minute
	maxKeepers  = 256
)

// keepers count how often a server's command ended, over all clients of one
// caller that it was started for: nobody wears a server out for others. The zero
// value has none.
type keepers struct {
	mu sync.Mutex
	m  map[string]*kept // guarded by mu; by whom and what is started
}

// kept is one keeper; used is when it was last asked for.
type kept struct {
	*server.Keeper
	used time.Time
}

// of returns the keeper of a server's command for a caller, which is named as
// bearer.GroupOf names it.
func (k *keepers) of(s *Service, caller string, b backend) *server.Keeper {
	what, err := json.Marshal([]any{caller, b.name, b.cmd.Argv, b.cmd.Dir, b.cmd.Env})
	if err != nil {
		return server.Keep(b.cmd, s.mayOpen(b))
	}
	sum := sha256.Sum256(what)
	key := hex.EncodeToString(sum[:])
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m[key] == nil {
		k.room()
		k.m[key] = &kept{Keeper: server.Keep(b.cmd, s.mayOpen(b))}
	}
	k.m[key].used = time.Now()
	return k.m[key].Keeper
}

// room forgets the keeper that nobody has asked for the longest time, where
// there are too many. The caller holds mu.
func (k *keepers) room() {
	if k.m == nil {
		k.m = map[string]*kept{}
	}
	for len(k.m) >= maxKeepers {
		oldest := ""
		for key, x := range k.m {
			if oldest == "" || x.used.Before(k.m[oldest].used) {
				oldest = key
			}
		}
		delete(k.m, oldest)
	}
}

// opener opens one server again and again, for one client that outlives it. One
// goroutine may use it.
type opener struct {
	s *Service
	b backend
	// caller is for whom, as bearer.GroupOf names it.
	caller string
	wait   time.Duration // before the next opening of a url
	begun  time.Time
}

// next opens the server, after the wait that is due.
func (o *opener) next(ctx context.Context) (gateway.Conn, error) {
	if o.b.url == "" {
		return started(o.s.keepers.of(o.s, o.caller, o.b).Dial(ctx))
	}
	now := time.Now()
	switch {
	case o.begun.IsZero():
	case now.Sub(o.begun) > steady:
		o.wait = 0
	default:
		o.wait = max(firstWait, min(2*o.wait, longestWait))
	}
	if err := mcp.Sleep(ctx, o.wait); err != nil {
		return nil, err
	}
	o.begun = time.Now()
	return o.s.open(ctx, o.b)
}
