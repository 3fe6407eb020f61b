//go:build linux

package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestNetwork_Invariant1: whatever address and port a program connects to, it
// comes to Holdfast or nowhere, and never to anybody of the host.
func TestNetwork_Invariant1(t *testing.T) {
	t.Parallel()
	inNetworks(t, func(e *echoing) {
		o := outsideOf(e.t)
		const text = `
port, listed, addrs = int(sys.argv[1]), sys.argv[2] == "true", sys.argv[3:]
for at in ["127.0.0.1"] + addrs: print(at, port, tcp(at, port))
if len(sys.argv) > 3 and addrs[-1] == "outside": sys.exit()
random.seed(1)
for at in ["169.254.169.254", "10.0.0.1", "192.168.1.1", "198.18.0.1", "0.0.0.1", "100.64.0.1", "240.0.0.1", "128.0.0.1", "126.255.255.255"]:
    for p in [1, 22, 25, 53, 80, 443, 7412, 8443, 65535]: print(at, p, tcp(at, p))
for i in range(200):
    at, p = socket.inet_ntoa(struct.pack(">I", random.randrange(1 << 24, 224 << 24))), random.randrange(1, 65536)
    print(at, p, tcp(at, p))
`
		if got := twin(e.t, text, fmt.Sprint(o.tcp), "false", "outside"); !strings.Contains(got, "reached the host") {
			e.t.Fatalf("outside it does not get through either: %s", got)
		}
		lines := e.program(text, append([]string{fmt.Sprint(o.tcp), fmt.Sprint(e.listed)}, o.addrs...)...)
		if len(lines) != 1+len(o.addrs)+81+200 {
			e.t.Fatalf("%d lines: %q", len(lines), lines)
		}
		for _, l := range lines {
			at, rest, _ := strings.Cut(l, " ")
			port, got, _ := strings.Cut(rest, " ")
			want := "any " + at + ":" + port + " hi"
			if strings.HasPrefix(at, "127.") || e.listed && !slices.Contains([]string{"80", "443", "8443"}, port) {
				want = "ECONNREFUSED"
			}
			if got != want {
				e.t.Errorf("%s:%s: %q, want %q", at, port, got, want)
			}
		}
	})
}

// TestNetwork_Accept1: what a program that knows of the proxy says goes there,
// and so does what one says that knows of none; each finds whom it meant.
func TestNetwork_Accept1(t *testing.T) {
	t.Parallel()
	inNetworks(t, func(e *echoing) {
		want := []string{"proxy 127.0.0.1:7412 hi", "any 203.0.113.7:443 hi", "any 203.0.113.7:80 hi", "any 203.0.113.7:8443 hi"}
		got := e.program(`for p in [("127.0.0.1", 7412)] + [("203.0.113.7", p) for p in (443, 80, 8443)]: print(tcp(*p))`)
		if !slices.Equal(got, want) {
			e.t.Errorf("%q", got)
		}
	})
}

