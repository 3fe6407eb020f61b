package excerpt

import "testing"

// However it is written, the first bytes are kept, and each write is taken whole.
func TestFirst(t *testing.T) {
	for _, c := range []struct {
		most int
		said []string
		want string
	}{
		{3, nil, ""}, {3, []string{"ab"}, "ab"}, {3, []string{"abc", "d"}, "abc"}, {3, []string{"ab", "cd", "e"}, "abc"},
		{3, []string{"", "abcd"}, "abc"}, {0, []string{"a"}, ""}, {-1, []string{"a", "b"}, ""},
	} {
		f := NewFirst(c.most)
		for _, s := range c.said {
			if n, err := f.Write([]byte(s)); n != len(s) || err != nil {
				t.Errorf("%d, %q: %d %v", c.most, s, n, err)
			}
		}
		if f.String() != c.want || string(f.Bytes()) != c.want {
			t.Errorf("%d, %q: %q, want %q", c.most, c.said, f, c.want)
		}
	}
}
