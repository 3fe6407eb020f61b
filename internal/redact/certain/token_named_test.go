package certain

import (
	"strings"
	"testing"
)

// Keys of providers in the forms that they have, made up.
const (
	hexKey   = "4f1c09e27ab85d3360fe91b7c2d8a6e5"
	lowerKey = "q7w2ne9rt4yu1iop8as3dfg6hj5kl0zx"
	mixedKey = "Zk3vQ9tLm7RxW2pYc8Bn"
)

func TestKeysBehindTheirProviderAreFound(t *testing.T) {
	for _, text := range []string{
		"deepgram = §", "deepgram: '§'", "Deepgram token 1 == §", "assemblyai '§'", `"nytimes": "§",`,
		`"new-york-times": "§",`,
		"apollo.io api_key §", "codacyACCESS_KEY §", "MATTERMOST_PAT=§", "MapQuest key is §, keep it",
		"mapQuest := \"§\"",
		"new Shodan(\"§\")", "sonar.login=§", "the asana oauth token: §.", "statuspage_api: OAuth §",
		"jenkins-crumb:§",
	} {
		for _, key := range []string{hexKey, lowerKey, mixedKey + "4tVb"} {
			in := strings.ReplaceAll(text, "§", key)
			if out, rules := hideFound(in); strings.Contains(out, key[len(key)-6:]) {
				t.Errorf("%q stays: %v", in, rules)
			}
		}
	}
}

func TestParametersOfKeysAreFound(t *testing.T) {
	for _, in := range []string{
		"https://api.example.com/v1?q=1&key=" + lowerKey, "https://api.example.com/v1?q=1&appid=" + hexKey,
		"authorization: bearer AAAAAAAAAAAAAAAAAAAAAMLheAAAAAAA0%2Bu" + mixedKey,
		"a bearer " + mixedKey + "%3D" + mixedKey,
	} {
		if out, _ := hideFound(in); strings.HasSuffix(out, in[len(in)-6:]) {
			t.Errorf("%q stays: %q", in, out)
		}
	}
	for _, in := range []string{
		"https://example.com/v1?key=some-name-of-a-page-2", "https://example.com/v1?key=" + hexKey,
	} {
		if out, _ := hideFound(in); out != in {
			t.Errorf("%q became %q", in, out)
		}
	}
}

// The name of a secret tells a random value behind a dash, a stroke or a blank too.
func TestKeysBehindANameWithoutASignAreFound(t *testing.T) {
	for _, text := range []string{"acme token - '§'", "apiKey |§", "api_key §", "CLIENT_SECRET  §"} {
		in := strings.ReplaceAll(text, "§", mixedKey)
		if out, _ := hideFound(in); strings.Contains(out, mixedKey) {
			t.Errorf("%q stays", in)
		}
	}
}

func TestOrdinaryValuesBehindProvidersStay(t *testing.T) {
	for _, in := range []string{
		"deepgram release " + hexKey, // another word is between
		"github: " + hexKey,          // of common ones a word for a key tells
		"_postman_id: '" + hexKey + "'", "postman hash = " + hexKey,
		"docker " + hexKey + hexKey,             // an image
		"deepgram = '" + hexKey[:31] + "'",      // no size that a key has
		"deepgram = '" + hexKey + "?x=1'",       // continues
		"deepgram = 'getUtf8StringFromBase64V'", // a name in code
		"deepgram = " + strings.Repeat("1234567890", 4),
		"mapquest: docs/guides/v2/setup-page-2",
		"deepgram\n" + hexKey, // of the line before
		"see deepgram " + hexKey,
		"xdeepgram = " + hexKey,
		"call(token, '" + hexKey + "')",
		"msg_" + mixedKey + " of " + mixedKey,
	} {
		if out, rules := hideFound(in); out != in {
			t.Errorf("%q became %q by %v", in, out, rules)
		}
	}
}
