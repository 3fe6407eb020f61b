package review

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
)

const someHash = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func parsed(t testing.TB, text string) *payload.Doc {
	t.Helper()
	d, err := payload.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// asked is the review of a request with these arguments, shown as they are.
func asked(t testing.TB, args string) *Review {
	d := parsed(t, args)
	shown := parsed(t, string(d.Canonical()))
	return &Review{ID: "rv_1", Binding: Binding{Tenant: "local", Agent: "alice", Boundary: "mcp/fs/write", Exact: d.Exact()},
		Principal: "user:alice", Contract: someHash, Preview: string(d.Canonical()), Shape: ShapeOf(d.Value(), shown.Value())}
}

func rule(t testing.TB, args string, c Choice) Rule {
	t.Helper()
	r, err := RuleOf(asked(t, args), c)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := back.Encode(); again != text {
		t.Fatalf("%s\n%s", text, again)
	}
	return back
}

// Every way in which an agent could make a rule cover more than was meant.
func TestD11_a_rule_covers_its_shape_and_nothing_else(t *testing.T) {
	r := rule(t, `{"path":"/srv/tree/a.txt","content":"hello","mode":"w","n":3}`,
		Choice{Under: map[string]string{"path": "/srv/tree"}, Any: []string{"content"}})
	cases := []struct {
		name, args string
		want       bool
	}{
		{"the_very_one", `{"path":"/srv/tree/a.txt","content":"hello","mode":"w","n":3}`, true},
		{"another_order", `{"n":3,"mode":"w","content":"","path":"/srv/tree/b/c.txt"}`, true},
		{"the_directory_itself", `{"path":"/srv/tree","content":"x","mode":"w","n":3}`, true},
		{"cleaned", `{"path":"/srv//tree/./b/","content":"x","mode":"w","n":3}`, true},
		{"dots_in_a_name", `{"path":"/srv/tree/..b/a..c/.d","content":"x","mode":"w","n":3}`, true},
		{"letters_of_another_script", `{"path":"/srv/tree/münchen/日本","content":"x","mode":"w","n":3}`, true},

		{"traversal", `{"path":"/srv/tree/../../etc/passwd","content":"x","mode":"w","n":3}`, false},
		{"traversal_that_stays", `{"path":"/srv/tree/a/../b","content":"x","mode":"w","n":3}`, false},
		{"traversal_at_the_end", `{"path":"/srv/tree/..","content":"x","mode":"w","n":3}`, false},
		{"sibling_with_the_prefix", `{"path":"/srv/treeshop/a","content":"x","mode":"w","n":3}`, false},
		{"outside", `{"path":"/etc/passwd","content":"x","mode":"w","n":3}`, false},
		{"relative", `{"path":"srv/tree/a","content":"x","mode":"w","n":3}`, false},
		{"two_slashes_first", `{"path":"//srv/tree/a","content":"x","mode":"w","n":3}`, false},
		{"home", `{"path":"~/../srv/tree/a","content":"x","mode":"w","n":3}`, false},
		{"encoded_dots", `{"path":"/srv/tree/%2e%2e/%2e%2e/etc","content":"x","mode":"w","n":3}`, false},
		{"encoded_twice", `{"path":"/srv/tree/%252e%252e/x","content":"x","mode":"w","n":3}`, false},
		{"backslashes", `{"path":"/srv/tree\\..\\..\\etc","content":"x","mode":"w","n":3}`, false},
		{"fullwidth_dots", `{"path":"/srv/tree/．．/x","content":"x","mode":"w","n":3}`, false},
		{"two_dot_leader", `{"path":"/srv/tree/‥/x","content":"x","mode":"w","n":3}`, false},
		{"fullwidth_slash", `{"path":"/srv/tree/..／x","content":"x","mode":"w","n":3}`, false},
		{"decomposed_letters", "{\"path\":\"/srv/tree/mu\u0308nchen\",\"content\":\"x\",\"mode\":\"w\",\"n\":3}", false},
		{"zero_width", `{"path":"/srv/tree/a\u200b","content":"x","mode":"w","n":3}`, false},
		{"braille_blank", `{"path":"/srv/tree/a\u2800","content":"x","mode":"w","n":3}`, false},
		{"right_to_left", `{"path":"/srv/tree/\u202etxt.exe","content":"x","mode":"w","n":3}`, false},
		{"nul", `{"path":"/srv/tree/a\u0000/../../etc","content":"x","mode":"w","n":3}`, false},
		{"nul_alone", `{"path":"/srv/tree/a\u0000.txt","content":"x","mode":"w","n":3}`, false},
		{"newline", `{"path":"/srv/tree/a\n/etc/passwd","content":"x","mode":"w","n":3}`, false},
		{"shell", `{"path":"/srv/tree/$(id)","content":"x","mode":"w","n":3}`, false},
		{"braces", `{"path":"/srv/tree/{a,..}/x","content":"x","mode":"w","n":3}`, false},
		{"glob", `{"path":"/srv/tree/*","content":"x","mode":"w","n":3}`, false},
		{"trailing_dots_of_windows", `{"path":"/srv/tree/.. /x","content":"x","mode":"w","n":3}`, false},
		{"three_dots", `{"path":"/srv/tree/.../x","content":"x","mode":"w","n":3}`, false},
		{"case_of_the_path", `{"path":"/tmp/Work/a","content":"x","mode":"w","n":3}`, false},
		{"empty_path", `{"path":"","content":"x","mode":"w","n":3}`, false},
		{"url", `{"path":"file:///srv/tree/a","content":"x","mode":"w","n":3}`, false},
		{"very_long", `{"path":"/srv/tree/` + strings.Repeat("a/", 3000) + `","content":"x","mode":"w","n":3}`, false},
		{"path_is_a_list", `{"path":["/srv/tree/a"],"content":"x","mode":"w","n":3}`, false},
		{"path_is_null", `{"path":null,"content":"x","mode":"w","n":3}`, false},

		{"extra_member", `{"path":"/srv/tree/a","content":"x","mode":"w","n":3,"force":true}`, false},
		{"missing_member", `{"path":"/srv/tree/a","content":"x","mode":"w"}`, false},
		{"case_of_a_name", `{"Path":"/srv/tree/a","content":"x","mode":"w","n":3}`, false},
		{"both_cases", `{"Path":"/etc/passwd","path":"/srv/tree/a","mode":"w","n":3}`, false},
		{"look_alike_name", `{"pаth":"/srv/tree/a","content":"x","mode":"w","n":3}`, false},
		{"name_with_a_space", `{"path ":"/srv/tree/a","content":"x","mode":"w","n":3}`, false},
		{"pinned_value", `{"path":"/srv/tree/a","content":"x","mode":"a","n":3}`, false},
		{"pinned_value_in_upper_case", `{"path":"/srv/tree/a","content":"x","mode":"W","n":3}`, false},
		{"number_as_text", `{"path":"/srv/tree/a","content":"x","mode":"w","n":"3"}`, false},
		{"number_in_another_way", `{"path":"/srv/tree/a","content":"x","mode":"w","n":3.0}`, false},
		{"number_with_an_exponent", `{"path":"/srv/tree/a","content":"x","mode":"w","n":30e-1}`, false},
		{"free_member_of_another_type", `{"path":"/srv/tree/a","content":5,"mode":"w","n":3}`, false},
		{"free_member_is_an_object", `{"path":"/srv/tree/a","content":{"x":1},"mode":"w","n":3}`, false},
		{"free_member_is_null", `{"path":"/srv/tree/a","content":null,"mode":"w","n":3}`, false},
		{"a_list_of_them", `[{"path":"/srv/tree/a","content":"x","mode":"w","n":3}]`, false},
		{"nothing", `{}`, false},
		{"null", `null`, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := parsed(t, c.args)
			if got := r.Covers(d.Value(), d.Exact()); got != c.want {
				t.Fatalf("covers %s: %v", c.args, got)
			}
		})
	}
	// A member twice is no document at all: there is nothing to cover.
	if _, err := payload.Parse([]byte(`{"path":"/srv/tree/a","path":"/etc/passwd","content":"x","mode":"w","n":3}`)); err == nil {
		t.Fatal("a member may occur twice")
	}
}

