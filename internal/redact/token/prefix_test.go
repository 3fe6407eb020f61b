package token

import (
	"strings"
	"testing"
)

// Follows reads MaxFollow bytes and an end of up to 63.
func TestPrefixesHaveSizesWithinBounds(t *testing.T) {
	for _, p := range Prefixes() {
		if len(p.Text) < 2 || p.Min > MaxFollow || p.Max > 63 || p.Max > 0 && p.Max < p.Min {
			t.Errorf("%s has a size that is out of bounds: %d to %d", p.Text, p.Min, p.Max)
		}
	}
}

// TestPrefixesArePinned sees a row that was deleted by mistake.
func TestPrefixesArePinned(t *testing.T) {
	var names []string
	for _, p := range Prefixes() {
		names = append(names, p.Text+p.Then)
	}
	if got := strings.Join(names, " "); got != strings.Join(strings.Fields(pinnedPrefixes), " ") {
		t.Errorf("the rows are\n%s", got)
	}
}

// pinnedPrefixes are the texts of all rows, in their order.
const pinnedPrefixes = `
ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ npm_ rubygems_ dckr_pat_ dckr_oat_ CLOJARS_ sgp_ sk_live_ rk_live_ sk_test_
rk_test_ whsec_ access_token$production$ access_token$sandbox$ shippo_live_ shippo_test_ duffel_live_
duffel_test_ shpat_ shpss_ shpca_ shppa_ hf_ api_org_ gsk_ sk_ r8_ jina_ pcsk_ lsv2_pt_ lsv2_sk_ wandb_v1_
tgp_v1_ fw_ e2b_ bb_live_ dop_v1_ doo_v1_ dor_v1_ nfp_ vcp_ vci_ vca_ vcr_ vck_ sbp_ sb_secret_ pscale_tkn_
pscale_pw_ pscale_oauth_ napi_ mdb_sa_sk_ cfut_ cfat_ FlyV1 fm2_ fm2_ fo1_ rnd_ ops_eyJ CCIPAT_ CCIPRJ_ bkua_
sqp_ squ_ sqa_ pnu_ pnb_ dbtc_ dbtu_ sntrys_ sntryu_ glsa_ glc_ hcaik_ hcbik_ phx_ lin_api_ lin_oauth_ ntn_
secret_ figd_ rdme_ tfp_ alcht_ aio_ apify_api_ AVNS_ authress_ scauth_ bb_pr_ bb_ma_ cfk_ ddp_ ddw_ figp_ figr_
figo_ figu_ flb_live_ flb_test_ flp_ fm1a_ fm1r_ key_ live_ test_ ls__ nfc_ nfo_ nfu_ odt_ pat_ ptr_ ramp_sec_
rootly_ rzp_live_ rzp_test_ salad_cloud_ sk_prod_ rk_prod_ sk_pr_ _secret_ slk_ sm_aat_ sm_pat_ sm_sat_ tkn.v1_
vercel_blob_rw_ waka_ cal_live_ key_ key_live_ key_test_ ion_ lip_ live_pub_ test_pub_ os_v2_app_ os_v2_org_
ovsxat_ pgar_ rpa_ sc_ zpka_ sk- csk- xai- pplx- nvapi- tvly- fc- bedrock-api-key- glpat- gldt- glrt- glptt-
glcbt- glft- glimt- gloas- glsoat- glffct- glwt- glagent- xoxa- xoxc- xoxd- xoxe- xoxo- xoxe.xoxp- xoxe.xoxb-
xoxb- xoxp- xoxr- xoxs- xapp- xwfp- GOCSPX- pypi- tskey- pul- HRKU- NRAK- NRII- PMAK- xkeysib- xsmtpsib- key-
sq0atp- sq0csp- FLWSECK- FLWSECK_TEST- access-production- access-development- access-sandbox- pat-na1- pat-eu1-
CFPAT- dnkey- v1.0- sdk- signkey-prod- signkey-test- A3- API- p8e- AGE-SECRET-KEY- AGE-SECRET-KEY-PQ- api- BBDC-
BBFF- cr- da2- fio-u- glrtr- ico- NRAA- NRBR- NRIQ- NRJS- pa- pat-na2- pat-na3- pat-ap1- pub-c- sub-c- sec-c-
RGAPI- s-s4t2ud- s-s4t2af- u-s4t2ud- u-s4t2af- scp-live- scp-test- sess- m0- sandbox-sq0csb- sq0csb- spu-
thog-secret- xaat- xapt- tk-us- ya29. SG. hvs. hvb. hvr. dp.pt. dp.ct. dp.sa. dp.scim. dp.audit. dp.st.
snyk_uat. snyk_sat. dt0c01. dt0s01. dt0s16. sk.eyJ sl. t1. pat. 1000. VF.DM. VF.WS. vk1.a. v1.local. v1.public.
v2.local. v2.public. v3.local. v3.public. v4.local. v4.public. k1.local. k1.secret. k2.local. k2.secret.
k3.local. k3.secret. k4.local. k4.secret. ABIA ACCA ABSK IQoJb3 FwoGZXIvYXdz FQoGZXIvYXdz LTAI AKID dapi dose
ATATT3 ATCTT3 ATBB EAA oy2 cio cmVmdGtu AKCp EZAK EZTK GR1348941 SK sha256~ SCW xprv yprv zprv tprv AQVN KEY0
3MVG9 4b1d
`