// TestNetwork_DirectPackets: what is no TCP goes nowhere, though outside it does.
func TestNetwork_DirectPackets(t *testing.T) {
	t.Parallel()
	inNetworks(t, func(e *echoing) {
		o := outsideOf(e.t)
		const text = `
port, abstract, addrs = int(sys.argv[1]), "\0" + sys.argv[2], sys.argv[3:]
def make(*how): return word(lambda: socket.socket(*how) and "made")
def local():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(abstract); return s.makefile().readline().strip()
for at in ["127.0.0.1"] + addrs: print("udp", udp(at, port))
print("abstract", word(local))
print("quic", udp("203.0.113.7", 443))
print("ntp", udp("203.0.113.7", 123))
print("multicast", udp("224.0.0.251", 5353))
print("v6", tcp("2001:db8::1", 443, socket.AF_INET6), udp("2001:db8::1", 443, family=socket.AF_INET6))
print("mapped", tcp("::ffff:203.0.113.7", 443, socket.AF_INET6).replace("::ffff:", ""))
print("ping", make(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP))
print("raw icmp", make(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
print("raw ip", make(socket.AF_INET, socket.SOCK_RAW, 255))
print("sctp", make(socket.AF_INET, socket.SOCK_STREAM, 132))
print("packet", make(17, socket.SOCK_RAW, 0x300))
print("netfilter", make(16, socket.SOCK_RAW, 12))
`
		if got := twin(e.t, text, fmt.Sprint(o.udp), o.abstract); !strings.Contains(got, "udp reached the host") || !strings.Contains(got, "abstract reached the host") {
			e.t.Fatalf("outside it does not get through either: %s", got)
		}
		want := map[string]string{"abstract": "ECONNREFUSED", "quic": "ECONNREFUSED", "ntp": "ECONNREFUSED", "v6": "ENETUNREACH ENETUNREACH", "mapped": "any 203.0.113.7:443 hi",
			"ping": "EACCES", "raw icmp": "EPERM", "raw ip": "EPROTONOSUPPORT", "sctp": "EPROTONOSUPPORT", "packet": "EACCES", "netfilter": "EACCES", "udp": "ECONNREFUSED",
			"multicast": "EINVAL"}
		for _, l := range e.program(text, append([]string{fmt.Sprint(o.udp), o.abstract}, o.addrs...)...) {
			for name, w := range want {
				if rest, ok := strings.CutPrefix(l, name+" "); ok && rest != w {
					e.t.Errorf("%s: %q, want %q", name, rest, w)
				}
			}
		}
	})
}

// TestNetwork_OtherFamilies: sockets that reach the machine by another way than a
// network end the run.
func TestNetwork_OtherFamilies(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"vsock": "socket.socket(40, 1)", "xdp": "socket.socket(44, 3)", "crypto": "socket.socket(38, 5)"} {
		t.Run(name, func(t *testing.T) {
			e := &echoing{t: t}
			defer e.close()
			if got := e.run("import socket; " + text); got.Reason != posture.ReasonEscape || got.Call == nil || got.Call.Name != "socket" {
				t.Errorf("%s %+v %q", got.Reason, got.Call, got.errs)
			}
		})
	}
}

// TestNetwork_CannotBeTurnedOff: a program changes none of what its network is
// made of, and after all tries comes to Holdfast as before.
func TestNetwork_CannotBeTurnedOff(t *testing.T) {
	t.Parallel()
	inNetworks(t, func(e *echoing) {
		lines := e.program(`
import ctypes, fcntl, os
def message(kind, body):
    with socket.socket(16, socket.SOCK_RAW, 0) as s:
        s.bind((0, 0)); s.send(struct.pack("=IHHII", 16+len(body), kind, 0x605, 1, 0) + body)
        return errno.errorcode.get(-struct.unpack("=i", s.recv(8192)[16:20])[0], "done")
lo = struct.pack("=HHI", 8, 4, 1)
print("the route", word(lambda: message(25, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 255, 3, 254, 2, 0) + lo)))
print("another route", word(lambda: message(24, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + lo)))
print("the loopback", word(lambda: message(16, struct.pack("=BBHiII", 0, 0, 0, 1, 0, 1))))
print("another interface", word(lambda: message(16, struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0) + struct.pack("=HH8s", 12, 3, b"dummy0"))))
print("an address", word(lambda: message(20, struct.pack("=BBBBI", 2, 8, 0, 0, 1) + struct.pack("=HH4s", 8, 2, bytes([10, 0, 0, 1])))))
print("a rule", word(lambda: message(32, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 0, 0, 1, 0))))
def option(level, name, value):
    with socket.socket() as s: s.setsockopt(level, name, value); return "done"
print("transparent", word(lambda: option(0, 19, 1)))
print("mark", word(lambda: option(1, 36, struct.pack("=I", 1))))
def flags():
    with socket.socket() as s: return fcntl.ioctl(s, 0x8914, struct.pack("16sH22x", b"lo", 0)) and "done"
print("flags", word(flags))
def hear(at, port, *options):
    with socket.socket() as s:
        for o in options: s.setsockopt(1, o, 1)
        s.bind((at, port)); s.listen(); return "done"
for p in (53, 80, 443): print("port", p, word(lambda: hear("0.0.0.0", p)))
print("port 7412", word(lambda: hear("127.0.0.1", 7412)))
print("port 7412 shared", word(lambda: hear("127.0.0.1", 7412, 2, 15)))
def names():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(1, 2, 1); s.setsockopt(1, 15, 1); s.bind(("127.0.0.1", 53)); return "done"
print("names", word(names))
for f in "/etc/resolv.conf", "/etc/hosts", "/etc/holdfast.crt", "/etc/ssl/certs/ca-certificates.crt", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_unprivileged_port_start":
    print("file", word(lambda: open(f, "a").write("x")), word(lambda: os.unlink(f)), word(lambda: os.rename("/tmp/x", f)))
l = ctypes.CDLL(None, use_errno=True)
print("rights", l.capget(struct.pack("=II", 0x20080522, 0), (b := ctypes.create_string_buffer(24))) or b.raw.strip(b"\0"))
print("still", tcp("203.0.113.7", 443), udp("203.0.113.7", 53))
`)
		if want := "still any 203.0.113.7:443 hi datagram"; lines[len(lines)-1] != want {
			e.t.Errorf("%q, want %q", lines[len(lines)-1], want)
		}
		for _, l := range lines[:len(lines)-1] {
			if strings.Contains(l, "done") || !strings.ContainsAny(l, "E") && !strings.HasSuffix(l, "b''") {
				e.t.Errorf("it was done: %s", l)
			}
		}
	})
}

