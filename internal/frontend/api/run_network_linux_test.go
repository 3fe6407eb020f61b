package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// letting is a kernel that lets everything happen.
type letting struct{ refusing }

func (*letting) Cross(ctx context.Context, _ holdfast.Request, act kernel.Act) (*holdfast.Outcome, error) {
	out, err := act(ctx)
	return &holdfast.Outcome{Verdict: holdfast.Allow, Output: &out}, err
}

// served is a Network that says on each connection whose it is.
type served struct {
	runs  sync.WaitGroup
	ended chan string // of each run that is served no more
}

func (*served) Terms() (sandbox.Network, error) {
	return sandbox.Network{Authority: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}, nil
}

func (n *served) Serve(ctx context.Context, who Runner, s Sockets) error {
	n.runs.Add(1)
	defer n.runs.Done()
	for _, l := range append(s.Meant, s.Proxy) {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				tok, err := who.Token()
				_, _ = io.WriteString(c, errors.Join(err, errors.New(tok.Reveal())).Error())
				_ = c.Close()
			}
		}()
	}
	<-ctx.Done()
	n.ended <- who.Run
	return s.Close()
}

// spaceOf is a network of its own with a loopback, in which do runs functions.
func spaceOf(t *testing.T) (do func(func() error)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a network is made by root alone")
	}
	work, ended := make(chan func() error), make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends, and the network with it
		defer close(ended)
		for f := range work {
			ended <- f()
		}
	}()
	t.Cleanup(func() { close(work); <-ended })
	do = func(f func() error) {
		t.Helper()
		work <- f
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	do(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		lo, err := unix.NewIfreq("lo")
		if err != nil {
			return err
		}
		lo.SetUint16(unix.IFF_UP)
		return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	})
	return do
}

// kindly is a socket to be made: network, address, and what is odd about it.
type kindly struct {
	kind, port int
	odd        string
}

var usual = []kindly{{unix.SOCK_STREAM, sandbox.ProxyPort, ""}, {unix.SOCK_DGRAM, sandbox.NamePort, ""}, {unix.SOCK_STREAM, 443, ""}}

func (k kindly) make() (*os.File, error) {
	protocol := 0
	if k.kind == unix.SOCK_RAW {
		protocol = unix.IPPROTO_RAW
	}
	fd, err := unix.Socket(unix.AF_INET, k.kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	at := &unix.SockaddrInet4{Port: k.port, Addr: [4]byte{127, 0, 0, 1}}
	switch {
	case k.odd == "connected":
		return f, unix.Connect(fd, at)
	case k.odd == "bound nowhere":
		return f, nil
	}
	if err := unix.Bind(fd, at); err != nil {
		return f, err
	}
	if k.kind == unix.SOCK_STREAM && k.odd != "deaf" {
		return f, unix.Listen(fd, 8)
	}
	return f, nil
}

// socketsIn makes the sockets of kinds where do works, and adds others.
func socketsIn(t *testing.T, do func(func() error), kinds []kindly, others ...*os.File) []*os.File {
	t.Helper()
	files := others
	do(func() error {
		for _, k := range kinds {
			f, err := k.make()
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		return nil
	})
	t.Cleanup(func() { closeFiles(files) })
	return files
}

func here(f func() error) {
	if err := f(); err != nil {
		panic(err)
	}
}

// owner serves commands on a socket, with a network.
func owner(t *testing.T) (*Client, *served, *Server) {
	t.Helper()
	n := &served{ended: make(chan string, 64)}
	s := server(&letting{})
	s.Network, s.Own = n, func() []string { return nil }
	s.Secret = func(string) bool { return false }
	s.Mint = func(id holdfast.Identity) (holdfast.Secret, error) {
		return holdfast.NewSecret("the token of " + id.Agent), nil
	}
	sock := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	door := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: time.Second}
	go func() { _ = door.Serve(&Listener{Listener: l}) }()
	t.Cleanup(func() { _ = door.Close() })
	return newClient(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", sock)
	}), n, s
}

