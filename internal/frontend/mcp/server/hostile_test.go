package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// hostileServer is a server that answers the handshake and its list, and then
// does to a call what its first argument says. It is a script of the shell: it
// starts fast, and many times.
const hostileServer = `
how=$1
done='{"content":[{"type":"text","text":"done"}]}'
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r l; do
	case $l in *'"id":'*) ;; *) continue ;; esac
	id=${l#*'"id":'}; id=${id%%[,\}]*}
	case $l in
	*'"method":"initialize"'*)
		answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"h","version":"1"}}' ;;
	*'"method":"tools/list"'*)
		answer '{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}' ;;
	*'"method":"tools/call"'*)
		case $how in
		floods)
			noise=yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy
			noise=$noise$noise$noise$noise$noise$noise$noise$noise
			noise=$noise$noise$noise$noise$noise$noise$noise$noise
			while printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}\n' $noise; do :; done
			exit 0 ;;
		hangs) ;;
		lies*) for lie in 999999 null "\"$id\"" -1 "${id}0"; do printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$lie" "$done"; done ;;
		*twice) answer "$done"; answer '{"content":[{"type":"text","text":"second"}]}' ;;
		dies) echo "out of memory" >&2; exit 3 ;;
		deaf) exec <&- >&-; sleep 60 ;;
		half*) printf '{"jsonrpc":"2.0","id":%s,"resu' "$id"; case $how in *dies) exit 0 ;; esac ;;
		changes*) echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; answer "$done" ;;
		*) answer "$done" ;;
		esac ;;
	*) answer '{}' ;;
	esac
done
`

func hostileCommand(how string) Command {
	return Command{Name: "h", Argv: []string{"/bin/sh", "-c", hostileServer, "hostile", how}, Grace: 20 * time.Millisecond}
}

// life is one client's: it greets, calls, gets an answer or cancels, and goes.
// It returns the line that answered the call, or "", and how Serve ended.
func life(k *gatewaytest.Open, dial func(context.Context) (*Process, error), wait time.Duration) (answer string, served error, err error) {
	p, err := dial(context.Background())
	if err != nil {
		return "", nil, err
	}
	ours, theirs := net.Pipe()
	end := make(chan error, 1)
	go func() {
		end <- gateway.Serve(context.Background(), gateway.Lines(theirs), p, gateway.Config{Kernel: k, Server: "h",
			Token: gatewaytest.Token})
	}()
	got, greeted := make(chan string, 1), make(chan bool, 1)
	go func() {
		defer close(got)
		for r := bufio.NewScanner(ours); r.Scan(); {
			switch l := r.Text(); {
			case strings.Contains(l, `"id":1`):
				greeted <- true
			case strings.Contains(l, `"id":2`):
				got <- l
			}
		}
	}()
	say := func(l string) { _, _ = io.WriteString(ours, l+"\n") }
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	select {
	case <-greeted:
	case <-time.After(time.Minute):
		err = errors.New("no greeting")
	}
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"act","arguments":{}}}`)
	select {
	case answer = <-got:
	case <-time.After(wait):
		say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	}
	ours.Close()
	served = <-end
	for range got { // until the reader has gone
	}
	return answer, served, err
}

// TestHostileServers puts each through the gateway many times, as processes of
// their own, and then nothing is under way, running, or open.
func TestHostileServers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts files and children under /proc")
	}
	n := testrepeat.Times(1000, 5) // a deaf one a tenth of it
	for role, want := range map[string]string{
		"floods": "", "hangs": "", "lies about ids": "", "half a line": "",
		"answers twice": "done", "changes tools": "done", "kind": "done",
		"dies": "the MCP server ended", "deaf": "the MCP server ended", "half a line, dies": "the MCP server",
	} {
		t.Run(role, func(t *testing.T) {
			n, wait := n, time.Minute
			at := 4
			if role == "deaf" { // each is waited for, then signalled
				n, at = max(n/10, 5), 32
			}
			if want == "" {
				wait = 20 * time.Millisecond
			}
			c := hostileCommand(role)
			dial := func(context.Context) (*Process, error) { return Start(c) }
			k := &gatewaytest.Open{}
			if _, _, err := life(k, dial, wait); err != nil {
				t.Fatal(err)
			}
			before := inventory(t)
			var wg sync.WaitGroup
			var next atomic.Int64
			for range at {
				wg.Go(func() {
					for next.Add(1) <= int64(n) {
						got, served, err := life(k, dial, wait)
						if err != nil || !strings.Contains(got, want) || (want == "" && got != "") {
							t.Errorf("got %q, %v, %v", got, served, err)
							return
						}
					}
				})
			}
			wg.Wait()
			// A call that is cancelled in time is never made.
			if k.Under.Load() != 0 || k.Acted.Load() > int64(n)+1 || k.Acted.Load() < int64(n)/2 || (want != "" && k.Acted.Load() <= int64(n)) {
				t.Errorf("%d calls under way, %d made", k.Under.Load(), k.Acted.Load())
			}
			before.nothingMore(t)
		})
	}
}

// goods is what this process has: goroutines, files, children.
type goods struct{ goroutines, files, children int }

func inventory(t *testing.T) goods {
	t.Helper()
	g := goods{goroutines: runtime.NumGoroutine()}
	es, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	g.files = len(es)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		g.children += len(strings.Fields(string(b)))
	}
	return g
}

func (was goods) nothingMore(t *testing.T) {
	t.Helper()
	eventually(t, fmt.Sprintf("something is left of %+v", was), func() bool {
		is := inventory(t)
		return is.goroutines <= was.goroutines && is.files <= was.files && is.children <= was.children
	})
	if is := inventory(t); is.goroutines > was.goroutines || is.files > was.files || is.children > was.children {
		t.Errorf("there is %+v, there was %+v", is, was)
	}
}

// TestKeptThroughDeaths: clients of one endpoint, one after the other, each get
// a server though each kills it; then the endpoint says why not.
func TestKeptThroughDeaths(t *testing.T) {
	k, c := keeper("", nil)
	k.command.Argv = hostileCommand("dies").Argv
	for i := range maxEnds {
		got, served, err := life(&gatewaytest.Open{}, k.Dial, 30*time.Second)
		if err != nil || !errors.Is(served, gateway.ErrServerEnded) || !strings.Contains(got, "the MCP server ended") {
			t.Fatalf("life %d: %q, %v, %v", i, got, served, err)
		}
	}
	if len(c.slept) != maxEnds-1 {
		t.Errorf("slept %v", c.slept)
	}
	if _, _, err := life(&gatewaytest.Open{}, k.Dial, time.Second); err == nil || !strings.Contains(err.Error(), "it said last: out of memory") {
		t.Errorf("got %v", err)
	}
}