// TestNetwork_CannotBeLeft: who tries to get into another network ends the run.
func TestNetwork_CannotBeLeft(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"unshare": "l.unshare(0x40000000)",
		"setns":   "l.setns(os.open('/proc/self/ns/net', 0), 0x40000000)",
		"clone":   "l.syscall(56, 0x50000011, 0, 0, 0, 0)",
	} {
		t.Run(want, func(t *testing.T) {
			e := &echoing{t: t}
			defer e.close()
			got := e.run("import ctypes,os; l=ctypes.CDLL(None); print(" + text + ")")
			if got.Reason != posture.ReasonEscape || got.Call == nil || got.Call.Name != want {
				t.Errorf("%s %+v %q %q", got.Reason, got.Call, got.out, got.errs)
			}
		})
	}
}

// TestNetwork_OwnServers: a program's own servers on its loopback are its own, by
// both protocols and by name.
func TestNetwork_OwnServers(t *testing.T) {
	t.Parallel()
	inNetworks(t, func(e *echoing) {
		got := e.program(`
import threading
def serve(family, at):
    s = socket.socket(family); s.bind((at, 0)); s.listen()
    def one():
        c, _ = s.accept(); c.makefile().readline(); c.sendall(b"own\n"); c.close()
    threading.Thread(target=one, daemon=True).start()
    return s.getsockname()[1]
print(tcp("127.0.0.1", serve(socket.AF_INET, "127.0.0.1")))
print(tcp("127.1.2.3", serve(socket.AF_INET, "0.0.0.0")))
print(tcp("::1", serve(socket.AF_INET6, "::1"), socket.AF_INET6))
print(tcp("localhost", serve(socket.AF_INET, "127.0.0.1")))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind(("127.0.0.1", 0)); s.sendto(b"own", s.getsockname()); print(s.recv(10).decode())
`)
		if !slices.Equal(got, []string{"own", "own", "own", "own", "own"}) {
			e.t.Errorf("%q", got)
		}
	})
}

// TestNetwork_Invariant2: neither the host nor another workspace gets in, not to
// a server of the program and not to Holdfast's sockets, though the program does.
func TestNetwork_Invariant2(t *testing.T) {
	inNetworks(t, inbound)
}

