package redact

import (
	"slices"
	"strings"
	"testing"
)

// prefixLists are the tables of prefixes.
func prefixLists() [][]prefix {
	return [][]prefix{underscored[:], dashed[:], dotted[:], runs[:]}
}

// shortest is the token of least length that a row describes.
func shortest(p *prefix) (token, body string) {
	var b strings.Builder
	for _, c := range []byte("a1B2c3D4e5F6") {
		if p.holds(c) {
			b.WriteByte(c)
		}
	}
	body = strings.Repeat(b.String(), p.min)[:p.min]
	return p.text + p.then + body, body
}

// Every row finds the shortest token that it describes, under its own rule, and
// nothing of a word behind it.
func TestEveryPrefixFindsItsShortestToken(t *testing.T) {
	e := newEngine(t)
	for _, list := range prefixLists() {
		for _, p := range list {
			if len(p.text) < 2 || p.min > maxFollow || p.max > 63 || p.max > 0 && p.max < p.min {
				t.Errorf("%s has a size that is out of bounds: %d to %d", p.text, p.min, p.max)
			}
			token, body := shortest(&p)
			r := e.Text([]byte("got " + token + " now"))
			if got := r.Rules(); !slices.Equal(got, []string{ruleNames[p.rule]}) {
				t.Errorf("%s was found by %v, want %s", token, got, ruleNames[p.rule])
			}
			if out := string(r.Out); !strings.HasSuffix(out, " now") || strings.Contains(out, body) {
				t.Errorf("%s left %q", token, out)
			}
			if p.min == 1 {
				continue
			}
			if r := e.Text([]byte("got " + token[:len(token)-1] + " now")); slices.Contains(r.Rules(), ruleNames[p.rule]) {
				t.Errorf("%s was found with a character less: %q", token, r.Out)
			}
		}
	}
}

// TestPrefixesArePinned sees a row that was deleted by mistake.
func TestPrefixesArePinned(t *testing.T) {
	var names []string
	for _, list := range prefixLists() {
		for _, p := range list {
			names = append(names, p.text+p.then)
		}
	}
	if got := strings.Join(names, " "); got != strings.Join(strings.Fields(pinnedPrefixes), " ") {
		t.Errorf("the rows are\n%s", got)
	}
}

// beginnings are what a value comes behind where its text was escaped, coloured
// or set by people who do not write blanks.
var beginnings = []string{
	`\n§`, `a\r\n§\n`, `\t§`, `\u0020§`, `\u201c§\u201d`, `\x20§`, "“§”", "「§」", "：§", "密钥：§。", "é§", "→§", "\ufeff§",
	"\x1b[32m§\x1b[0m", "\x1b[1;38;5;208m§\x1b[0m", `\u001b[32m§\u001b[0m`, "\x1b[m§", "%20§", "a%3D§", "%2520§", "%E2%80%9C§", "{\"x\":\"\\\\n§\"}",
}

// begun are values of all forms that want a beginning.
func begun() []string {
	values := []string{
		"Bearer abcdef0123456789abcdef", "Basic dXNlcjpodW50ZXIy", "DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19",
		"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"+14155550132", "+44 20 7946 0958", "415-555-0132", "4111111111111111", "4111 1111 1111 1111", "123-45-6789",
		"1//0" + b62 + b62, hex64[:32] + "-us12", "abc8Q~" + b62[:33], "MTk4" + b62[:22] + ".GabcdE." + b62, "123456789:AA" + b62[:33],
		"AAAAabcdefg:APA91b" + b62 + b62 + b62, strings.Repeat("aB3d", 13) + "JQQJ99" + b62[:26], strings.Repeat("aB3", 26)[:76] + "+ASt" + "abcdef==",
	}
	for _, list := range prefixLists() {
		for _, p := range list {
			token, _ := shortest(&p)
			values = append(values, token)
		}
	}
	return values
}

// Whatever form is found between blanks is found behind an escape, a colour,
// and the punctuation of any script.
func TestValuesBeginBehindEscapes(t *testing.T) {
	e := newEngine(t)
	for _, v := range begun() {
		core := slices.MaxFunc(strings.Fields(v), func(a, b string) int { return len(a) - len(b) })
		for _, c := range beginnings {
			text := strings.ReplaceAll(c, slot, v)
			if out := string(e.Text([]byte(text)).Out); strings.Contains(out, core) {
				t.Errorf("Text(%q) = %q", text, out)
			}
			r, err := e.JSON([]byte(`{"note":"` + escaped(text) + `"}`))
			if err != nil || strings.Contains(string(r.Out), core) {
				t.Errorf("JSON of %q = %q, %v", text, r.Out, err)
			}
		}
	}
}

