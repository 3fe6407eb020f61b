package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/measured"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// measureStream measures how late events come. The server sends one and waits
// until the client has seen it, so that what Holdfast would hold back until the
// next is counted and not only timed.
func measureStream(b *measure.Run, w *wayOut) ([]measure.Figure, error) {
	list := w.routes()
	defer closeIdle(list)
	var all []lateness
	for _, y := range list {
		if _, err := w.stream(y, 5, time.Second); err != nil { // connections are there
			return nil, err
		}
		l, err := w.stream(y, b.Rounds(500), time.Second)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	direct, ours := all[0], all[1]
	behind := measure.Figure{Name: "a stream's client behind its server, at most", Measured: float64(ours.behind), Unit: "events", Target: "<= 1", Met: ours.behind <= 1}
	behind.Note = fmt.Sprintf("%d events, each sent when the one before was seen or a second had passed; straight it is %d", len(ours.took), direct.behind)
	each := measure.Figure{Name: "  an event's time to the client, p50", Measured: measure.Millis(measure.Percentile(ours.took, 50)), Unit: "ms"}
	first := measure.Figure{Name: "  the first event, from the request", Measured: measure.Millis(ours.first), Unit: "ms"}.RatioTo(measure.Millis(direct.first), "straight")
	if len(all) > 2 {
		each = each.RatioTo(measure.Millis(measure.Percentile(all[2].took, 50)), "goproxy")
		first = first.RatioTo(measure.Millis(all[2].first), "goproxy")
	} else {
		each = each.RatioTo(measure.Millis(measure.Percentile(direct.took, 50)), "straight")
	}
	return []measure.Figure{behind, each, first}, nil
}

// lateness is how a stream came: how many events the client was behind at most,
// how long each took from the one before, and the first from the request.
type lateness struct {
	behind int64
	took   []time.Duration
	first  time.Duration
}

func (w *wayOut) stream(y route, events int, patience time.Duration) (l lateness, err error) {
	p := &pacer{events: events, patience: patience, seen: make(chan struct{}, events)}
	w.server.pacer.Store(p)
	from := time.Now()
	resp, err := y.Get(y.base + "/events")
	if err != nil {
		return l, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, err := io.ReadAll(io.LimitReader(resp.Body, 500))
		return l, errors.Join(fmt.Errorf("status %d: %s", resp.StatusCode, excerpt.Printable(string(said))), err)
	}
	lines, got := bufio.NewScanner(resp.Body), int64(0)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "data:") {
			continue
		}
		got++
		l.behind = max(l.behind, p.sent.Load()-got)
		if got == 1 {
			l.first = time.Since(from)
		} else {
			l.took = append(l.took, time.Since(from))
		}
		from = time.Now()
		p.seen <- struct{}{}
	}
	if got != int64(events) {
		err = fmt.Errorf("%d of %d events came", got, events)
	}
	return l, errors.Join(err, lines.Err())
}

// measureIdle measures what the daemon holds for a stream on which nothing comes:
// heap and stacks after a collection, with all of them open, less the same with
// none.
func measureIdle(b *measure.Run, w *wayOut) ([]measure.Figure, error) {
	streams := b.Rounds(1000)
	list := make([]route, egressDoors)
	for i := range list {
		list[i] = w.route(w.doors[i], w.ca)
		if err := list[i].post("/echo", document(1<<10)); err != nil {
			return nil, err
		}
	}
	before, err := w.held()
	if err != nil {
		return nil, err
	}
	open, err := openStreams(list, streams)
	defer func() {
		for _, body := range open {
			_ = body.Close() // it has not ended, and is not to
		}
		closeIdle(list)
	}()
	if err != nil {
		return nil, err
	}
	if n := w.server.idle.Load(); n != int64(streams) {
		return nil, fmt.Errorf("%d of %d streams are open at the server", n, streams)
	}
	after, err := w.held()
	if err != nil {
		return nil, err
	}
	each := func(after, before uint64) float64 { return float64(int64(after-before)) / 1024 / float64(streams) }
	heap, stack := each(after.Heap, before.Heap), each(after.Stack, before.Stack)
	f := measure.Figure{Name: fmt.Sprintf("held for each of %d idle streams", streams), Measured: heap + stack, Unit: "KiB", Target: "< 64 KiB", Met: heap+stack < 64,
		Note: fmt.Sprintf("of the daemon, both sides' TLS and buffers in it, after a collection; the heap has %s KiB more for each between what lives", measure.Number(each(after.Slack, before.Slack)))}
	f.Limits = measure.PartsOf("KiB", map[string]float64{"heap": heap, "stacks": stack})
	return []measure.Figure{f}, nil
}

// held is what the daemon holds now.
func (w *wayOut) held() (m measured.Memory, err error) {
	time.Sleep(300 * time.Millisecond) // what is under way ends
	return m, w.daemon.Ask("memory", &m)
}

// openStreams opens so many streams, spread over the ways, and reads the first
// event of each. What was opened is the caller's to close, with an error too.
func openStreams(list []route, streams int) (open []io.Closer, err error) {
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	next := make(chan route)
	for range 8 {
		wg.Go(func() {
			for y := range next {
				body, err := idleStream(y)
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
				} else {
					open = append(open, body)
				}
				mu.Unlock()
			}
		})
	}
	for i := range streams {
		next <- list[i%len(list)]
	}
	close(next)
	wg.Wait()
	return open, errors.Join(errs[:min(len(errs), 3)]...)
}

func idleStream(y route) (io.Closer, error) {
	c := &http.Client{Transport: y.t} // without the limit of time
	resp, err := c.Get(y.base + "/idle")
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(io.LimitReader(resp.Body, 4<<10)).ReadString('\n')
	if err == nil && (resp.StatusCode != http.StatusOK || !strings.HasPrefix(line, "event:")) {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, excerpt.Printable(line))
	}
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	return resp.Body, nil
}
