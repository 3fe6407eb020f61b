package redact

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestBodyOfLeavesTheOtherClass: the other class keeps its bytes at every place.
func TestBodyOfLeavesTheOtherClass(t *testing.T) {
	const key, literal = "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "brass-otter-4711"
	e, err := New(Options{Masks: Egress, Literals: []holdfast.Secret{holdfast.NewSecret(literal)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, in, secrets, personal string }{
		{"a text", `{"a":"mail ann@example.com, key ` + key + `"}`, `{"a":"mail ann@example.com, key [secret]"}`,
			`{"a":"mail [email], key ` + key + `"}`},
		{"a name", `{"` + key + `":1,"ann@example.com":2}`, `{"[secret]":1,"ann@example.com":2}`,
			`{"` + key + `":1,"[email]":2}`},
		{"by its name", `{"password":"hunter2!x","first_name":"Ann"}`, `{"password":"[secret]","first_name":"Ann"}`,
			`{"password":"hunter2!x","first_name":"[pii]"}`},
		{"personal data within a secret", `{"password":"ann@example.com"}`, `{"password":"[secret]"}`,
			`{"password":"[email]"}`},
		{"numbers", `{"card":4111111111111111,"password":12345678}`, `{"card":4111111111111111,"password":0}`,
			`{"card":0,"password":12345678}`},
		{"registered", `{"a":"` + literal + ` ann@example.com"}`, `{"a":"[secret] ann@example.com"}`,
			`{"a":"` + literal + ` [email]"}`},
		{"base64 of a secret", `{"a":"Z2hwXzE2QzdlNDJGMjkyYzY5MTJFNzcxMGM4MzgzNDdBZTE3OEI0YQ=="}`, `{"a":"[secret]"}`,
			`{"a":"Z2hwXzE2QzdlNDJGMjkyYzY5MTJFNzcxMGM4MzgzNDdBZTE3OEI0YQ=="}`},
		{"JSON in a string", `{"a":"{\"k\":\"` + key + `\",\"m\":\"ann@example.com\"}"}`,
			`{"a":"{\"k\":\"[secret]\",\"m\":\"ann@example.com\"}"}`,
			`{"a":"{\"k\":\"` + key + `\",\"m\":\"[email]\"}"}`},
		{"a form", `password=hunter2!x&mail=ann%40example.com`, `password=%5Bsecret%5D&mail=ann%40example.com`,
			`password=hunter2!x&mail=%5Bemail%5D`},
		{"clean", `{"a":12345678901234567890}`, `{"a":12345678901234567890}`, `{"a":12345678901234567890}`},
	} {
		for class, want := range map[Class]string{OnlySecrets: c.secrets, OnlyPersonal: c.personal} {
			for range 2 { // the second finds familiar names
				r, err := e.BodyOf(class, "", []byte(c.in))
				if err != nil || string(r.Out) != want || r.Found() == (want == c.in) {
					t.Errorf("%s, class %d: %s %v %v, not %s", c.name, class, r.Out, r.Findings, err, want)
				}
				for _, f := range r.Findings {
					if f.IsSecret() != (class == OnlySecrets) {
						t.Errorf("%s, class %d: found %s", c.name, class, f.Rule)
					}
				}
			}
		}
		all, err := e.BodyOf(AnyClass, "", []byte(c.in))
		if whole, _ := e.Body("", []byte(c.in)); err != nil || string(all.Out) != string(whole.Out) {
			t.Errorf("%s: BodyOf of any class: %s %v, Body: %s", c.name, all.Out, err, whole.Out)
		}
	}
	if _, err := new(Engine).BodyOf(OnlySecrets, "", []byte(`{}`)); err == nil {
		t.Error("an engine that New did not make read a body")
	}
}
