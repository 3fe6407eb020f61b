package upstream

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// answers is a resolver that gives one answer after the other, and the last again.
type answers struct{ next []string }

func (a *answers) say(next ...string) { a.next = next }

func (a *answers) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	var list []netip.Addr
	for _, s := range strings.Fields(a.next[0]) {
		list = append(list, netip.MustParseAddr(s))
	}
	a.next = a.next[min(1, len(a.next)-1):]
	return list, nil
}

// rowFor returns a row for a host at its port for TLS.
func rowFor(host string) (*domain.Domain, domain.Origin) {
	h, err := domain.ParseHost(host)
	if err != nil {
		panic(err)
	}
	return &domain.Domain{Name: host}, domain.Origin{TLS: true, Host: h, Port: 443}
}

func TestEgress_Bypass15_OnePrivateAnswerSpoilsAll(t *testing.T) {
	dns := &answers{}
	u := New(dns)
	d, o := rowFor("mixed.example")
	for _, answer := range []string{"93.184.215.14 127.0.0.1", "127.0.0.1 93.184.215.14", "93.184.215.14 fe80::1", "2606:4700::1111 10.1.2.3"} {
		dns.say(answer)
		if list, err := u.addresses(t.Context(), d, o); err == nil {
			t.Errorf("%s: %v may be dialled", answer, list)
		}
	}
	dns.say("93.184.215.14 2606:4700::1111")
	if list, err := u.addresses(t.Context(), d, o); err != nil || len(list) != 2 {
		t.Errorf("public answers: %v, %v", list, err)
	}
}

func TestEgress_Bypass15_ANameThatIsReboundIsJudgedAgain(t *testing.T) {
	dns := &answers{}
	u := New(dns)
	d, o := rowFor("rebound.example")
	dns.say("93.184.215.14", "127.0.0.1")
	first, err := u.addresses(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.addresses(t.Context(), d, o); holdfast.KindOf(err) != holdfast.KindDomainBlocked {
		t.Errorf("the second answer: %v", err)
	}
	// What was checked is what is dialled: nothing else passes the socket.
	check := checkDialled(first, 443, false)
	for at, ok := range map[string]bool{
		"93.184.215.14:443": true, "93.184.215.14:80": false, "127.0.0.1:443": false, "93.184.215.15:443": false, "localhost:443": false,
	} {
		if err := check("tcp4", at, nil); (err == nil) != ok {
			t.Errorf("dial %s: %v", at, err)
		}
	}
	if check("udp4", "93.184.215.14:443", nil) == nil {
		t.Error("UDP passes")
	}
	if checkDialled([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, 443, false)("tcp4", "10.0.0.1:443", nil) == nil {
		t.Error("a private address passes the socket because it stands in the list")
	}
}

func TestEgress_PoolsAreBounded(t *testing.T) {
	var s pools
	d := &domain.Domain{}
	for i := range maxPools + 50 {
		_, _ = s.get(poolKey{row: d, who: i}, func() (*http.Transport, error) { return &http.Transport{}, nil })
	}
	if len(s.list) != maxPools || s.list[poolKey{row: d, who: 0}] != nil || s.list[poolKey{row: d, who: maxPools + 49}] == nil {
		t.Errorf("%d pools", len(s.list))
	}
}