// running runs a workspace of an agent whose act is do.
func running(t *testing.T, c *Client, agent string, do func(context.Context, RunTerms) error) *Executed {
	t.Helper()
	got, err := c.Run(t.Context(), RunAsk{Agent: agent, Space: sandbox.Workspace{ID: "run-" + agent, Argv: []string{"/usr/bin/true"}, Tree: t.TempDir()}},
		func(ctx context.Context, terms RunTerms) (*posture.Result, error) {
			return &posture.Result{State: posture.Completed}, do(ctx, terms)
		})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestSocketsOfARun: they are served in the name of the run's agent while it
// lasts, and dead when it has ended, for who has them still, too.
func TestSocketsOfARun(t *testing.T) {
	c, n, _ := owner(t)
	do := spaceOf(t)
	ask := func() (said string) {
		do(func() error {
			conn, err := net.DialTimeout("tcp", "127.0.0.1:443", 2*time.Second)
			if err != nil {
				said = err.Error()
				return nil
			}
			defer conn.Close()
			b, err := io.ReadAll(conn)
			said = string(b)
			return err
		})
		return said
	}
	files := socketsIn(t, do, usual)
	var end time.Time
	running(t, c, "alice", func(ctx context.Context, terms RunTerms) error {
		if terms.Network == nil || terms.Ticket == "" {
			t.Fatalf("the terms: %+v", terms)
		}
		if err := c.HandOver(ctx, terms, files); err != nil {
			t.Error(err)
		}
		if got := ask(); !strings.Contains(got, "the token of alice") {
			t.Errorf("%q", got)
		}
		// Who handed them over can make them wait; the end does not.
		for _, f := range files {
			raw, err := f.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			_ = raw.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), false) })
		}
		if got := ask(); !strings.Contains(got, "the token of alice") {
			t.Errorf("%q", got)
		}
		end = time.Now()
		return nil
	})
	if took := time.Since(end); took > 2*time.Second {
		t.Errorf("the end took %v", took)
	}
	if got := <-n.ended; got != "run-alice" {
		t.Errorf("%s ended", got)
	}
	if got := ask(); !strings.Contains(got, "refused") {
		t.Errorf("after its end: %q", got)
	}
}

