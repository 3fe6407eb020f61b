package daemon

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/netip"
)

// layer3 is what spec 003 section 3.2 asks of the network below: what goes out
// goes by the proxy, whatever address and port were meant; what comes back of it
// is delivered; nobody comes in.
func layer3() []attempt {
	out := []attempt{byTunnel(), byName("good.test", "egress/good.test")}
	at := rand.New(rand.NewSource(1)) // the same each time: who judges has the same list
	for range 60 {
		b := binary.BigEndian.AppendUint32(nil, 1<<24+at.Uint32()%(126<<24))
		to := netip.AddrPortFrom(netip.AddrFrom4([4]byte(b)), uint16(1+at.Intn(65535)))
		// In HTTP the host is who it says, in anything else nobody.
		out = append(out, refusedBy(403, "egress/"+to.Addr().String()+blockedEntry, to.String(), func(in *inside) told { return in.say(in.to(to.String()), in.get(to.String())) }))
	}
	return append(out, attempt{name: "allowed: what comes back is all of it", status: 200, entries: []string{"egress/good.test"}, text: fmt.Sprintf("%d bytes as they were", len(much())), do: func(in *inside) told {
		got := in.say(in.straight("good.test:443", "good.test"), "GET /much HTTP/1.1\r\nHost: good.test\r\n\r\n")
		if got.Text == much() {
			got.Text = fmt.Sprintf("%d bytes as they were", len(got.Text))
		}
		return got
	}}, attempt{name: "allowed: its own server", text: "in", do: func(in *inside) told {
		defer ownServer()()
		c := in.to("127.0.0.1:" + ownPort)
		b, err := io.ReadAll(c)
		must(err)
		return told{Text: string(b)}
	}}, attempt{name: "who is outside comes in", status: 200, entries: []string{"egress/good.test"}, text: "hello, nobody there", do: func(in *inside) told {
		defer ownServer()()
		return in.say(in.straight("good.test:443", "good.test"), "GET /knock?port="+ownPort+" HTTP/1.1\r\nHost: good.test\r\n\r\n")
	}})
}

// ownPort is that of a server of the workspace.
const ownPort = "7443"

// ownServer listens there, at every address that the workspace has.
func ownServer() (end func()) {
	l, err := net.Listen("tcp", ":"+ownPort)
	must(err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "in")
			c.Close()
		}
	}()
	return func() { l.Close() }
}
