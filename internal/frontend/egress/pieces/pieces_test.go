package pieces

import "testing"

func TestIsKeepaliveKnowsNothingElse(t *testing.T) {
	for data, want := range map[string]bool{
		`{"type":"ping"}`: true, `{"type": "keepalive", "sequence_number": 12}`: true,
		``: false, `{}`: false, `{"type":"content_block_delta"}`: false, `{"type":"ping","text":"x"}`: false,
		`{"type":"ping"} more`: false, `{"type":"ping"}{"type":"ping"}`: false, `["type"]`: false, `{"type":"ping"`: false,
	} {
		if IsKeepalive([]byte(data)) != want {
			t.Errorf("%s: %v", data, !want)
		}
	}
}