// TestNetwork_Accept3: there is no interface by which anybody could come in, and
// nobody does.
func TestNetwork_Accept3(t *testing.T) {
	inNetworks(t, func(e *echoing) {
		got := e.program(`
import os
print([n for _, n in socket.if_nameindex()])
print(sorted(l.split()[0] for l in open("/proc/net/route").read().splitlines()[1:]))
print(open("/proc/net/if_inet6").read().split()[0::6])
`)
		want := []string{"['lo']", "[]", "['00000000000000000000000000000001']"}
		if !slices.Equal(got, want) {
			e.t.Errorf("%q, want %q", got, want)
		}
		in := &echoing{t: e.t, listed: e.listed}
		defer in.close()
		inbound(in)
	})
}

func inbound(e *echoing) {
	tree := repository(e.t)
	ready, stop := filepath.Join(tree, "ready"), filepath.Join(tree, "stop")
	ended := make(chan said, 1)
	go func() {
		w := OpenWorkspaces()
		defer w.Close()
		w.listed = e.listed
		got, err := tryWorkOn(e.t, e.t.Context(), w, e.hand, tree, "", "", connected, func(w *sandbox.Workspace) {
			w.Timeout = time.Minute
			w.Argv = []string{"/usr/bin/python3", "-c", askingNet + `
import os, threading, time
s = socket.socket(); s.bind(("0.0.0.0", 0)); s.listen()
def serve():
    while True:
        c, _ = s.accept(); c.sendall(b"in\n"); c.close()
threading.Thread(target=serve, daemon=True).start()
print(tcp("127.0.0.1", s.getsockname()[1]))
open("ready.new", "w").write(str(s.getsockname()[1])); os.rename("ready.new", "ready")
while not os.path.exists("stop"): time.sleep(0.01)
`}
		})
		if err != nil {
			e.t.Error(err)
		}
		ended <- got
	}()
	port := eventually(e.t, ready)
	defer func() {
		if err := os.WriteFile(stop, nil, 0o644); err != nil {
			e.t.Fatal(err)
		}
		if got := <-ended; got.out != "in\n" {
			e.t.Errorf("inside it is not reached either: %q %q", got.out, got.errs)
		}
	}()
	for _, p := range []string{port, "7412", e.port(1)} {
		for _, at := range append([]string{"127.0.0.1"}, outsideOf(e.t).addrs...) {
			c, err := net.DialTimeout("tcp", net.JoinHostPort(at, p), time.Second)
			if err != nil {
				continue
			}
			// A server of the host's may have the same port: the program's says "in".
			c.SetDeadline(time.Now().Add(time.Second))
			said, _ := io.ReadAll(io.LimitReader(c, 3))
			if c.Close(); string(said) == "in\n" || p != port && c.LocalAddr().String() != c.RemoteAddr().String() {
				e.t.Errorf("the host got in, by %s: %q", c.RemoteAddr(), said)
			}
		}
	}
	other := &echoing{t: e.t, listed: e.listed}
	defer other.close()
	if got := other.program("print(tcp('127.0.0.1', int(sys.argv[1])))", port); got[0] != "ECONNREFUSED" {
		e.t.Errorf("another workspace got in: %q", got)
	}
}

