//go:build linux

package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// echoing serves the sockets of a network: it answers each first line with the
// socket that heard it and the address that was meant, and each datagram with
// itself.
type echoing struct {
	t      *testing.T
	listed bool // only the listed ports are led to it

	mu    sync.Mutex
	conns []net.Listener
	names net.PacketConn
	heard []string // what came to the names' socket
}

func (e *echoing) hand(_ context.Context, sockets []*os.File) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, f := range sockets {
		if i == 1 {
			pc, err := net.FilePacketConn(f)
			if err != nil {
				return err
			}
			e.names = pc
			go e.answer(pc)
			continue
		}
		l, err := net.FileListener(f)
		if err != nil {
			return err
		}
		e.conns = append(e.conns, l)
		go e.accept(l, []string{"proxy", "", "any"}[min(i, 2)])
	}
	return nil
}

func (e *echoing) accept(l net.Listener, name string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			in := bufio.NewReader(c)
			line, _ := in.ReadString('\n')
			if line == "all of it\n" {
				_, _ = io.Copy(c, in)
				return
			}
			fmt.Fprintf(c, "%s %s %s\n", name, c.LocalAddr(), strings.TrimSpace(line))
		}()
	}
}

func (e *echoing) answer(pc net.PacketConn) {
	b := make([]byte, 4096)
	for {
		n, from, err := pc.ReadFrom(b)
		if err != nil {
			return
		}
		e.mu.Lock()
		e.heard = append(e.heard, string(b[:n]))
		e.mu.Unlock()
		_, _ = pc.WriteTo(b[:n], from)
	}
}

// port is where the listener i listens.
func (e *echoing) port(i int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprint(e.conns[i].Addr().(*net.TCPAddr).Port)
}

func (e *echoing) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.conns {
		_ = l.Close()
	}
	if e.names != nil {
		_ = e.names.Close()
	}
}

// connected gives a workspace a network.
func connected(w *sandbox.Workspace) {
	w.Network = &sandbox.Network{Authority: []byte(anAuthority), Ports: []uint16{8443}}
}

const anAuthority = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

// askingNet is what the programs of these tests begin with: each function says in a
// word what came of it.
const askingNet = `
import errno,random,socket,struct,sys
def word(do):
    try: return do()
    except OSError as e: return errno.errorcode.get(e.errno, str(e))
def tcp(at, port, family=socket.AF_INET):
    def do():
        with socket.socket(family) as s:
            s.settimeout(3); s.connect((at, port)); s.sendall(b"hi\n")
            return s.makefile().readline().strip()
    return word(do)
def udp(at, port, text=b"datagram", family=socket.AF_INET):
    def do():
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.settimeout(0.5); s.connect((at, port)); s.send(text)
            return s.recv(65536).decode("latin1")
    return word(do)
`

// program runs text as a program in a workspace with a network, and returns the
// lines that it printed.
func (e *echoing) program(text string, args ...string) []string {
	e.t.Helper()
	got := e.run(askingNet+text, args...)
	if got.ExitCode != 0 {
		e.t.Fatalf("exit code %d, %s, %+v\n%s%s", got.ExitCode, got.Reason, got.Call, got.out, got.errs)
	}
	return strings.Split(strings.TrimSuffix(got.out, "\n"), "\n")
}

func (e *echoing) run(text string, args ...string) said {
	e.t.Helper()
	w := OpenWorkspaces()
	defer w.Close()
	w.listed = e.listed
	got, err := tryWorkOn(e.t, e.t.Context(), w, e.hand, repository(e.t), "", "", connected, func(w *sandbox.Workspace) {
		w.Argv = append([]string{"/usr/bin/python3", "-c", text}, args...)
	})
	if err != nil {
		e.t.Fatal(err)
	}
	if want := e.reach(); got.Posture.Network != want {
		e.t.Errorf("the posture says %q, want %q", got.Posture.Network, want)
	}
	return got
}

// reach is how far the network is meant to reach here.
func (e *echoing) reach() posture.Reach {
	if e.listed {
		return posture.ReachPorts
	}
	return posture.ReachAll
}

// inNetworks runs do with somebody who serves networks: as root, as an ordinary
// user, and where the kernel leads only the listed ports to him.
func inNetworks(t *testing.T, do func(*echoing)) {
	runRootless(t)
	always := []string{"TestNetwork_Accept1", "TestNetwork_Invariant1", "TestNetwork_Invariant2"}
	both := testrepeat.Enduring || slices.Contains(always, t.Name())
	for _, listed := range []bool{false, true} {
		if listed && !both {
			continue
		}
		t.Run(map[bool]string{false: "every port", true: "listed ports"}[listed], func(t *testing.T) {
			e := &echoing{t: t, listed: listed}
			defer e.close()
			do(e)
		})
	}
}

// outside are sockets of the host that answer whoever comes: by TCP, by UDP, and
// by an abstract name.
type outside struct {
	tcp, udp int
	abstract string
	addrs    []string // of the host, beside its loopback
}

func outsideOf(t *testing.T) outside {
	t.Helper()
	o := outside{abstract: "holdfast-network-" + filepath.Base(t.TempDir()) + t.Name()}
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	a, err := net.Listen("unix", "@"+o.abstract)
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); a.Close(); pc.Close() })
	for _, l := range []net.Listener{l, a} {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				io.WriteString(c, "reached the host\n")
				c.Close()
			}
		}()
	}
	go func() {
		b := make([]byte, 2048)
		for {
			_, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			pc.WriteTo([]byte("reached the host"), from)
		}
	}()
	o.tcp, o.udp = l.Addr().(*net.TCPAddr).Port, pc.LocalAddr().(*net.UDPAddr).Port
	nets, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nets {
		if p, ok := n.(*net.IPNet); ok && p.IP.To4() != nil && !p.IP.IsLoopback() {
			o.addrs = append(o.addrs, p.IP.String())
		}
	}
	return o
}

// twin runs the same program on the host.
func twin(t *testing.T, text string, args ...string) string {
	t.Helper()
	b, err := exec.Command("/usr/bin/python3", append([]string{"-c", askingNet + text}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("outside: %v\n%s", err, b)
	}
	return string(b)
}
