package llm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// heard is how one stream came.
type heard struct {
	first  time.Duration   // from the request to the first event of text
	whole  time.Duration   // to the end
	late   []time.Duration // of each event of text, from when the provider sent it
	behind int64           // how many events had left after the first of text when that was seen
}

// question is a request with that many bytes of text, in which nothing is found.
func question(size int, stream bool) []byte {
	words := strings.Repeat("the function returns what was asked for and nothing else; ", size/50+1)[:size]
	return fmt.Appendf(nil, `{"model":%q,"max_tokens":4096,"stream":%t,"messages":[{"role":"user","content":%q}]}`, llmModel, stream, words)
}

// llmAsked is the size of what models are asked, in bytes.
const llmAsked = 4 << 10

// ask sends one question and reads all of the answer.
func (w *modelWays) ask(y modelWay, body []byte) (h heard, err error) {
	from := time.Now()
	req, err := http.NewRequest(http.MethodPost, y.url, bytes.NewReader(body))
	if err != nil {
		return h, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := y.client.Do(req)
	if err != nil {
		return h, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, err := io.ReadAll(io.LimitReader(resp.Body, 500))
		return h, errors.Join(fmt.Errorf("status %d: %s", resp.StatusCode, excerpt.Printable(string(said))), err)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		_, err = io.Copy(io.Discard, resp.Body)
	} else {
		err = w.hear(&h, from, resp.Body)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", y.url, err)
	}
	h.whole = time.Since(from)
	return h, err
}

// hear reads a stream's events; each of text is held against when it was sent.
func (w *modelWays) hear(h *heard, from time.Time, body io.Reader) error {
	var s *spoken
	var last []byte
	ended := false
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if ok {
			last = append(last[:0], data...)
		}
		switch {
		case !ok:
		case bytes.Contains(data, []byte(`"message_start"`)):
			number := -1
			if _, id, ok := bytes.Cut(data, []byte("msg_bench_")); ok {
				_, _ = fmt.Sscanf(string(id), "%d", &number) // what is no number is none of an answer
			}
			var err error
			if s, err = w.provider.number(number); err != nil {
				return err
			}
		case s != nil && bytes.Contains(data, []byte(`"text_delta"`)):
			seen := time.Now()
			if len(h.late) == len(s.at) {
				return errors.New("more events came than were sent")
			}
			if len(h.late) == 0 {
				h.first, h.behind = seen.Sub(from), s.sent.Load()-1
			}
			h.late = append(h.late, seen.Sub(s.at[len(h.late)]))
		case bytes.Contains(data, []byte(`"message_stop"`)):
			ended = true
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !ended {
		return fmt.Errorf("the stream broke off after %d events of text, at last: %s", len(h.late), excerpt.Printable(string(last[:min(len(last), 500)])))
	}
	return nil
}

// measureFirst measures how long the first event of text takes by each way, in turns.
func measureFirst(b *measure.Run, w *modelWays) ([]measure.Figure, error) {
	w.provider.answers(3, llmApart)
	body := question(llmAsked, true)
	var first [3][]time.Duration
	behind := [3]int64{}
	for round := range b.Rounds(80) + 3 {
		for i := range w.list {
			which := (round + i) % len(w.list)
			h, err := w.ask(w.list[which], body)
			if err != nil {
				return nil, err
			}
			if round >= 3 { // the connections are there
				first[which] = append(first[which], h.first)
				behind[which] = max(behind[which], h.behind)
			}
		}
	}
	held := measure.Figure{Name: "the first word's client behind its provider, at most", Measured: float64(behind[wayGateway]), Unit: "events", Target: "<= 1", Met: behind[wayGateway] <= 1,
		Note: fmt.Sprintf("%d streams, an event every %s; through the bare proxy it is %d", len(first[wayGateway]), llmApart, behind[wayBare])}
	all := []measure.Figure{held}
	for _, percent := range []int{50, 95} {
		over := func(way int) float64 {
			return measure.Millis(measure.Percentile(first[way], percent) - measure.Percentile(first[wayStraight], percent))
		}
		limit := float64(behind[wayGateway])*measure.Millis(llmApart) + 2
		f := measure.Figure{Name: fmt.Sprintf("  added until the first word, p%d", percent), Measured: over(wayGateway), Unit: "ms", Target: "<= one event and 2 ms", Met: behind[wayGateway] <= 1 && over(wayGateway) <= limit,
			Note: fmt.Sprintf("%s ms through the gateway, %s through the bare proxy, %s straight; allowed is %s ms",
				measure.Number(measure.Millis(measure.Percentile(first[wayGateway], percent))), measure.Number(measure.Millis(measure.Percentile(first[wayBare], percent))), measure.Number(measure.Millis(measure.Percentile(first[wayStraight], percent))), measure.Number(limit))}
		all = append(all, f.RatioTo(over(wayBare), "bare proxy"))
	}
	return all, nil
}

// crowd is what many streams at once were by one way.
type crowd struct {
	late      []time.Duration
	took      time.Duration
	processor time.Duration // of the way's process
}

// measureStreams measures many streams at once, by one way after the other.
func measureStreams(b *measure.Run, w *modelWays) ([]measure.Figure, error) {
	words := b.Rounds(300)
	var ways [3]crowd
	for i, y := range w.list {
		w.provider.answers(5, llmApart)
		if _, err := w.crowd(y); err != nil { // connections are there
			return nil, err
		}
		w.provider.answers(words, llmApart)
		c, err := w.crowd(y)
		if err != nil {
			return nil, err
		}
		ways[i] = c
	}
	ours, bare, straight := ways[wayGateway], ways[wayBare], ways[wayStraight]
	all := []measure.Figure{measure.Figure{Name: fmt.Sprintf("events that came of %d streams, 50 a second each", llmConns), Measured: float64(len(ours.late)), Unit: "events",
		Target: "all", Met: len(ours.late) == llmConns*words,
		Note: fmt.Sprintf("%s a second, of %d that were sent; straight %d came", measure.Number(float64(len(ours.late))/ours.took.Seconds()), llmConns*words, len(straight.late))}.RatioTo(float64(len(bare.late)), "bare proxy")}
	for _, percent := range []int{50, 95, 99} {
		f := measure.Figure{Name: fmt.Sprintf("  an event's time to the client, p%d", percent), Measured: measure.Millis(measure.Percentile(ours.late, percent)), Unit: "ms",
			Note: fmt.Sprintf("straight %s ms", measure.Number(measure.Millis(measure.Percentile(straight.late, percent))))}
		all = append(all, f.RatioTo(measure.Millis(measure.Percentile(bare.late, percent)), "bare proxy"))
	}
	cpu := measure.Figure{Name: "  of one processor", Measured: ours.share(), Unit: "%",
		Note: fmt.Sprintf("%s us an event, %s through the bare proxy", measure.Number(ours.each()), measure.Number(bare.each()))}
	return append(all, cpu.RatioTo(bare.share(), "bare proxy")), nil
}

// share is what the way's process had of one processor, in percent.
func (c crowd) share() float64 { return 100 * c.processor.Seconds() / c.took.Seconds() }

// each is what it had for each event, in microseconds.
func (c crowd) each() float64 { return measure.Micros(c.processor) / float64(max(1, len(c.late))) }

// crowd has all streams at once by one way.
func (w *modelWays) crowd(y modelWay) (c crowd, err error) {
	body := question(llmAsked, true)
	before, err := y.processor()
	if err != nil {
		return c, err
	}
	from := time.Now()
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for range llmConns {
		wg.Go(func() {
			h, err := w.ask(y, body)
			mu.Lock()
			defer mu.Unlock()
			c.late = append(c.late, h.late...)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	c.took = time.Since(from)
	if len(errs) > 0 {
		return c, fmt.Errorf("%d streams: %w", len(errs), errors.Join(errs[:min(len(errs), 3)]...))
	}
	after, err := y.processor()
	c.processor = after - before
	return c, err
}
