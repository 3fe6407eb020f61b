package egress

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// TestEgress_AWebSocketThatIsClosedIsDone: after the last message nothing is
// written to a connection that is no HTTP any more.
func TestEgress_AWebSocketThatIsClosedIsDone(t *testing.T) {
	w := newEgress(t, setup{rows: func(tls, _ uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, WebSocket: true}}
	}})
	w.up.answer(echoing(t, make(chan string, 10)))
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.explicit}), TLSClientConfig: w.client().Transport.(*http.Transport).TLSClientConfig.Clone()}}
	c, _, err := websocket.Dial(t.Context(), "https://"+w.at("good.test")+"/socket", &websocket.DialOptions{HTTPClient: client})
	w.must(err)
	w.must(c.Write(t.Context(), websocket.MessageText, []byte("some words")))
	_, _, err = c.Read(t.Context())
	w.must(err)
	w.must(c.Close(websocket.StatusNormalClosure, ""))
	if e := w.entries(1)[0]; e.ErrorKind != "" || e.Outcome != "done" {
		t.Errorf("the entry says %s %s %q", e.Outcome, e.ErrorKind, e.Why)
	}
}
