package egress

import (
	"bytes"
	"context"
	"net"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestResolve_EveryNameIsTheSentinel(t *testing.T) {
	w := newEgress(t, setup{})
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	w.must(err)
	l := w.port()
	done := make(chan error, 2)
	go func() { done <- w.p.Resolve(pc) }()
	go func() { done <- w.p.ResolveTCP(l) }()
	for _, network := range []string{"udp", "tcp"} {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			addr := pc.LocalAddr().String()
			if network == "tcp" {
				addr = l.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}
		got, err := r.LookupHost(t.Context(), "some-secret.evil.test.")
		if err != nil || len(got) != 1 || got[0] != "198.18.0.1" {
			t.Errorf("%s: %v %v", network, got, err)
		}
		if txt, err := r.LookupTXT(t.Context(), "evil.test."); err == nil {
			t.Errorf("%s: TXT gave %v", network, txt)
		}
	}
	for _, typ := range []dnsmessage.Type{dnsmessage.TypeAAAA, dnsmessage.TypeTXT, dnsmessage.Type(65), dnsmessage.Type(64), dnsmessage.TypeMX, dnsmessage.TypeALL} {
		m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a.test."), Type: typ, Class: dnsmessage.ClassINET}}}
		q, err := m.Pack()
		w.must(err)
		a, ok := answerName(q)
		var back dnsmessage.Message
		if !ok || back.Unpack(a) != nil || back.RCode != dnsmessage.RCodeSuccess || len(back.Answers) != 0 || !back.Response {
			t.Errorf("%v: %v %+v", typ, ok, back)
		}
	}
	two := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a.test."), Type: 1, Class: 1}, {Name: dnsmessage.MustNewName("b.test."), Type: 1, Class: 1}}}
	q, _ := two.Pack()
	answer := dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Questions: two.Questions[:1]}
	r, _ := answer.Pack()
	for _, bad := range [][]byte{nil, {1}, q, r, bytes.Repeat([]byte{0xc0}, 40), q[:20]} {
		if _, ok := answerName(bad); ok {
			t.Errorf("%x was answered", bad)
		}
	}
	pc.Close()
	l.Close()
	w.must(<-done)
	w.must(<-done)
}
