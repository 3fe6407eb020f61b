package checksum

import "testing"

func TestNKeySeedIsToldByItsForm(t *testing.T) {
	body := "ACAGMTN2CT4ZJ5XW7QV3LKRP6HDYEBSF2UOI4ANMGZT7WXKQJ5VRPLHD"
	for seed, want := range map[string]bool{
		"SU" + body: true, "SA" + body: true, "SB" + body: false, "PU" + body: false, "SU" + body[1:]: false,
		"SU" + body[1:] + "1": false, "SUBSCRIBETOOURNEWSLETTERANDFOLLOWUSONALLCHANNELSRIGHTNOWOK": false,
	} {
		if IsNKeySeed([]byte(seed)) != want {
			t.Errorf("%s: not %v", seed, want)
		}
	}
}
