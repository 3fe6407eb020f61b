package token

import (
	"strings"
	"testing"
)

func TestProvidersAreListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range strings.Fields(common + telling) {
		if seen[name] {
			t.Errorf("%s is listed twice", name)
		}
		seen[name] = true
		if len(name) > maxName || strings.ToLower(name) != name {
			t.Errorf("%s is too long, or has a capital", name)
		}
	}
}

func TestProviderOfJoinsWords(t *testing.T) {
	if ProviderOf([]byte("Map"), []byte("QUEST")) != Telling || ProviderOf([]byte("docker")) != Common ||
		ProviderOf([]byte("nothing")) != Unknown || ProviderOf([]byte(strings.Repeat("a", maxName+1))) != Unknown {
		t.Error("a provider is not recognised by its words")
	}
}

func TestIsKeyTellsKeysFromNames(t *testing.T) {
	for _, v := range []string{
		"4f1c09e27ab85d3360fe91b7c2d8a6e5", "q7w2ne9rt4yu1iop8as3dfg6hj5kl0zx", "Zk3vQ9tLm7RxW2pYc8Bn",
		"f59dffd2-83ea-47c7-ba8f-95e053a6d0ae",
		"bdc55270455ca0a892e4", "98m+o2ylRhVbOi+3o5ub6PbP343ocFUVORgSYeypMDjh",
	} {
		if !IsKey([]byte(v)) {
			t.Errorf("%s is a key", v)
		}
	}
	for _, v := range []string{
		"", "short1a2b3c", "getUserTokenFromRequest2", "codeclimate-action-v2-2-4", "12345678901234567890",
		"api.us3.datadoghq.com",
		"docs/guides/v2/setup-page-2.html", strings.Repeat("a1", 100),
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa1b2", "AbCdEfGhIjKlMnOpQrStUvWx",
	} {
		if IsKey([]byte(v)) {
			t.Errorf("%s is not a key", v)
		}
	}
}
