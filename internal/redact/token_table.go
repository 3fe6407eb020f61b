package redact

// prefix is a credential that its first bytes tell.
type prefix struct {
	text  string
	then  string // what stands behind it before the rest
	class uint16 // what follows
	more  string // what may follow besides
	min   int    // how much must follow
	max   int    // how much may follow, 0 for any; at most 63
	bound bool   // nothing of a word may stand before it
	mixed bool   // a digit or a capital must follow
	rule  rule
}

// underscored, dashed and dotted are the prefixes that end in "_", "-" and
// ".", in the forms that their issuers document. What is not bound is found
// inside longer words too. A check inside a token (GitHub's, npm's) is not
// asked for: the form alone is masked.
var (
	underscored = [...]prefix{
		// Code hosts and registries.
		{text: "ghp_", class: isAlnum, more: "_", min: 16, rule: ruleGitHub},
		{text: "gho_", class: isAlnum, more: "_", min: 16, rule: ruleGitHub},
		{text: "ghu_", class: isAlnum, more: "_", min: 16, rule: ruleGitHub},
		{text: "ghs_", class: isURL64, more: ".", min: 16, rule: ruleGitHub},
		{text: "ghr_", class: isAlnum, more: "_", min: 16, rule: ruleGitHub},
		{text: "github_pat_", class: isAlnum, more: "_", min: 20, rule: ruleGitHub},
		{text: "npm_", class: isAlnum, min: 30, rule: ruleNPM},
		{text: "rubygems_", class: isHex, min: 40, rule: ruleToken},
		{text: "dckr_pat_", class: isURL64, min: 20, rule: ruleToken},
		{text: "dckr_oat_", class: isURL64, min: 20, rule: ruleToken},
		{text: "CLOJARS_", class: isHex, min: 60, rule: ruleToken},
		{text: "sgp_", class: isHex, more: "_", min: 40, bound: true, rule: ruleToken},
		// Payment.
		{text: "sk_live_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "rk_live_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "sk_test_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "rk_test_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "whsec_", class: isStd64, more: "=", min: 16, rule: ruleStripe},
		{text: "access_", then: "token$production$", class: isAlnum, more: "$", min: 40, rule: ruleToken},
		{text: "access_", then: "token$sandbox$", class: isAlnum, more: "$", min: 40, rule: ruleToken},
		{text: "shippo_live_", class: isHex, min: 40, rule: ruleToken},
		{text: "shippo_test_", class: isHex, min: 40, rule: ruleToken},
		{text: "duffel_live_", class: isURL64, min: 40, rule: ruleToken},
		{text: "duffel_test_", class: isURL64, min: 40, rule: ruleToken},
		{text: "shpat_", class: isHex, min: 32, rule: ruleToken},
		{text: "shpss_", class: isHex, min: 32, rule: ruleToken},
		{text: "shpca_", class: isHex, min: 32, rule: ruleToken},
		{text: "shppa_", class: isHex, min: 32, rule: ruleToken},
		// Models and what agents use.
		{text: "hf_", class: isAlnum, min: 30, bound: true, rule: ruleModel},
		{text: "api_org_", class: isAlnum, min: 34, bound: true, rule: ruleModel},
		{text: "gsk_", class: isAlnum, min: 40, bound: true, rule: ruleModel},
		{text: "sk_", class: isHex, min: 48, max: 48, bound: true, rule: ruleModel},
		{text: "r8_", class: isAlnum, min: 37, max: 40, bound: true, rule: ruleModel},
		{text: "jina_", class: isAlnum, min: 40, bound: true, rule: ruleModel},
		{text: "pcsk_", class: isAlnum, more: "_", min: 40, bound: true, rule: ruleModel},
		{text: "lsv2_pt_", class: isHex, more: "_", min: 32, rule: ruleModel},
		{text: "lsv2_sk_", class: isHex, more: "_", min: 32, rule: ruleModel},
		{text: "wandb_v1_", class: isURL64, min: 40, rule: ruleModel},
		{text: "tgp_v1_", class: isURL64, min: 30, rule: ruleModel},
		{text: "fw_", class: isAlnum, min: 22, max: 24, bound: true, mixed: true, rule: ruleModel},
		{text: "e2b_", class: isHex, min: 40, bound: true, rule: ruleModel},
		{text: "bb_live_", class: isURL64, min: 20, bound: true, rule: ruleModel},
		// Clouds, hosting and databases.
		{text: "dop_v1_", class: isHex, min: 40, rule: ruleToken},
		{text: "doo_v1_", class: isHex, min: 40, rule: ruleToken},
		{text: "dor_v1_", class: isHex, min: 40, rule: ruleToken},
		{text: "nfp_", class: isAlnum, min: 36, bound: true, rule: ruleToken},
		{text: "vcp_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "vci_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "vca_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "vcr_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "vck_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "sbp_", class: isHex, min: 40, bound: true, rule: ruleToken},
		{text: "sb_secret_", class: isURL64, min: 20, bound: true, rule: ruleToken},
		{text: "pscale_tkn_", class: isURL64, more: ".", min: 30, rule: ruleToken},
		{text: "pscale_pw_", class: isURL64, more: ".", min: 30, rule: ruleToken},
		{text: "pscale_oauth_", class: isURL64, more: ".", min: 30, rule: ruleToken},
		{text: "napi_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "mdb_sa_sk_", class: isURL64, min: 30, rule: ruleToken},
		{text: "cfut_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "cfat_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "fm2_", class: isStd64, more: "=", min: 100, bound: true, rule: ruleToken},
		{text: "fo1_", class: isURL64, min: 40, bound: true, rule: ruleToken},
		{text: "rnd_", class: isAlnum, min: 28, bound: true, rule: ruleToken},
		{text: "ops_", then: "eyJ", class: isURL64, min: 100, bound: true, rule: ruleToken},
		// CI and quality.
		{text: "CCIPAT_", class: isURL64, min: 30, rule: ruleToken},
		{text: "CCIPRJ_", class: isURL64, min: 30, rule: ruleToken},
		{text: "bkua_", class: isHex, min: 40, bound: true, rule: ruleToken},
		{text: "sqp_", class: isHex, min: 40, bound: true, rule: ruleToken},
		{text: "squ_", class: isHex, min: 40, bound: true, rule: ruleToken},
		{text: "sqa_", class: isHex, min: 40, bound: true, rule: ruleToken},
		{text: "pnu_", class: isAlnum, min: 36, bound: true, rule: ruleToken},
		{text: "pnb_", class: isAlnum, min: 36, bound: true, rule: ruleToken},
		{text: "dbtc_", class: isURL64, min: 30, bound: true, rule: ruleToken},
		{text: "dbtu_", class: isURL64, min: 30, bound: true, rule: ruleToken},
		// Observability.
		{text: "sntrys_", class: isStd64, more: "_=-", min: 60, rule: ruleToken},
		{text: "sntryu_", class: isHex, min: 60, rule: ruleToken},
		{text: "glsa_", class: isAlnum, more: "_", min: 40, bound: true, rule: ruleToken},
		{text: "glc_", class: isStd64, more: "=", min: 32, bound: true, mixed: true, rule: ruleToken},
		{text: "hcaik_", class: isAlnum, min: 30, bound: true, rule: ruleToken},
		{text: "hcbik_", class: isAlnum, min: 30, bound: true, rule: ruleToken},
		{text: "phx_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		// Work.
		{text: "lin_api_", class: isAlnum, min: 30, rule: ruleToken},
		{text: "lin_oauth_", class: isAlnum, min: 30, rule: ruleToken},
		{text: "ntn_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "secret_", class: isAlnum, min: 43, max: 43, bound: true, mixed: true, rule: ruleToken},
		{text: "figd_", class: isURL64, min: 38, bound: true, rule: ruleToken},
		{text: "rdme_", class: isAlnum, min: 60, bound: true, rule: ruleToken},
		{text: "tfp_", class: isURL64, more: ".", min: 40, bound: true, rule: ruleToken},
	}
	dashed = [...]prefix{
		{text: "sk-", class: isURL64, min: 20, bound: true, mixed: true, rule: ruleModel},
		{text: "csk-", class: isAlnum, min: 40, bound: true, mixed: true, rule: ruleModel},
		{text: "xai-", class: isAlnum, min: 60, bound: true, rule: ruleModel},
		{text: "pplx-", class: isAlnum, min: 40, bound: true, rule: ruleModel},
		{text: "nvapi-", class: isURL64, min: 50, bound: true, rule: ruleModel},
		{text: "tvly-", class: isURL64, min: 28, bound: true, mixed: true, rule: ruleModel},
		{text: "fc-", class: isHex, min: 32, max: 32, bound: true, rule: ruleModel},
		{text: "bedrock-api-key-", class: isStd64, more: "=", min: 40, rule: ruleModel},
		{text: "glpat-", class: isURL64, more: ".", min: 16, rule: ruleGitLab},
		{text: "gldt-", class: isURL64, more: ".", min: 16, bound: true, rule: ruleGitLab},
		{text: "glrt-", class: isURL64, more: ".", min: 16, bound: true, rule: ruleGitLab},
		{text: "glptt-", class: isURL64, more: ".", min: 16, bound: true, rule: ruleGitLab},
		{text: "glcbt-", class: isURL64, more: ".", min: 16, bound: true, rule: ruleGitLab},
		{text: "glft-", class: isURL64, min: 20, bound: true, rule: ruleGitLab},
		{text: "glimt-", class: isURL64, min: 20, bound: true, rule: ruleGitLab},
		{text: "gloas-", class: isURL64, min: 20, bound: true, rule: ruleGitLab},
		{text: "glsoat-", class: isURL64, min: 20, bound: true, rule: ruleGitLab},
		{text: "glffct-", class: isURL64, min: 20, bound: true, rule: ruleGitLab},
		{text: "glwt-", class: isURL64, min: 20, bound: true, rule: ruleGitLab},
		{text: "glagent-", class: isURL64, min: 20, bound: true, rule: ruleGitLab},
		{text: "xoxa-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxc-", class: isURL64, more: "%", min: 10, rule: ruleSlack},
		{text: "xoxd-", class: isURL64, more: "%+/=", min: 10, rule: ruleSlack},
		{text: "xoxe-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxo-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxe.xoxp-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxe.xoxb-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxb-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxp-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxr-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxs-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xapp-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xwfp-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "GOCSPX-", class: isURL64, min: 20, rule: ruleGoogle},
		{text: "pypi-", class: isURL64, min: 50, rule: ruleToken},
		{text: "tskey-", class: isURL64, min: 20, bound: true, mixed: true, rule: ruleToken},
		{text: "pul-", class: isHex, min: 40, bound: true, rule: ruleToken},
		{text: "HRKU-", class: isURL64, min: 30, bound: true, rule: ruleToken},
		{text: "NRAK-", class: isAlnum, min: 20, bound: true, rule: ruleToken},
		{text: "NRII-", class: isURL64, min: 20, bound: true, rule: ruleToken},
		{text: "PMAK-", class: isHex, more: "-", min: 50, bound: true, rule: ruleToken},
		{text: "xkeysib-", class: isAlnum, more: "-", min: 64, rule: ruleToken},
		{text: "xsmtpsib-", class: isAlnum, more: "-", min: 64, rule: ruleToken},
		{text: "key-", class: isHex, min: 32, max: 32, bound: true, rule: ruleToken},
		{text: "sq0atp-", class: isURL64, min: 22, rule: ruleToken},
		{text: "sq0csp-", class: isURL64, min: 40, rule: ruleToken},
		{text: "FLWSECK-", class: isAlnum, more: "-", min: 12, rule: ruleToken},
		{text: "FLWSECK_TEST-", class: isAlnum, more: "-", min: 12, rule: ruleToken},
		{text: "access-production-", class: isHex, more: "-", min: 36, rule: ruleToken},
		{text: "access-development-", class: isHex, more: "-", min: 36, rule: ruleToken},
		{text: "access-sandbox-", class: isHex, more: "-", min: 36, rule: ruleToken},
		{text: "pat-na1-", class: isHex, more: "-", min: 36, bound: true, rule: ruleToken},
		{text: "pat-eu1-", class: isHex, more: "-", min: 36, bound: true, rule: ruleToken},
		{text: "CFPAT-", class: isURL64, min: 40, bound: true, rule: ruleToken},
		{text: "dnkey-", class: isURL64, min: 40, bound: true, rule: ruleToken},
		{text: "v1.0-", class: isHex, more: "-", min: 64, bound: true, rule: ruleToken},
		{text: "sdk-", class: isHex, more: "-", min: 36, max: 36, bound: true, rule: ruleToken},
		{text: "signkey-prod-", class: isAlnum, min: 20, rule: ruleToken},
		{text: "signkey-test-", class: isAlnum, min: 20, rule: ruleToken},
		{text: "A3-", class: isUpper | isDigit, more: "-", min: 32, max: 40, bound: true, rule: ruleToken},
		{text: "API-", class: isUpper | isDigit, min: 26, max: 26, bound: true, rule: ruleToken},
		{text: "p8e-", class: isAlnum, min: 32, max: 32, bound: true, mixed: true, rule: ruleToken},
		{text: "AGE-SECRET-KEY-", class: isAlnum, min: 20, rule: rulePrivateKey},
		{text: "AGE-SECRET-KEY-PQ-", class: isAlnum, min: 20, rule: rulePrivateKey},
	}
	dotted = [...]prefix{
		{text: "ya29.", class: isURL64, more: ".", min: 20, rule: ruleGoogle},
		{text: "SG.", class: isURL64, more: ".", min: 40, bound: true, rule: ruleToken},
		{text: "hvs.", class: isURL64, min: 20, bound: true, rule: ruleToken},
		{text: "hvb.", class: isURL64, min: 40, bound: true, rule: ruleToken},
		{text: "hvr.", class: isURL64, min: 40, bound: true, rule: ruleToken},
		{text: "dp.pt.", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "dp.ct.", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "dp.sa.", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "dp.scim.", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "dp.audit.", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "dp.st.", class: isURL64, more: ".", min: 40, bound: true, rule: ruleToken},
		{text: "snyk_uat.", class: isURL64, more: ".", min: 40, rule: ruleToken},
		{text: "snyk_sat.", class: isURL64, more: ".", min: 40, rule: ruleToken},
		{text: "dt0c01.", class: isAlnum, more: ".", min: 60, rule: ruleToken},
		{text: "dt0s01.", class: isAlnum, more: ".", min: 60, rule: ruleToken},
		{text: "dt0s16.", class: isAlnum, more: ".", min: 60, rule: ruleToken},
		{text: "sk.", then: "eyJ", class: isURL64, more: ".", min: 40, bound: true, rule: ruleToken},
		{text: "sl.", class: isURL64, more: ".", min: 60, bound: true, mixed: true, rule: ruleToken},
		{text: "t1.", class: isURL64, more: ".=", min: 60, bound: true, mixed: true, rule: ruleToken},
		{text: "pat.", class: isAlnum, more: "_-.", min: 50, bound: true, mixed: true, rule: ruleToken},
	}
	// runs are told at the first digit of a word that begins with them.
	runs = [...]prefix{
		{text: "ABIA", class: isUpper | isDigit, min: 16, max: 16, rule: ruleAWSKeyID},
		{text: "ACCA", class: isUpper | isDigit, min: 16, max: 16, rule: ruleAWSKeyID},
		{text: "ABSK", class: isStd64, more: "=", min: 60, rule: ruleModel},
		{text: "IQoJb3", class: isStd64, more: "=%", min: 60, rule: ruleAWSSession},
		{text: "FwoGZXIvYXdz", class: isStd64, more: "=%", min: 60, rule: ruleAWSSession},
		{text: "FQoGZXIvYXdz", class: isStd64, more: "=%", min: 60, rule: ruleAWSSession},
		{text: "LTAI", class: isAlnum, min: 12, max: 26, rule: ruleToken},
		{text: "AKID", class: isAlnum, min: 32, max: 40, mixed: true, rule: ruleToken},
		{text: "dapi", class: isHex, more: "-", min: 32, max: 34, rule: ruleToken},
		{text: "dose", class: isHex, min: 32, max: 32, rule: ruleToken},
		{text: "ATATT3", class: isURL64, more: "=", min: 40, rule: ruleToken},
		{text: "ATCTT3", class: isURL64, more: "=", min: 40, rule: ruleToken},
		{text: "ATBB", class: isAlnum, more: "=", min: 24, max: 40, mixed: true, rule: ruleToken},
		{text: "EAA", class: isURL64, min: 55, mixed: true, rule: ruleToken},
		{text: "oy2", class: isLower | isDigit, min: 43, max: 43, rule: ruleToken},
		{text: "cio", class: isAlnum, min: 32, max: 32, mixed: true, rule: ruleToken},
		{text: "cmVmdGtu", class: isAlnum, min: 40, rule: ruleToken},
		{text: "AKCp", class: isAlnum, min: 60, rule: ruleToken},
		{text: "EZAK", class: isAlnum, min: 50, rule: ruleToken},
		{text: "EZTK", class: isAlnum, min: 50, rule: ruleToken},
		{text: "GR1348941", class: isURL64, min: 20, rule: ruleGitLab},
		{text: "SK", class: isHex, min: 32, max: 32, rule: ruleToken},
		{text: "sha256", then: "~", class: isURL64, min: 43, rule: ruleToken},
		{text: "SCW", class: isUpper | isDigit, min: 17, max: 17, rule: ruleToken},
		{text: "xprv", class: isAlnum, min: 100, rule: rulePrivateKey},
		{text: "yprv", class: isAlnum, min: 100, rule: rulePrivateKey},
		{text: "zprv", class: isAlnum, min: 100, rule: rulePrivateKey},
		{text: "tprv", class: isAlnum, min: 100, rule: rulePrivateKey},
	}
)

// anchored finds a list's prefixes by the two bytes before their last one. One
// look decides whether anything is worth comparing.
type anchored struct {
	list  [1024]uint8 // an index of lists, 0 for nothing
	lists [][]prefix
}

var byUnderscore, byDash, byDot = anchor(underscored[:]), anchor(dashed[:]), anchor(dotted[:])

func anchor(list []prefix) *anchored {
	t := &anchored{lists: make([][]prefix, 1)}
	for _, p := range list {
		n := len(p.text)
		at := anchorOf(p.text[n-3], p.text[n-2])
		if t.list[at] == 0 {
			t.list[at] = uint8(len(t.lists))
			t.lists = append(t.lists, nil)
		}
		t.lists[t.list[at]] = append(t.lists[t.list[at]], p)
	}
	return t
}

func anchorOf(a, b byte) int { return int(a&31)<<5 | int(b&31) }

// runsBy holds runs by their first byte.
var runsBy = runsByFirst()

func runsByFirst() *[256][]prefix {
	var t [256][]prefix
	for _, p := range runs {
		t[p.text[0]] = append(t[p.text[0]], p)
	}
	return &t
}
