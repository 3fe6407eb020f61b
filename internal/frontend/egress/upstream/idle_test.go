package upstream

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// TestBad_WaitingForTheClientIsNoSilence: the limit is the upstream's, and not
// of a client that takes its time.
func TestBad_WaitingForTheClientIsNoSilence(t *testing.T) {
	const limit, pieces = time.Second, 10
	read := func(t *testing.T, server, client time.Duration) (gave int, err error) {
		d := &domain.Domain{Name: "plain.test", Idle: limit}
		ctx, cancel := context.WithCancelCause(t.Context())
		in, out := io.Pipe()
		defer context.AfterFunc(ctx, func() { out.CloseWithError(context.Cause(ctx)) })()
		ended := make(chan struct{})
		defer func() { cancel(nil); <-ended }()
		go func() {
			defer close(ended)
			defer out.Close()
			for range pieces {
				time.Sleep(server)
				if _, err := io.WriteString(out, strings.Repeat("word ", 200)); err != nil {
					return
				}
			}
		}()
		resp := &http.Response{StatusCode: 200, ContentLength: -1, Header: http.Header{"Content-Type": {"text/plain"}}, Body: in}
		wait := &wait{}
		wait.timer = time.AfterFunc(limit, func() { wait.over(cancel) })
		wait.timer.Stop()
		wait.answered(d, resp, func() { cancel(nil) })
		for buf := make([]byte, 1000); ; time.Sleep(client) {
			n, err := resp.Body.Read(buf)
			gave += n
			if err == io.EOF {
				return gave, nil
			} else if err != nil {
				return gave, err
			}
		}
	}
	for name, c := range map[string]struct {
		server, client time.Duration
		kind           holdfast.Kind
	}{
		"the client takes its time":               {0, 10 * limit, ""},
		"both do, and the upstream is within it":  {limit - 1, 10 * limit, ""},
		"the upstream is silent":                  {limit + 1, 0, holdfast.KindTimeout},
		"the upstream is silent, the client slow": {limit + 1, 10 * limit, holdfast.KindTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gave, err := read(t, c.server, c.client)
				if holdfast.KindOf(err) != c.kind || c.kind == "" && gave != pieces*1000 {
					t.Errorf("%d bytes, %v", gave, err)
				}
			})
		})
	}
}
