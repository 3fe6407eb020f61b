package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/codingtest"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestRecordedHostsGetWhatTheyGetWithoutHoldfast: the recorded requests of Claude Code and Codex, with a model that
// copies values out of them, are answered as without Holdfast, and the provider and the ledger have none of the values.
func TestRecordedHostsGetWhatTheyGetWithoutHoldfast(t *testing.T) {
	for host, at := range map[string]string{"claude": "good.test", "codex": "other.test"} {
		t.Run(host, func(t *testing.T) {
			asked, err := codingtest.ReadRecording(host)
			if err != nil || len(asked) < 9 {
				t.Fatalf("%d requests, %v", len(asked), err)
			}
			w := newModels(t, setup{policy: func(*kernel.Policy) {}})
			model, direct := &codingtest.Model{Seed: 27}, &codingtest.Model{Seed: 28}
			w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
				seen := w.up.requests()
				r.Body = io.NopCloser(strings.NewReader(seen[len(seen)-1].Body))
				model.ServeHTTP(rw, r)
			})
			client := w.client()
			// A host sends back what the model thought as it came: signed, with placeholders.
			thought := [2]string{"-", "-"}
			for i, a := range asked {
				var header []string
				for name, value := range a.Header {
					header = append(header, name, value)
				}
				resp, got := posted(t, client, "https://"+w.at(at)+a.Path,
					strings.ReplaceAll(string(a.Body), jsonEscape(thought[0]), jsonEscape(thought[1])), header...)
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("request %d: %d %s", i, resp.StatusCode, got)
				}
				alone := httptest.NewRecorder()
				direct.ServeHTTP(alone, httptest.NewRequest(http.MethodPost, a.Path, bytes.NewReader(a.Body)))
				compareAnswers(t, i, alone.Body.String(), got)
				if text := joinText(got, "delta", "thinking"); text != "" {
					thought = [2]string{joinText(alone.Body.String(), "delta", "thinking"), text}
				}
			}
			for i, seen := range w.up.requests() {
				var header bytes.Buffer
				w.must(seen.Header.Write(&header))
				if leaks := codingtest.ListLeaks(seen.URI + header.String() + seen.Body); len(leaks) > 0 {
					t.Errorf("request %d holds %s", i, strings.Join(leaks, ", "))
				}
			}
			if leaks := codingtest.ListLeaks(w.readLeaves()); len(leaks) > 0 {
				t.Errorf("the ledger holds %s", strings.Join(leaks, ", "))
			}
		})
	}
}

// compareAnswers fails where a host reads something else from an answer than from the one without Holdfast.
func compareAnswers(t *testing.T, request int, without, with string) {
	t.Helper()
	want, err := codingtest.ListAnswer(without)
	if err != nil {
		t.Fatal(err)
	}
	got, err := codingtest.ListAnswer(with)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 4 || len(want) != len(got) {
		t.Errorf("request %d: %d parts of an answer without Holdfast, %d with it\n%q\n%q", request, len(want),
			len(got), want, got)
		return
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d\n   with %s\nwithout %s", request, got[i], want[i])
		}
		if strings.Contains(want[i], "UNKNOWN") {
			t.Errorf("request %d: the model did not find a value: %s", request, want[i])
		}
	}
}

// readLeaves returns all that the ledger holds.
func (w *world) readLeaves() string {
	w.t.Helper()
	var all bytes.Buffer
	w.must(w.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		for _, h := range heads {
			err = errors.Join(err, tx.Leaves(h.Tenant, 0, h.Size, func(l ledger.Stored) error {
				all.Write(l.Record)
				all.Write(l.Part)
				return nil
			}))
		}
		return err
	}))
	return all.String()
}
