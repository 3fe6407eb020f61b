package daemon

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// bypass is one line of the list of ways past an egress proxy: the ways that were
// tried of it, each followed or preceded by what is like it and allowed.
type bypass struct {
	name string // its number first
	try  []attempt
}

// attempt is made inside of a workspace and judged outside.
type attempt struct {
	name string
	// do is the inside. It brings the mark out, or tries to.
	do func(in *inside) told
	// status is what HTTP says of it; 0 where it has no answer, and anyRefusal
	// where it is 400 or 421 or the connection ends.
	status int
	// text is what it must say, where anything; fails that it comes to an error.
	text  string
	fails bool
	// entries are what it leaves in the ledger, "boundary" or "boundary Kind".
	entries []string
	// arrives says that it is allowed: the mark reaches the good server.
	arrives bool
	// never is what does not arrive all the same; after is a text that must.
	never, after string
	// direct is where it is seen if it is made without a workspace, and rights
	// that only root can do that.
	direct string
	rights bool
}

const anyRefusal = -1

// told is what an attempt came to, for who made it.
type told struct {
	Name   string
	Status int    `json:",omitempty"`
	Text   string `json:",omitempty"`
	Other  string `json:",omitempty"` // by what other protocol the host can be had
	Err    string `json:",omitempty"`
}

// inside is where an attempt is made.
type inside struct {
	mark  string // of this attempt and no other
	conns []net.Conn
}

// attemptEnv names the bypasses that a program is to try, which is this program.
const attemptEnv = "HOLDFAST_TEST_BYPASS"

// directEnv says that only those are to be made that can be seen without a
// workspace.
const directEnv = "HOLDFAST_TEST_DIRECT"

// insideWorkspace makes every attempt of bypasses where it is asked for some, says
// of each in a line what became of it, and ends.
func insideWorkspace() {
	of := os.Getenv(attemptEnv)
	if of == "" {
		return
	}
	say := json.NewEncoder(os.Stdout)
	for _, b := range allBypasses() {
		if !slices.Contains(strings.Fields(of), b.name) {
			continue
		}
		for i, a := range b.try {
			if os.Getenv(directEnv) != "" && a.direct == "" {
				continue
			}
			if err := say.Encode(a.make(b, i)); err != nil {
				os.Exit(3)
			}
		}
	}
	os.Exit(0)
}

// markOf is what the attempt i of b would bring out.
func markOf(b bypass, i int) string { return fmt.Sprintf("mark%sx%02dq", b.name[:2], i) }

// make tries it. What goes wrong is what it was told.
func (a attempt) make(b bypass, i int) (out told) {
	in := &inside{mark: markOf(b, i)}
	defer func() {
		if r := recover(); r != nil {
			out.Err = fmt.Sprint(r)
		}
		out.Name = a.name
		for _, c := range in.conns {
			c.Close()
		}
	}()
	return a.do(in)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// to connects, as programs do that know of no proxy.
func (in *inside) to(address string) net.Conn {
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	must(err)
	in.conns = append(in.conns, c)
	must(c.SetDeadline(time.Now().Add(15 * time.Second)))
	return c
}

// proxy connects to the proxy, as the variables say.
func (in *inside) proxy() net.Conn { return in.to("127.0.0.1:7412") }

// secure is TLS on c, by the roots that the workspace has.
func (in *inside) secure(c net.Conn, name string, protocols ...string) *tls.Conn {
	s := tls.Client(c, &tls.Config{ServerName: name, NextProtos: protocols})
	must(s.Handshake())
	return s
}

// straight is TLS to an address by a name.
func (in *inside) straight(address, name string) *tls.Conn { return in.secure(in.to(address), name) }

// connect asks the proxy for a connection, which it makes.
func (in *inside) connect(to string) net.Conn {
	c := in.proxy()
	_, err := io.WriteString(c, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n")
	must(err)
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	must(err)
	if r.StatusCode != http.StatusOK {
		panic("CONNECT: " + r.Status)
	}
	return c
}

// tunnel is TLS in what connect made.
func (in *inside) tunnel(to, name string, protocols ...string) *tls.Conn {
	return in.secure(in.connect(to), name, protocols...)
}

// get is a request for the mark.
func (in *inside) get(host string, fields ...string) string {
	return "GET /" + in.mark + " HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(fields, "") + "\r\n"
}

// post is a request with a body, of which the mark is the path.
func (in *inside) post(host, kind, body string, fields ...string) string {
	return fmt.Sprintf("POST /%s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n%s", in.mark, host, kind, len(body), strings.Join(fields, ""), body)
}

// say writes bytes as they are and reads an answer.
func (in *inside) say(c net.Conn, text string) told {
	go io.WriteString(c, text)
	return hearOne(bufio.NewReader(c))
}

// hearOne is an answer, or why there is none.
func hearOne(b *bufio.Reader) told {
	r, err := http.ReadResponse(b, &http.Request{Method: http.MethodGet})
	if err != nil {
		return told{Err: err.Error()}
	}
	text, _ := io.ReadAll(r.Body)
	return told{Status: r.StatusCode, Text: string(text), Other: r.Header.Get("Alt-Svc")}
}

// each writes everything at once and reads as many answers: the last counts, the
// others must be 200.
func (in *inside) each(c net.Conn, texts ...string) (last told) {
	go io.WriteString(c, strings.Join(texts, ""))
	b := bufio.NewReader(c)
	for i := range texts {
		if last = hearOne(b); i < len(texts)-1 && last.Status != http.StatusOK {
			return told{Err: fmt.Sprintf("the answer %d is %+v", i, last)}
		}
	}
	return last
}

// viaHTTP2 sends fields as they are and returns the status; none where the stream
// or the connection was ended instead.
func (in *inside) viaHTTP2(c *tls.Conn, fields ...[2]string) told {
	if got := c.ConnectionState().NegotiatedProtocol; got != "h2" {
		return told{Err: "the proxy speaks " + got}
	}
	_, err := io.WriteString(c, http2.ClientPreface)
	must(err)
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	must(f.WriteSettings())
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, kv := range fields {
		must(e.WriteField(hpack.HeaderField{Name: kv[0], Value: kv[1]}))
	}
	must(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b.Bytes(), EndStream: true, EndHeaders: true}))
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return told{Err: err.Error()}
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				must(f.WriteSettingsAck())
			}
		case *http2.MetaHeadersFrame:
			n, _ := strconv.Atoi(frame.PseudoValue("status"))
			return told{Status: n}
		case *http2.RSTStreamFrame:
			return told{Err: "the stream was ended: " + frame.ErrCode.String()}
		case *http2.GoAwayFrame:
			return told{Err: "the connection was ended: " + frame.ErrCode.String()}
		}
	}
}

// asHTTP2 is a GET of the mark over HTTP/2 in a tunnel to the good server.
func (in *inside) asHTTP2(authority, host string) told {
	fields := [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", "/" + in.mark}, {":authority", authority}}
	if host != "" {
		fields = append(fields, [2]string{"host", host})
	}
	return in.viaHTTP2(in.tunnel("good.test:443", "good.test", "h2"), fields...)
}

// connected is a CONNECT as raw text and its answer.
func (in *inside) connected(to string) told {
	return in.say(in.proxy(), "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n")
}

// throughTo is a CONNECT that is granted, so that why not can be read inside, and
// a request there, without TLS.
func (in *inside) throughTo(to string) told { return in.say(in.connect(to), in.get(to)) }
