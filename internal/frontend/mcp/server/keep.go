package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// How a server that ends of itself is started again.
const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 30 * time.Second
	// settled is how long a server must have been up for its end to be no
	// sign of trouble, so that the delays start anew.
	settled = time.Minute
	// maxEnds is how often servers of one command may end of themselves
	// within endsWindow before no other is started.
	maxEnds    = 10
	endsWindow = 10 * time.Minute
)

// Keeper starts one server again and again, for an endpoint whose clients
// outlive it: each Dial is a start, and waits for as long as the ends before it
// ask for. It may be used by many goroutines.
type Keeper struct {
	command Command
	before  func(context.Context) error
	now     func() time.Time
	sleep   func(context.Context, time.Duration) error

	mu    sync.Mutex
	ends  []time.Time // of servers that ended of themselves, oldest first
	delay time.Duration
	next  time.Time // when the next start may be
	last  *Process  // the one that ended last
	why   string    // why the last one did not start
}

// Keep returns a keeper of one command. before is asked before each start, and
// refuses it with an error, which Dial returns: it is where a start is
// recorded, and where nothing starts that is halted. Nil asks nobody.
func Keep(c Command, before func(context.Context) error) *Keeper {
	if before == nil {
		before = func(context.Context) error { return nil }
	}
	return &Keeper{command: c, before: before, now: time.Now, sleep: mcp.Sleep}
}

// Dial starts the server, for one user who must close it. After one that ended
// of itself it waits: 100 ms, doubled by each further end to 30 s, and anew
// once one was up for a minute. Ten such ends within ten minutes refuse every
// start until the first is ten minutes old; the error is KindOperation and
// repeats the server's last line of standard error, masked. It returns ctx's
// error if that ends first, before's where that refuses, and Start's.
func (k *Keeper) Dial(ctx context.Context) (*Process, error) {
	for {
		wait, err := k.turn()
		if err != nil {
			return nil, err
		}
		if wait <= 0 {
			break
		}
		if err := k.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := k.before(ctx); err != nil {
		return nil, err
	}
	return k.start()
}

// start starts the server; one that does not start has ended too.
func (k *Keeper) start() (*Process, error) {
	var p *Process
	made := make(chan struct{})
	started, err := start(k.command, func(itself bool, up time.Duration) {
		<-made
		if itself {
			k.end(p, up, "")
		}
	})
	p = started
	close(made)
	if err != nil {
		if holdfast.KindOf(err) != holdfast.KindUsage {
			k.end(nil, 0, err.Error())
		}
		return nil, err
	}
	return p, nil
}

// turn says how long the next start has to wait, and takes the turn where that
// is not at all: in trouble, one starts at a time.
func (k *Keeper) turn() (time.Duration, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	k.forget(now)
	if len(k.ends) >= maxEnds {
		return 0, k.givenUp(k.ends[len(k.ends)-maxEnds].Add(endsWindow).Sub(now))
	}
	if wait := k.next.Sub(now); wait > 0 {
		return wait, nil
	}
	if len(k.ends) > 0 && now.Sub(k.ends[len(k.ends)-1]) < settled {
		k.next = now.Add(k.delay)
	}
	return 0, nil
}

// forget drops the ends that are over. The caller holds mu.
func (k *Keeper) forget(now time.Time) {
	for len(k.ends) > 0 && now.Sub(k.ends[0]) >= endsWindow {
		k.ends = k.ends[1:]
	}
	if len(k.ends) == 0 {
		k.delay = 0
	}
}

// end counts a server that ended of itself after being up for a while.
func (k *Keeper) end(p *Process, up time.Duration, why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	k.forget(now)
	if k.delay = min(2*k.delay, maxDelay); k.delay == 0 || up >= settled {
		k.delay = firstDelay
	}
	k.next, k.last, k.why = now.Add(k.delay), p, why
	if k.ends = append(k.ends, now); len(k.ends) > maxEnds {
		k.ends = k.ends[1:]
	}
}

// givenUp is the refusal of a server that does not stay up.
func (k *Keeper) givenUp(left time.Duration) error {
	said := k.why
	if k.last != nil {
		if said = k.last.words.get(); said == "" {
			said = "it wrote nothing to standard error"
		} else {
			said = "it said last: " + said
		}
	}
	return &holdfast.Error{Kind: holdfast.KindOperation,
		Why: fmt.Sprintf("the MCP server %q ended %d times within %d minutes and is not started again yet; %s",
			k.command.Name, maxEnds, int(endsWindow.Minutes()), said),
		Hint: fmt.Sprintf("start it by hand to see what it lacks; it is tried again in %s", left.Round(time.Second))}
}
