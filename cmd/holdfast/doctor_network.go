package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// seeNetwork says whether the network of a workspace holds, by trying to get out
// of one and into it. Where the sandbox is not usable at all, that is no news.
func (a *app) seeNetwork(usable bool) finding {
	const name = "network"
	path, _ := a.lookup("PATH")
	if _, err := process.FindProgram("bash", "/", "/", path, process.ToolPath(path, nil), nil, false); err != nil {
		return finding{Check: name, How: "warn", Why: "not tried: there is no bash to try it with", Hint: "install bash"}
	}
	dir, err := os.MkdirTemp("", "holdfast-doctor-")
	if err != nil {
		return finding{Check: name, How: "warn", Why: "not tried: " + err.Error(), Hint: "make room for a temporary directory, or set TMPDIR"}
	}
	defer os.RemoveAll(dir)
	n := &networkTrial{word: rand.Text()}
	up, said, err := n.try(a, dir)
	f := okay("every name and every TCP port that a program asks for is Holdfast's, and nothing else gets out or in")
	switch broken := n.broken(said, up.Network); {
	case err != nil:
		f = bad(err)
		if f.Why = "a program with a network did not run: " + f.Why; !usable {
			f.How = "warn"
		}
	case broken != "":
		f = finding{How: "FAIL", Why: broken, Hint: "run programs with --network none, and tell of this: it should not be possible"}
	case up.Network != posture.ReachAll:
		f = warn("a kernel with nf_tables and its tproxy (CONFIG_NFT_TPROXY) leads every port there",
			"nothing gets out or in but to Holdfast, which hears only the ports 80, 443, 7412 and those that egress: names")
	}
	f.Check = name
	return f
}

// networkTrial serves the network of a trial: whoever says its word in it is
// answered with it, the socket, and the address that was meant.
type networkTrial struct {
	word string

	mu   sync.Mutex
	from []string // who came and did not say the word
}

// networkTries are what the program tries, each with its name, its address and
// what is to come of it: the socket that answers, or nothing. TCP and UDP stand
// for the ports of the host's listeners.
var networkTries = [][3]string{
	{"proxy", "tcp/127.0.0.1/7412", "proxy 127.0.0.1:7412"},
	{"web", "tcp/203.0.113.7/443", "meant 203.0.113.7:443"},
	{"metadata", "tcp/169.254.169.254/80", "meant 169.254.169.254:80"},
	{"shell", "tcp/203.0.113.7/22", "meant 203.0.113.7:22"},
	{"names", "udp/203.0.113.7/53", "names"},
	{"quic", "udp/203.0.113.7/443", ""},
	{"the host, by TCP", "tcp/127.0.0.1/TCP", ""},
	{"the host, by UDP", "udp/127.0.0.1/UDP", ""},
}

// try runs a shell that makes the tries, and returns the lines that it printed.
func (n *networkTrial) try(a *app, dir string) (posture.Posture, []string, error) {
	host, err := listenHere()
	if err != nil {
		return posture.Posture{}, nil, err
	}
	defer host.close()
	script := &strings.Builder{}
	script.WriteString(`t() { exec 3<>"/dev/$2" && echo ` + n.word + ` >&3 && l=$(timeout 2 dd bs=1024 count=1 <&3) && test -n "$l" && echo "$1: $l"; exec 3>&-; }` + "\n")
	for _, t := range networkTries {
		fmt.Fprintf(script, "t %q %s\n", t[0], host.at(t[1]))
	}
	script.WriteString("true\n")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return posture.Posture{}, nil, err
	}
	defer null.Close()
	from, to, err := os.Pipe()
	if err != nil {
		return posture.Posture{}, nil, err
	}
	said := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(io.LimitReader(from, 64<<10))
		said <- string(b)
	}()
	network := &sandbox.Network{Authority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("doctor")})}
	up, err := a.tryProgram(dir, []string{"bash", "-c", script.String()}, sandbox.Streams{In: null, Out: to, Err: null}, network, n.serve)
	to.Close()
	lines := strings.Split(strings.TrimSpace(<-said), "\n")
	from.Close()
	return up, lines, err
}

// serve answers at the sockets until they are closed with their network, and
// tries to come in from here.
func (n *networkTrial) serve(ctx context.Context, sockets []*os.File) error {
	for i, f := range sockets {
		if i == 1 {
			pc, err := net.FilePacketConn(f)
			if err != nil {
				return err
			}
			context.AfterFunc(ctx, func() { pc.Close() })
			go n.names(pc)
			continue
		}
		l, err := net.FileListener(f)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { l.Close() })
		go n.accept(l, []string{"proxy", "", "meant"}[min(i, 2)])
		if c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port), time.Second); err == nil {
			c.Close() // somebody of this machine, if it did not come to accept
		}
	}
	return nil
}

func (n *networkTrial) accept(l net.Listener, name string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(runWithin))
			line, _ := bufio.NewReader(io.LimitReader(c, 1024)).ReadString('\n')
			if strings.TrimSpace(line) != n.word {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.from = append(n.from, c.RemoteAddr().String())
				return
			}
			fmt.Fprintf(c, "%s %s %s\n", n.word, name, c.LocalAddr())
		}()
	}
}

func (n *networkTrial) names(pc net.PacketConn) {
	b := make([]byte, 1024)
	for {
		k, from, err := pc.ReadFrom(b)
		if err != nil {
			return
		}
		if strings.TrimSpace(string(b[:k])) == n.word {
			_, _ = pc.WriteTo([]byte(n.word+" names\n"), from)
		}
	}
}

// broken says what does not hold, or nothing.
func (n *networkTrial) broken(said []string, reach posture.Reach) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.from) > 0 {
		return "who is not in a program's network got into it, from " + n.from[0]
	}
	for _, t := range networkTries {
		want := ""
		if t[2] != "" && (reach == posture.ReachAll || t[0] != "shell") {
			want = t[0] + ": " + n.word + " " + t[2]
		}
		at := slices.IndexFunc(said, func(l string) bool { return strings.HasPrefix(l, t[0]+": ") })
		switch {
		case want == "" && at >= 0:
			return fmt.Sprintf("a program reached %s (%s), and was answered %.60q", t[0], t[1], said[at])
		case want != "" && (at < 0 || said[at] != want):
			return fmt.Sprintf("what a program said to %s (%s) did not come to Holdfast, or no answer came back", t[0], t[1])
		}
	}
	return ""
}

// here are two listeners of this machine, that answer whoever comes.
type here struct {
	tcp net.Listener
	udp net.PacketConn
}

func listenHere() (*here, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		l.Close()
		return nil, err
	}
	h := &here{l, pc}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "reached\n")
			c.Close()
		}
	}()
	go func() {
		b := make([]byte, 1024)
		for {
			_, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = pc.WriteTo([]byte("reached\n"), from)
		}
	}()
	return h, nil
}

// at is an address of networkTries with the listeners' ports in it.
func (h *here) at(address string) string {
	address = strings.Replace(address, "/TCP", fmt.Sprintf("/%d", h.tcp.Addr().(*net.TCPAddr).Port), 1)
	return strings.Replace(address, "/UDP", fmt.Sprintf("/%d", h.udp.LocalAddr().(*net.UDPAddr).Port), 1)
}

func (h *here) close() {
	h.tcp.Close()
	h.udp.Close()
}
