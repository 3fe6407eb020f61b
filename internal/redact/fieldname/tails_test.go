package fieldname

import "testing"

// A name whose tail is missing would be skipped without a look.
func TestTailsHoldEveryTellingName(t *testing.T) {
	names := []string{"dbpasswd", "dbpassword", "mysecret", "mytoken", "service_key", "accesskey", "dbpasswords"}
	for _, e := range words {
		names = append(names, e.text)
	}
	for _, e := range pairs {
		names = append(names, e.first[0]+"_"+e.second)
	}
	list := NewTails()
	for _, name := range names {
		if OfName([]byte(name)) == None {
			t.Errorf("%s says nothing", name)
		}
		for _, suffix := range append([]string{""}, qualifiers[:]...) {
			whole := name + suffix
			if suffix != "" {
				whole = name + "_" + suffix
			}
			if n := len(whole); OfName([]byte(whole)) != None && !list.May(whole[n-2], whole[n-1]) {
				t.Errorf("the tail of %s is missing", whole)
			}
		}
	}
}
