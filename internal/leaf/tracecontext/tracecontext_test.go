package tracecontext

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestNewHeaderContinuesTheCallersTrace(t *testing.T) {
	const incoming = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	span := [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	out, above := NewHeader(incoming, "", span)
	if out != "00-0af7651916cd43dd8448eb211c80319c-0102030405060708-01" ||
		above.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("%s below %s", out, above.SpanID())
	}
	const correlation = "3b7f0a9c-51a5-4b7e-8e0c-2f6d1f9d4a11"
	for _, bad := range []string{"", incoming[:54], "01" + incoming[2:], strings.ToUpper(incoming),
		"00-" + strings.Repeat("0", 32) + incoming[35:], incoming[:53] + "zz"} {
		if out, _ := NewHeader(bad, correlation, span); !strings.HasPrefix(out,
			"00-3b7f0a9c51a54b7e8e0c2f6d1f9d4a11-0102") {
			t.Errorf("%q: %s", bad, out)
		}
	}
}

func TestCorrelateTakesTheParentsID(t *testing.T) {
	const parent, given, fresh = "3b7f0a9c-51a5-4b7e-8e0c-2f6d1f9d4a11", "9d3c2b1a-0f4e-4d5c-8b7a-6f5e4d3c2b1a",
		"5f4e3d2c-1b0a-4988-b776-655443322110"
	for _, c := range []struct {
		parent, given, want string
		fails               bool
	}{
		{"", "", fresh, false},
		{"", given, given, false},
		{parent, "", parent, false},
		{parent, parent, parent, false},
		{parent, given, parent, true},
		{"", "no-uuid", fresh, true},
		{"", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", fresh, true}, // a UUIDv1
	} {
		got, err := Correlate(c.parent, c.given, func() (uuid.UUID, error) { return uuid.Parse(fresh) })
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	if got, err := Correlate("", "", func() (uuid.UUID, error) {
		return uuid.UUID{},
			errors.New("no randomness")
	}); got != "" || err == nil {
		t.Errorf("%q, %v", got, err)
	}
}
