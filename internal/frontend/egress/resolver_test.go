package egress

import (
	"context"
	"net"
	"testing"
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
	pc.Close()
	l.Close()
	w.must(<-done)
	w.must(<-done)
}