// An address ends and begins at the signs of typography; what only looks like
// one is known behind an escape too.
func TestAddressesStandBetweenMarks(t *testing.T) {
	e := newEngine(t)
	for text, want := range map[string]string{
		"“bob@example.com”": "“[email hidden]”", "→bob@example.com.»": "→[email hidden].»", "\ufeffbob@example.com": "\ufeff[email hidden]",
		"邮箱：bob@example.com。": "邮箱：[email hidden]。", "“git@github.com”": "“git@github.com”", `\ngit@github.com:a/b`: `\ngit@github.com:a/b`,
		"q=%20git@github.com": "q=%20git@github.com", "\x1b[32mgetty@tty1.service\x1b[0m": "\x1b[32mgetty@tty1.service\x1b[0m",
	} {
		if got := string(e.Text([]byte(text)).Out); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

// An ASCII letter or digit still binds, and what only looks like an escape.
func TestWordsAreNotEscapes(t *testing.T) {
	x := cursor{s: []byte(`an 12 \q %2g m] u0020 %4g`)}
	for i := range len(x.s) + 1 {
		if x.escaped(i) {
			t.Errorf("an escape ends at %d of %q", i, x.s)
		}
	}
	e := newEngine(t)
	for _, text := range []string{"xhf_" + b62, "9sk_" + hex64[:48], "aDE89370400440532013000", "x4155550132", "12–415-555-0132", "flubearer x1y2z3"} {
		if r := e.Text([]byte(text)); len(r.Findings) > 0 {
			t.Errorf("Text(%q) = %q", text, r.Out)
		}
	}
	// A "%" may be a sign as well.
	if out := string(e.Text([]byte("like '%4111111111111111%'")).Out); strings.Contains(out, "4111111111") {
		t.Errorf("a card behind a sign stays: %q", out)
	}
}

// pinnedPrefixes are the texts of all rows, in their order.
const pinnedPrefixes = `
ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ npm_ rubygems_ dckr_pat_ dckr_oat_ CLOJARS_ sgp_ sk_live_ rk_live_
sk_test_ rk_test_ whsec_ access_token$production$ access_token$sandbox$ shippo_live_ shippo_test_ duffel_live_
duffel_test_ shpat_ shpss_ shpca_ shppa_ hf_ api_org_ gsk_ sk_ r8_ jina_ pcsk_ lsv2_pt_ lsv2_sk_ wandb_v1_
tgp_v1_ fw_ e2b_ bb_live_ dop_v1_ doo_v1_ dor_v1_ nfp_ vcp_ vci_ vca_ vcr_ vck_ sbp_ sb_secret_ pscale_tkn_
pscale_pw_ pscale_oauth_ napi_ mdb_sa_sk_ cfut_ cfat_ fm2_ fo1_ rnd_ ops_eyJ CCIPAT_ CCIPRJ_ bkua_ sqp_ squ_
sqa_ pnu_ pnb_ dbtc_ dbtu_ sntrys_ sntryu_ glsa_ glc_ hcaik_ hcbik_ phx_ lin_api_ lin_oauth_ ntn_ secret_
figd_ rdme_ tfp_ sk- csk- xai- pplx- nvapi- tvly- fc- bedrock-api-key- glpat- gldt- glrt- glptt- glcbt- glft-
glimt- gloas- glsoat- glffct- glwt- glagent- xoxa- xoxc- xoxd- xoxe- xoxo- xoxe.xoxp- xoxe.xoxb- xoxb- xoxp-
xoxr- xoxs- xapp- xwfp- GOCSPX- pypi- tskey- pul- HRKU- NRAK- NRII- PMAK- xkeysib- xsmtpsib- key- sq0atp-
sq0csp- FLWSECK- FLWSECK_TEST- access-production- access-development- access-sandbox- pat-na1- pat-eu1- CFPAT-
dnkey- v1.0- sdk- signkey-prod- signkey-test- A3- API- p8e- AGE-SECRET-KEY- AGE-SECRET-KEY-PQ- ya29. SG. hvs.
hvb. hvr. dp.pt. dp.ct. dp.sa. dp.scim. dp.audit. dp.st. snyk_uat. snyk_sat. dt0c01. dt0s01. dt0s16. sk.eyJ
sl. t1. pat. ABIA ACCA ABSK IQoJb3 FwoGZXIvYXdz FQoGZXIvYXdz LTAI AKID dapi dose ATATT3 ATCTT3 ATBB EAA oy2
cio cmVmdGtu AKCp EZAK EZTK GR1348941 SK sha256~ SCW xprv yprv zprv tprv
`