// TestTicketsAreOneRuns: without a ticket, with one that was used, and with that
// of a run that has ended, nothing is served; and each serves its own run.
func TestTicketsAreOneRuns(t *testing.T) {
	c, n, s := owner(t)
	do := spaceOf(t)
	files := socketsIn(t, do, usual)
	var old RunTerms
	running(t, c, "alice", func(ctx context.Context, terms RunTerms) error {
		old = terms
		running(t, c, "bob", func(ctx context.Context, other RunTerms) error {
			if other.Ticket == terms.Ticket {
				t.Error("one ticket for two runs")
			}
			for name, ticket := range map[string]string{"none": "", "a guess": strings.Repeat("A", len(terms.Ticket))} {
				if err := c.HandOver(ctx, RunTerms{Ticket: ticket}, files); holdfast.KindOf(err) != holdfast.KindPermission {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := c.HandOver(ctx, other, files); err != nil {
				t.Error(err)
			}
			if err := c.HandOver(ctx, other, files); holdfast.KindOf(err) != holdfast.KindPermission {
				t.Errorf("a second time: %v", err)
			}
			return nil
		})
		if got := <-n.ended; got != "run-bob" {
			t.Errorf("%s ended", got)
		}
		return nil
	})
	if err := c.HandOver(t.Context(), old, files); holdfast.KindOf(err) != holdfast.KindPermission {
		t.Errorf("after its end: %v", err)
	}
	if len(s.handovers.open) != 0 {
		t.Errorf("%d tickets are left", len(s.handovers.open))
	}
}

// TestHostileSockets: what is not the network of a workspace is not served, and
// nothing of it is kept.
func TestHostileSockets(t *testing.T) {
	c, n, _ := owner(t)
	do, other := spaceOf(t), spaceOf(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	local, err := net.Listen("unix", filepath.Join(t.TempDir(), "u"))
	if err != nil {
		t.Fatal(err)
	}
	unixFile, err := local.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close() })
	stream, datagram := usual[2], usual[1]
	for name, files := range map[string]func() []*os.File{
		"none":            func() []*os.File { return nil },
		"no names":        func() []*os.File { return socketsIn(t, do, []kindly{usual[0], stream}) },
		"no proxy":        func() []*os.File { return socketsIn(t, do, []kindly{datagram, stream}) },
		"nobody meant":    func() []*os.File { return socketsIn(t, do, usual[:2]) },
		"of this machine": func() []*os.File { return socketsIn(t, here, []kindly{{unix.SOCK_STREAM, 0, ""}}) },
		"one of this machine": func() []*os.File {
			return append(socketsIn(t, do, usual), socketsIn(t, here, []kindly{{unix.SOCK_STREAM, 0, ""}})...)
		},
		"of two networks":  func() []*os.File { return append(socketsIn(t, do, usual), socketsIn(t, other, []kindly{stream})...) },
		"a file":           func() []*os.File { return socketsIn(t, do, usual, null) },
		"a local socket":   func() []*os.File { return socketsIn(t, do, usual, unixFile) },
		"one that is deaf": func() []*os.File { return socketsIn(t, do, append([]kindly{{unix.SOCK_STREAM, 80, "deaf"}}, usual...)) },
		"a raw one": func() []*os.File {
			return socketsIn(t, do, append([]kindly{{unix.SOCK_RAW, 0, "bound nowhere"}}, usual...))
		},
		"connected datagrams": func() []*os.File {
			return socketsIn(t, do, append([]kindly{{unix.SOCK_DGRAM, 99, "connected"}}, usual...))
		},
		"other datagrams": func() []*os.File { return socketsIn(t, do, append([]kindly{{unix.SOCK_DGRAM, 99, ""}}, usual...)) },
		"names twice": func() []*os.File {
			f := socketsIn(t, do, usual)
			return append(f, f[1])
		},
		"the proxy twice": func() []*os.File {
			f := socketsIn(t, do, usual)
			return append(f, f[0])
		},
		"too many": func() []*os.File {
			f := socketsIn(t, do, usual)
			for len(f) <= maxSockets {
				f = append(f, f[2])
			}
			return f
		},
	} {
		t.Run(name, func(t *testing.T) {
			running(t, c, "mallory", func(ctx context.Context, terms RunTerms) error {
				list := files()
				before := descriptorsOf(t)
				err := c.HandOver(ctx, terms, list)
				if holdfast.KindOf(err) != holdfast.KindUsage && name != "none" || err == nil {
					t.Errorf("%v", err)
				}
				for range 200 {
					if descriptorsOf(t) <= before {
						break
					}
					time.Sleep(5 * time.Millisecond)
				}
				if now := descriptorsOf(t); now > before {
					t.Errorf("%d descriptors, %d before", now, before)
				}
				closeFiles(list)
				return nil
			})
		})
	}
	if len(n.ended) != 0 {
		t.Error("something was served")
	}
}

func descriptorsOf(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestNetworkThatIsAskedFor: what a run gets of what it asks for.
func TestNetworkThatIsAskedFor(t *testing.T) {
	s := server(&letting{})
	for _, c := range []struct {
		asked string
		have  Network
		want  string // "a network", none, or why not
	}{
		{"", nil, "none"}, {NetworkNone, nil, "none"}, {NetworkProxy, nil, "no way out to offer"},
		{"", &served{}, "a network"}, {NetworkNone, &served{}, "none"}, {NetworkProxy, &served{}, "a network"},
		{"", broken{}, "it broke"}, {NetworkProxy, broken{}, "it broke"}, {"host", &served{}, "there is no network"},
	} {
		s.Network = c.have
		n, why, err := s.network(c.asked)
		got := why
		switch {
		case err != nil:
			got = err.Error()
		case n != nil:
			got = "a network"
		case why == "":
			got = "none"
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q of %T: %q, want %q", c.asked, c.have, got, c.want)
		}
	}
}

type broken struct{ *served }

func (broken) Terms() (sandbox.Network, error) {
	return sandbox.Network{}, &holdfast.Error{Kind: holdfast.KindInternal, Why: "it broke"}
}
