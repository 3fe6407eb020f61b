package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestStatusCarriesConditions: the client receives the conditions of a status, whose own JSON does not have them.
func TestStatusCarriesConditions(t *testing.T) {
	want := Status{Version: "v1", Problems: []string{"p"},
		Conditions: Conditions{Disabled: true, Unapplied: true, NeedRestart: []string{"p"}}}
	c := Direct(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(statusReply{&want, want.Conditions})
	}))
	got, err := c.Status(t.Context())
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if b, err := json.Marshal(want); err != nil || strings.Contains(string(b), "restart") {
		t.Errorf("%s, %v", b, err)
	}
}

// TestExecutedCarriesPutBack: the client receives what the JSON of a failure does not have.
func TestExecutedCarriesPutBack(t *testing.T) {
	for _, want := range []Executed{
		{Failure: failure(&holdfast.Error{Kind: holdfast.KindOperation, Why: "no; it was restored", PutBack: true})},
		{Failure: failure(&holdfast.Error{Kind: holdfast.KindOperation, Why: "no"})},
		{},
	} {
		c := Direct(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(newExecutedReply(&want))
		}))
		got, err := c.Exec(t.Context(), Execution{})
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
		if b, err := json.Marshal(want); err != nil || strings.Contains(string(b), "put_back") {
			t.Errorf("%s, %v", b, err)
		}
	}
}
