package measured

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/daemon"
)

// Role is the role in which this program is a Daemon: STATE CONFIG follow.
const Role = "daemon"

// Memory is what a daemon's memory is made of, in bytes.
type Memory struct {
	Heap  uint64 `json:"heap"`  // what lives
	Stack uint64 `json:"stack"` // of goroutines
	Slack uint64 `json:"slack"` // of the heap, between what lives
}

// Serve is `holdfast up` that answers questions about itself on its
// standard input: "egress", "memory" and "processor", each with one line of JSON.
func Serve(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("expected STATE CONFIG")
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	d, err := daemon.Open(ctx, daemon.Options{State: args[0], Config: args[1], Version: "bench", Log: log})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = d.Serve(ctx, daemon.Serving{Ready: func(string) {
		fmt.Fprintln(out, "listening")
		go func() {
			defer cancel() // whoever measures has gone
			answerQuestions(ctx, d, in, out)
		}()
	}})
	return errors.Join(err, d.Close())
}

func answerQuestions(ctx context.Context, d *daemon.Daemon, in io.Reader, to io.Writer) {
	out := json.NewEncoder(to)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var answer any
		switch lines.Text() {
		case "egress":
			s, err := d.Status(ctx)
			if err != nil {
				return
			}
			answer = s.Egress
		case "processor":
			answer = measure.ProcessorTime()
		case "memory":
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // what the first one only marked as finalised
			runtime.ReadMemStats(&m)
			answer = Memory{m.HeapAlloc, m.StackInuse, m.HeapInuse - m.HeapAlloc}
		}
		if out.Encode(answer) != nil {
			return
		}
	}
}