// What is free is free within its type, down to the members of what it holds.
func TestD11_types(t *testing.T) {
	r := rule(t, `{"edits":[{"old":"a","new":"b"}],"list":[1,"x"],"none":[]}`, Choice{Any: []string{"edits", "list", "none"}})
	for args, want := range map[string]bool{
		`{"edits":[{"new":"q","old":"p"},{"old":"","new":""}],"list":["y",2,3],"none":[]}`: true,
		`{"edits":[{"old":"a","new":"b"}],"list":[1,"x"],"none":[]}`:                       true,
		`{"edits":[],"list":[1,"x"],"none":[]}`:                                            false,
		`{"edits":[{"old":"a","new":"b","run":"rm"}],"list":[1,"x"],"none":[]}`:            false,
		`{"edits":[{"old":"a","new":1}],"list":[1,"x"],"none":[]}`:                         false,
		`{"edits":[{"old":"a","new":"b"}],"list":[1,"x",null],"none":[]}`:                  false,
		`{"edits":[{"old":"a","new":"b"}],"list":[1],"none":[]}`:                           false,
		`{"edits":[{"old":"a","new":"b"}],"list":[1,"x"],"none":["/etc"]}`:                 false,
	} {
		d := parsed(t, args)
		if got := r.Covers(d.Value(), d.Exact()); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
}

// Exactly the arguments means their exact hash, to the text of each number.
func TestD11_exact(t *testing.T) {
	r := rule(t, `{"id":9007199254740993}`, Choice{Exact: true})
	for args, want := range map[string]bool{`{ "id" : 9007199254740993 }`: true, `{"id":9007199254740992}`: false, `{"id":"9007199254740993"}`: false, `{"id":9007199254740993,"x":1}`: false} {
		d := parsed(t, args)
		if got := r.Covers(d.Value(), d.Exact()); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
}

func TestD11_choices_that_make_no_rule(t *testing.T) {
	masked := asked(t, `{"token":"x","path":"/tmp/a"}`)
	masked.Preview = `{"path":"/tmp/a","token":"[SECRET]"}`
	masked.Shape[1].Hidden = true
	cut := asked(t, `{"path":"/tmp/a"}`)
	cut.Cut = true
	cases := []struct {
		name string
		r    *Review
		c    Choice
	}{
		{"unknown_member", asked(t, `{"path":"/tmp/a"}`), Choice{Any: []string{"Path"}}},
		{"twice", asked(t, `{"path":"/tmp/a"}`), Choice{Any: []string{"path"}, Under: map[string]string{"path": ""}}},
		{"not_under", asked(t, `{"path":"/tmp/a"}`), Choice{Under: map[string]string{"path": "/var"}}},
		{"everything", asked(t, `{"path":"/tmp/a"}`), Choice{Under: map[string]string{"path": "/"}}},
		{"here", asked(t, `{"path":"a/b"}`), Choice{Under: map[string]string{"path": "."}}},
		{"climbing", asked(t, `{"path":"/tmp/a"}`), Choice{Under: map[string]string{"path": "/tmp/.."}}},
		{"not_clean", asked(t, `{"path":"/tmp/a"}`), Choice{Under: map[string]string{"path": "/tmp/"}}},
		{"approved_path_climbs", asked(t, `{"path":"/tmp/../etc"}`), Choice{Under: map[string]string{"path": ""}}},
		{"no_path", asked(t, `{"path":5}`), Choice{Under: map[string]string{"path": "/tmp"}}},
		{"masked", masked, Choice{Under: map[string]string{"path": "/tmp"}}},
		{"cut", cut, Choice{Exact: true}},
		{"no_object", asked(t, `["/tmp/a"]`), Choice{}},
		{"no_members", asked(t, `{}`), Choice{}},
		{"too_long", asked(t, `{"text":"`+strings.Repeat("y", MaxRule)+`"}`), Choice{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, err := RuleOf(c.r, c.c)
			if err == nil {
				_, err = r.Encode()
			}
			if holdfast.KindOf(err) != holdfast.KindValue {
				t.Fatalf("%+v, %v", r, err)
			}
		})
	}
	if r, err := RuleOf(masked, Choice{Under: map[string]string{"path": "/tmp"}, Any: []string{"token"}}); err != nil || len(r.Members) != 2 {
		t.Fatal(r, err)
	}
}

// A rule has one spelling, and what is not one is refused.
func TestD11_one_spelling(t *testing.T) {
	text, err := rule(t, `{"a":1,"b":"x"}`, Choice{Any: []string{"b"}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`{`, `{ `}, {`"agent"`, `"Agent"`}, {`"is":"any"`, `"is":"all"`}, {`"name":"a"`, `"name":"z"`},
		{`"name":"b"`, `"name":"a"`}, {someHash, "aa"}, {`"value":"1"`, `"value":"1 2"`}, {`"agent":"alice"`, `"agent":""`},
		{`"members":`, `"exact_hash":"` + someHash + `","members":`}, {`"review":"rv_1"`, `"review":"rv_1","more":1`},
	} {
		bad := strings.Replace(text, c[0], c[1], 1)
		if _, err := ParseRule(bad); err == nil || bad == text {
			t.Errorf("taken: %s", bad)
		}
	}
	if _, err := ParseRule(""); err == nil {
		t.Error("nothing is a rule")
	}
}

// A prefix never covers a path that does not begin with its components,
// whatever the path is.
func FuzzD11_paths(f *testing.F) {
	for _, s := range []string{"/srv/tree/a", "/srv/tree/../x", "/srv/treeshop", "srv/tree", "/srv/tree//./b", "/srv/tree/%2e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !under("/srv/tree", s) {
			return
		}
		var depth int
		var names []string
		for c := range strings.SplitSeq(s, "/") {
			switch c {
			case "", ".":
			case "..":
				t.Fatalf("%q climbs", s)
			default:
				depth++
				names = append(names, c)
			}
		}
		if depth < 2 || names[0] != "srv" || names[1] != "tree" || s[0] != '/' {
			t.Fatalf("%q is not under /srv/tree: %s", s, fmt.Sprint(names))
		}
	})
}

func TestD11_fates(t *testing.T) {
	decided := Step{Event: "decided", How: "approved"}
	ran := Step{Event: "executed"}
	for want, c := range map[string]struct {
		s    State
		life []Step
	}{
		"pending":               {Pending, nil},
		"approved, not run yet": {Approved, []Step{decided}},
		"approved, never ran":   {Expired, []Step{decided}},
		"expired":               {Expired, nil},
		"ran, never returned":   {Used, []Step{decided, ran}},
		"ran: done":             {Used, []Step{decided, ran, {Event: "returned", How: "done"}}},
		"rejected":              {Rejected, []Step{{Event: "decided", How: "rejected"}}},
	} {
		if got := Fate(c.s, c.life); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
