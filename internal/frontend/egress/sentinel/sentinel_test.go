package sentinel

import (
	"bytes"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestAnswersAreOfOneAddressOnly: questions for other records have no answers, and
// anything but one question has no reply.
func TestAnswersAreOfOneAddressOnly(t *testing.T) {
	for _, typ := range []dnsmessage.Type{dnsmessage.TypeAAAA, dnsmessage.TypeTXT, dnsmessage.Type(65), dnsmessage.Type(64), dnsmessage.TypeMX, dnsmessage.TypeALL} {
		m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a.test."), Type: typ, Class: dnsmessage.ClassINET}}}
		q, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
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
}
