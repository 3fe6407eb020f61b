package router

import "testing"

// No form of a tool's name reaches a tool of another server.
func TestAttack_names_of_another_server(t *testing.T) {
	for _, names := range [][]string{{"a", "a_"}, {"a_", "a"}, {"a", "a__b"}, {"x__", "x"}, {"a", "a___"}, {"_", "__"}} {
		if FindNameCollision(names) == "" {
			t.Errorf("%q can be taken for each other", names)
		}
	}
	seen := map[string]string{}
	servers := []string{"a", "b", "ab", "a-", "b_a", "A"}
	if why := FindNameCollision(servers); why != "" {
		t.Fatal(why)
	}
	for _, s := range servers {
		for _, tool := range []string{"b", "_b", "__b", "a__b", "b__c", "_", "/b", "a/b", "..", "%2F"} {
			full := s + between + tool
			if was, ok := seen[full]; ok {
				t.Errorf("%s is of %s and of %s", full, was, s)
			}
			seen[full] = s
		}
	}
}

// A server lists a template that fits what another one has and does not list.
func TestAttack_template_that_takes_every_address(t *testing.T) {
	bad, good := &member{name: "bad"}, &member{name: "good"}
	for _, c := range []struct {
		uri, template, owner string
	}{
		{"db://good/private", "{+x}", ""},
		{"db://good/private", "{a}://{+x}", ""},
		{"db://good/private", "d{+x}", ""},
		{"db://good/private", ":{+x}", ""},
		{"db://good/private", "db:{+x}", ""},
		{"db://good/private", "db://{+x}", ""},
		{"DB://good/private", "DB:///{+x}", ""},
		{"db://good/public", "db://good/{+x}", "good"},
		{"db://bad/1", "db://bad/{+x}", "bad"},
		{"notes://1", "notes://{id}", "bad"},
	} {
		o := &owners{}
		o.listed(good, "resources/list", [][]byte{[]byte(`{"uri":"db://good/public"}`)}, true)
		o.listed(bad, "resources/templates/list", [][]byte{[]byte(`{"uriTemplate":"` + c.template + `","name":"all"}`)}, true)
		if of := names(o.of(c.uri)); of != c.owner {
			t.Errorf("%s with the template %s is %q's, not %q's", c.uri, c.template, of, c.owner)
		}
	}
}
