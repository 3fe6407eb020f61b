package api

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// TestClientWaitsForCodeAsLongAsTheOwnerAnswers: a run may take an hour, so its
// call has no end by the clock while the owner says how it is; one that accepts and
// says nothing is given up and named (D48).
func TestClientWaitsForCodeAsLongAsTheOwnerAnswers(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	enough, mute := make(chan struct{}), make(chan struct{})
	owner := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/status":
			if asked.Add(1) == 3 {
				close(enough)
			}
		case "/v1/exec":
			<-enough
		default:
			select {
			case <-mute:
			case <-r.Context().Done():
			}
		}
		_, _ = w.Write([]byte("{}"))
	}))
	sock := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	owner.Listener = l
	owner.Start()
	defer owner.Close()
	defer close(mute)
	c, _, err := Dial(t.Context(), sock)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.patient(t.Context(), time.Second, "POST", "/v1/exec", nil, &Executed{}); err != nil || asked.Load() < 3 {
		t.Errorf("%v, after %d questions", err, asked.Load())
	}
	stopped := &Client{http: &http.Client{Transport: mutely{c.http.Transport}}}
	if err := stopped.patient(t.Context(), 50*time.Millisecond, "POST", "/v1/mute", nil, &Executed{}); holdfast.KindOf(err) != holdfast.KindTimeout {
		t.Errorf("of an owner that says nothing: %v", err)
	}
}

// mutely asks an owner that answers nothing, whatever is asked.
type mutely struct{ http.RoundTripper }

func (m mutely) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Path = "/v1/mute"
	return m.RoundTripper.RoundTrip(r)
}

// An owner that is busy says so at once and answers late; one that says nothing is told
// of after two seconds.
func TestDialABusyOwner(t *testing.T) {
	t.Parallel()
	busy := func(says bool) (*Status, error) {
		ended := make(chan struct{})
		owner := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(answerTime + time.Second):
				case <-ended:
				}
				_, _ = w.Write([]byte(`{"agents": 7}`))
			})
			if says {
				h = alive(h)
			}
			h(w, r)
		}))
		sock := filepath.Join(t.TempDir(), "sock")
		l, err := net.Listen("unix", sock)
		if err != nil {
			t.Fatal(err)
		}
		owner.Listener = l
		owner.Start()
		defer owner.Close()
		defer close(ended)
		_, st, err := Dial(t.Context(), sock)
		return st, err
	}
	if st, err := busy(true); err != nil || st.Agents != 7 {
		t.Errorf("of one that is busy: %+v, %v", st, err)
	}
	if _, err := busy(false); holdfast.KindOf(err) != holdfast.KindTimeout {
		t.Errorf("of one that says nothing: %v", err)
	}
}