// eventually is what a file says once it is there.
func eventually(t *testing.T, file string) string {
	t.Helper()
	for range 2000 {
		if b, err := os.ReadFile(file); err == nil {
			return string(b)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal(file + " does not come")
	return ""
}

// TestNetwork_Accept4: what Holdfast answers on a connection that a program made
// is delivered, as much as it is, both ways at once.
func TestNetwork_Accept4(t *testing.T) {
	t.Parallel()
	inNetworks(t, func(e *echoing) {
		got := e.program(`
import hashlib, threading
for at, port in ("127.0.0.1", 7412), ("203.0.113.7", 443):
    s = socket.create_connection((at, port)); data = random.randbytes(4 << 20); s.sendall(b"all of it\n")
    def feed(): s.sendall(data); s.shutdown(socket.SHUT_WR)
    threading.Thread(target=feed).start()
    back = b""
    while chunk := s.recv(65536): back += chunk
    print(back == data)
`)
		if !slices.Equal(got, []string{"True", "True"}) {
			e.t.Errorf("%q", got)
		}
	})
}

// TestNetwork_Names: whichever server a program asks, by whatever name, the
// question comes to Holdfast and goes nowhere else.
func TestNetwork_Names(t *testing.T) {
	t.Parallel()
	inNetworks(t, func(e *echoing) {
		long := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + ".example"
		e.program(`
import subprocess
for name in sys.argv[1:]: subprocess.run(["getent", "ahostsv4", name])
for at in "8.8.8.8", "203.0.113.7": print(udp(at, 53, b"question to " + at.encode()))
`, "host.example", long)
		e.mu.Lock()
		heard := strings.Join(e.heard, "\n")
		e.mu.Unlock()
		for _, want := range []string{"\x04host\x07example", "\x3f" + strings.Repeat("b", 63), "question to 8.8.8.8", "question to 203.0.113.7"} {
			if !strings.Contains(heard, want) {
				e.t.Errorf("%q was not asked here", want)
			}
		}
	})
}

// TestNetwork_Failure1: where nobody serves any more, nothing gets out.
func TestNetwork_Failure1(t *testing.T) {
	t.Parallel()
	inNetworks(t, func(e *echoing) {
		w := OpenWorkspaces()
		defer w.Close()
		w.listed = e.listed
		got, err := tryWorkOn(e.t, e.t.Context(), w, func(context.Context, []*os.File) error { return nil }, repository(e.t), "", "", connected, func(w *sandbox.Workspace) {
			w.Argv = []string{"/usr/bin/python3", "-c", askingNet + `print(tcp("127.0.0.1", 7412), tcp("203.0.113.7", 443), tcp("203.0.113.7", 22), udp("203.0.113.7", 53))`}
		})
		if err != nil || got.out != strings.TrimSpace(strings.Repeat("ECONNREFUSED ", 4))+"\n" {
			e.t.Errorf("%v %q %q", err, got.out, got.errs)
		}
	})
}

// TestNetwork_NobodyServes: without somebody who takes the sockets nothing runs,
// nor where he will not.
func TestNetwork_NobodyServes(t *testing.T) {
	t.Parallel()
	for name, hand := range map[string]Hand{"nobody": nil, "refused": func(context.Context, []*os.File) error { return os.ErrPermission }} {
		t.Run(name, func(t *testing.T) {
			w := OpenWorkspaces()
			defer w.Close()
			got, err := tryWorkOn(t, t.Context(), w, hand, repository(t), "echo ran", "", connected)
			if err == nil || strings.Contains(got.out, "ran") {
				t.Errorf("%v %q", err, got.out)
			}
		})
	}
}

// TestNetwork_LeavesNothing: a hundred runs leave no descriptor, process or
// network behind; the sockets are dead for who still holds them.
func TestNetwork_LeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	count := func() (fds, procs, nets int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		all, _ := filepath.Glob("/proc/[0-9]*/ns/net")
		for _, f := range all {
			if id, err := os.Readlink(f); err == nil {
				seen[id] = true
			}
		}
		return len(list), len(descendants(os.Getpid())), len(seen)
	}
	tree := repository(t)
	once := func() {
		e := &echoing{t: t}
		defer e.close()
		w := OpenWorkspaces()
		defer w.Close()
		got, err := tryWorkOn(t, t.Context(), w, e.hand, tree, "exec 3<>/dev/tcp/203.0.113.7/443; echo hi >&3; cat <&3", "", connected)
		if err != nil || got.out != "any 203.0.113.7:443 hi\n" {
			t.Fatalf("%v %q %q", err, got.out, got.errs)
		}
	}
	once()
	fds, procs, _ := count()
	for range testrepeat.Times(100, 20) {
		once()
	}
	var fdsNow, procsNow int
	for range 100 {
		if fdsNow, procsNow, _ = count(); fdsNow <= fds && procsNow <= procs {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d descriptors and %d processes, %d and %d before", fdsNow, procsNow, fds, procs)
}
