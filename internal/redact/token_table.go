package redact

// How to add a format that its first bytes tell: write a row in the list that
// its text's last byte names, and its name in pinnedPrefixes; put a token of it
// into tokenTexts and what only looks like one into notSecret; make the format,
// with right and wrong lengths, in labelled_secrets_test.go; and bring the figures
// of doc/redaction.md up to date, which TestDocumentHasTheFigures prints.

// prefix is a credential that its first bytes tell.
type prefix struct {
	// text is at least three bytes, of runs two, and ends as its list wants it.
	text string
	// then stands behind text before what is counted, where text alone is common.
	then string
	// class are the bytes that follow.
	class uint16
	// more are the bytes that may follow besides; a full stop is not taken at
	// the end.
	more string
	// min is how many must follow, at most maxFollow: what issuers give, or less
	// where lengths have changed.
	min int
	// max is how many may follow, at most 63, 0 for any: it is set where the
	// length is fixed and the text so common that it is needed to tell.
	max int
	// bound wants a word to begin here, for a text that ends longer names
	// ("task-", "half_"); leave it out where no word has the text in it.
	bound bool
	// mixed wants a digit or a capital among what follows, for a text that words
	// may follow ("sk-learn-and-so-on").
	mixed bool
	// rule is what a finding is called.
	rule rule
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
		{text: "dckr_pat_", class: isURL64, min: 20, rule: ruleToken}, // Docker Hub
		{text: "dckr_oat_", class: isURL64, min: 20, rule: ruleToken}, // Docker, of an organisation
		{text: "CLOJARS_", class: isHex, min: 60, rule: ruleToken},
		{text: "sgp_", class: isHex, more: "_", min: 40, bound: true, rule: ruleToken}, // Sourcegraph
		// Payment.
		{text: "sk_live_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "rk_live_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "sk_test_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "rk_test_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "whsec_", class: isStd64, more: "=", min: 16, rule: ruleStripe}, // Stripe's webhooks, and Svix
		{text: "access_", then: "token$production$", class: isAlnum, more: "$", min: 40, rule: ruleToken},
		{text: "access_", then: "token$sandbox$", class: isAlnum, more: "$", min: 40, rule: ruleToken},
		{text: "shippo_live_", class: isHex, min: 40, rule: ruleToken}, // Shippo
		{text: "shippo_test_", class: isHex, min: 40, rule: ruleToken},
		{text: "duffel_live_", class: isURL64, min: 40, rule: ruleToken},
		{text: "duffel_test_", class: isURL64, min: 40, rule: ruleToken},
		{text: "shpat_", class: isHex, min: 32, rule: ruleToken}, // Shopify, here and below
		{text: "shpss_", class: isHex, min: 32, rule: ruleToken},
		{text: "shpca_", class: isHex, min: 32, rule: ruleToken},
		{text: "shppa_", class: isHex, min: 32, rule: ruleToken},
		// Models and what agents use.
		{text: "hf_", class: isAlnum, min: 30, bound: true, rule: ruleModel},              // Hugging Face
		{text: "api_org_", class: isAlnum, min: 34, bound: true, rule: ruleModel},         // Hugging Face, of an organisation
		{text: "gsk_", class: isAlnum, min: 40, bound: true, rule: ruleModel},             // Groq
		{text: "sk_", class: isHex, min: 48, max: 48, bound: true, rule: ruleModel},       // ElevenLabs
		{text: "r8_", class: isAlnum, min: 37, max: 40, bound: true, rule: ruleModel},     // Replicate
		{text: "jina_", class: isAlnum, min: 40, bound: true, rule: ruleModel},            // Jina
		{text: "pcsk_", class: isAlnum, more: "_", min: 40, bound: true, rule: ruleModel}, // Pinecone
		{text: "lsv2_pt_", class: isHex, more: "_", min: 32, rule: ruleModel},             // LangSmith
		{text: "lsv2_sk_", class: isHex, more: "_", min: 32, rule: ruleModel},
		{text: "wandb_v1_", class: isURL64, min: 40, rule: ruleModel},                              // Weights & Biases
		{text: "tgp_v1_", class: isURL64, min: 30, rule: ruleModel},                                // Together
		{text: "fw_", class: isAlnum, min: 22, max: 24, bound: true, mixed: true, rule: ruleModel}, // Fireworks
		{text: "e2b_", class: isHex, min: 40, bound: true, rule: ruleModel},                        // E2B
		{text: "bb_live_", class: isURL64, min: 20, bound: true, rule: ruleModel},                  // Browserbase
		// Clouds, hosting and databases.
		{text: "dop_v1_", class: isHex, min: 40, rule: ruleToken}, // DigitalOcean: personal, OAuth, refresh
		{text: "doo_v1_", class: isHex, min: 40, rule: ruleToken},
		{text: "dor_v1_", class: isHex, min: 40, rule: ruleToken},
		{text: "nfp_", class: isAlnum, min: 36, bound: true, rule: ruleToken}, // Netlify
		{text: "vcp_", class: isAlnum, min: 40, bound: true, rule: ruleToken}, // Vercel, here and below
		{text: "vci_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "vca_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "vcr_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "vck_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "sbp_", class: isHex, min: 40, bound: true, rule: ruleToken}, // Supabase
		{text: "sb_secret_", class: isURL64, min: 20, bound: true, rule: ruleToken},
		{text: "pscale_tkn_", class: isURL64, more: ".", min: 30, rule: ruleToken}, // PlanetScale
		{text: "pscale_pw_", class: isURL64, more: ".", min: 30, rule: ruleToken},
		{text: "pscale_oauth_", class: isURL64, more: ".", min: 30, rule: ruleToken},
		{text: "napi_", class: isAlnum, min: 40, bound: true, rule: ruleToken}, // Neon
		{text: "mdb_sa_sk_", class: isURL64, min: 30, rule: ruleToken},         // MongoDB Atlas
		{text: "cfut_", class: isAlnum, min: 40, bound: true, rule: ruleToken}, // Cloudflare: of a user, of an account
		{text: "cfat_", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "fm2_", class: isStd64, more: "=", min: 100, bound: true, rule: ruleToken},   // Fly.io
		{text: "fo1_", class: isURL64, min: 40, bound: true, rule: ruleToken},               // Fly.io
		{text: "rnd_", class: isAlnum, min: 28, bound: true, rule: ruleToken},               // Render
		{text: "ops_", then: "eyJ", class: isURL64, min: 100, bound: true, rule: ruleToken}, // 1Password's service accounts
		// CI and quality.
		{text: "CCIPAT_", class: isURL64, min: 30, rule: ruleToken}, // CircleCI: personal, of a project
		{text: "CCIPRJ_", class: isURL64, min: 30, rule: ruleToken},
		{text: "bkua_", class: isHex, min: 40, bound: true, rule: ruleToken}, // Buildkite
		{text: "sqp_", class: isHex, min: 40, bound: true, rule: ruleToken},  // SonarQube: of a project, a user, an analysis
		{text: "squ_", class: isHex, min: 40, bound: true, rule: ruleToken},
		{text: "sqa_", class: isHex, min: 40, bound: true, rule: ruleToken},
		{text: "pnu_", class: isAlnum, min: 36, bound: true, rule: ruleToken}, // Prefect: of a user, of a bot
		{text: "pnb_", class: isAlnum, min: 36, bound: true, rule: ruleToken},
		{text: "dbtc_", class: isURL64, min: 30, bound: true, rule: ruleToken}, // dbt: of a service, of a user
		{text: "dbtu_", class: isURL64, min: 30, bound: true, rule: ruleToken},
		// Observability.
		{text: "sntrys_", class: isStd64, more: "_=-", min: 60, rule: ruleToken}, // Sentry: of an organisation, of a user
		{text: "sntryu_", class: isHex, min: 60, rule: ruleToken},
		{text: "glsa_", class: isAlnum, more: "_", min: 40, bound: true, rule: ruleToken},             // Grafana: of a service account
		{text: "glc_", class: isStd64, more: "=", min: 32, bound: true, mixed: true, rule: ruleToken}, // Grafana Cloud
		{text: "hcaik_", class: isAlnum, min: 30, bound: true, rule: ruleToken},                       // Honeycomb: to ingest, classic
		{text: "hcbik_", class: isAlnum, min: 30, bound: true, rule: ruleToken},
		{text: "phx_", class: isAlnum, min: 40, bound: true, rule: ruleToken}, // PostHog
		// Work.
		{text: "lin_api_", class: isAlnum, min: 30, rule: ruleToken}, // Linear
		{text: "lin_oauth_", class: isAlnum, min: 30, rule: ruleToken},
		{text: "ntn_", class: isAlnum, min: 40, bound: true, rule: ruleToken},                          // Notion
		{text: "secret_", class: isAlnum, min: 43, max: 43, bound: true, mixed: true, rule: ruleToken}, // Notion's of old
		{text: "figd_", class: isURL64, min: 38, bound: true, rule: ruleToken},                         // Figma
		{text: "rdme_", class: isAlnum, min: 60, bound: true, rule: ruleToken},                         // ReadMe
		{text: "tfp_", class: isURL64, more: ".", min: 40, bound: true, rule: ruleToken},               // Typeform
	}
	dashed = [...]prefix{
		{text: "sk-", class: isURL64, min: 20, bound: true, mixed: true, rule: ruleModel},   // OpenAI, Anthropic, OpenRouter, DeepSeek and others
		{text: "csk-", class: isAlnum, min: 40, bound: true, mixed: true, rule: ruleModel},  // Cerebras
		{text: "xai-", class: isAlnum, min: 60, bound: true, rule: ruleModel},               // xAI
		{text: "pplx-", class: isAlnum, min: 40, bound: true, rule: ruleModel},              // Perplexity
		{text: "nvapi-", class: isURL64, min: 50, bound: true, rule: ruleModel},             // NVIDIA
		{text: "tvly-", class: isURL64, min: 28, bound: true, mixed: true, rule: ruleModel}, // Tavily
		{text: "fc-", class: isHex, min: 32, max: 32, bound: true, rule: ruleModel},         // Firecrawl
		{text: "bedrock-api-key-", class: isStd64, more: "=", min: 40, rule: ruleModel},     // Amazon Bedrock
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
		{text: "GOCSPX-", class: isURL64, min: 20, rule: ruleGoogle}, // the secret of an OAuth client
		{text: "pypi-", class: isURL64, min: 50, rule: ruleToken},
		{text: "tskey-", class: isURL64, min: 20, bound: true, mixed: true, rule: ruleToken}, // Tailscale
		{text: "pul-", class: isHex, min: 40, bound: true, rule: ruleToken},                  // Pulumi
		{text: "HRKU-", class: isURL64, min: 30, bound: true, rule: ruleToken},               // Heroku
		{text: "NRAK-", class: isAlnum, min: 20, bound: true, rule: ruleToken},               // New Relic: of a user
		{text: "NRII-", class: isURL64, min: 20, bound: true, rule: ruleToken},               // New Relic: to insert
		{text: "PMAK-", class: isHex, more: "-", min: 50, bound: true, rule: ruleToken},      // Postman
		{text: "xkeysib-", class: isAlnum, more: "-", min: 64, rule: ruleToken},              // Brevo
		{text: "xsmtpsib-", class: isAlnum, more: "-", min: 64, rule: ruleToken},             // Brevo's SMTP
		{text: "key-", class: isHex, min: 32, max: 32, bound: true, rule: ruleToken},         // Mailgun
		{text: "sq0atp-", class: isURL64, min: 22, rule: ruleToken},                          // Square
		{text: "sq0csp-", class: isURL64, min: 40, rule: ruleToken},                          // Square, of an application
		{text: "FLWSECK-", class: isAlnum, more: "-", min: 12, rule: ruleToken},              // Flutterwave
		{text: "FLWSECK_TEST-", class: isAlnum, more: "-", min: 12, rule: ruleToken},
		{text: "access-production-", class: isHex, more: "-", min: 36, rule: ruleToken}, // Plaid, here and below
		{text: "access-development-", class: isHex, more: "-", min: 36, rule: ruleToken},
		{text: "access-sandbox-", class: isHex, more: "-", min: 36, rule: ruleToken},
		{text: "pat-na1-", class: isHex, more: "-", min: 36, bound: true, rule: ruleToken}, // HubSpot
		{text: "pat-eu1-", class: isHex, more: "-", min: 36, bound: true, rule: ruleToken},
		{text: "CFPAT-", class: isURL64, min: 40, bound: true, rule: ruleToken},                 // Contentful
		{text: "dnkey-", class: isURL64, min: 40, bound: true, rule: ruleToken},                 // Defined Networking
		{text: "v1.0-", class: isHex, more: "-", min: 64, bound: true, rule: ruleToken},         // Cloudflare, to sign origins
		{text: "sdk-", class: isHex, more: "-", min: 36, max: 36, bound: true, rule: ruleToken}, // LaunchDarkly
		{text: "signkey-prod-", class: isAlnum, min: 20, rule: ruleToken},                       // Inngest
		{text: "signkey-test-", class: isAlnum, min: 20, rule: ruleToken},
		{text: "A3-", class: isUpper | isDigit, more: "-", min: 32, max: 40, bound: true, rule: ruleToken}, // 1Password's secret key
		{text: "API-", class: isUpper | isDigit, min: 26, max: 26, bound: true, rule: ruleToken},           // Octopus Deploy
		{text: "p8e-", class: isAlnum, min: 32, max: 32, bound: true, mixed: true, rule: ruleToken},        // Adobe
		{text: "AGE-SECRET-KEY-", class: isAlnum, min: 20, rule: rulePrivateKey},                           // age
		{text: "AGE-SECRET-KEY-PQ-", class: isAlnum, min: 20, rule: rulePrivateKey},
	}
	dotted = [...]prefix{
		{text: "ya29.", class: isURL64, more: ".", min: 20, rule: ruleGoogle},           // OAuth
		{text: "SG.", class: isURL64, more: ".", min: 40, bound: true, rule: ruleToken}, // SendGrid
		{text: "hvs.", class: isURL64, min: 20, bound: true, rule: ruleToken},           // HashiCorp Vault: service, batch, recovery
		{text: "hvb.", class: isURL64, min: 40, bound: true, rule: ruleToken},
		{text: "hvr.", class: isURL64, min: 40, bound: true, rule: ruleToken},
		{text: "dp.pt.", class: isAlnum, min: 40, bound: true, rule: ruleToken}, // Doppler, here and below
		{text: "dp.ct.", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "dp.sa.", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "dp.scim.", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "dp.audit.", class: isAlnum, min: 40, bound: true, rule: ruleToken},
		{text: "dp.st.", class: isURL64, more: ".", min: 40, bound: true, rule: ruleToken},
		{text: "snyk_uat.", class: isURL64, more: ".", min: 40, rule: ruleToken},
		{text: "snyk_sat.", class: isURL64, more: ".", min: 40, rule: ruleToken},
		{text: "dt0c01.", class: isAlnum, more: ".", min: 60, rule: ruleToken}, // Dynatrace, here and below
		{text: "dt0s01.", class: isAlnum, more: ".", min: 60, rule: ruleToken},
		{text: "dt0s16.", class: isAlnum, more: ".", min: 60, rule: ruleToken},
		{text: "sk.", then: "eyJ", class: isURL64, more: ".", min: 40, bound: true, rule: ruleToken},  // Mapbox
		{text: "sl.", class: isURL64, more: ".", min: 60, bound: true, mixed: true, rule: ruleToken},  // Dropbox
		{text: "t1.", class: isURL64, more: ".=", min: 60, bound: true, mixed: true, rule: ruleToken}, // Yandex Cloud
		{text: "pat.", class: isAlnum, more: "_-.", min: 50, bound: true, mixed: true, rule: ruleToken},
	}
	// runs are told at the first digit of a word that begins with them.
	runs = [...]prefix{
		{text: "ABIA", class: isUpper | isDigit, min: 16, max: 16, rule: ruleAWSKeyID}, // of a service's bearer
		{text: "ACCA", class: isUpper | isDigit, min: 16, max: 16, rule: ruleAWSKeyID}, // of a context
		{text: "ABSK", class: isStd64, more: "=", min: 60, rule: ruleModel},            // Amazon Bedrock
		{text: "IQoJb3", class: isStd64, more: "=%", min: 60, rule: ruleAWSSession},    // session tokens, here and below
		{text: "FwoGZXIvYXdz", class: isStd64, more: "=%", min: 60, rule: ruleAWSSession},
		{text: "FQoGZXIvYXdz", class: isStd64, more: "=%", min: 60, rule: ruleAWSSession},
		{text: "LTAI", class: isAlnum, min: 12, max: 26, rule: ruleToken},                         // Alibaba Cloud
		{text: "AKID", class: isAlnum, min: 32, max: 40, mixed: true, rule: ruleToken},            // Tencent Cloud
		{text: "dapi", class: isHex, more: "-", min: 32, max: 34, rule: ruleToken},                // Databricks
		{text: "dose", class: isHex, min: 32, max: 32, rule: ruleToken},                           // Databricks, OAuth
		{text: "ATATT3", class: isURL64, more: "=", min: 40, rule: ruleToken},                     // Atlassian
		{text: "ATCTT3", class: isURL64, more: "=", min: 40, rule: ruleToken},                     // Bitbucket
		{text: "ATBB", class: isAlnum, more: "=", min: 24, max: 40, mixed: true, rule: ruleToken}, // Bitbucket, an app's password
		{text: "EAA", class: isURL64, min: 55, mixed: true, rule: ruleToken},                      // Meta
		{text: "oy2", class: isLower | isDigit, min: 43, max: 43, rule: ruleToken},                // NuGet
		{text: "cio", class: isAlnum, min: 32, max: 32, mixed: true, rule: ruleToken},             // crates.io
		{text: "cmVmdGtu", class: isAlnum, min: 40, rule: ruleToken},                              // JFrog, by reference
		{text: "AKCp", class: isAlnum, min: 60, rule: ruleToken},                                  // JFrog
		{text: "EZAK", class: isAlnum, min: 50, rule: ruleToken},                                  // EasyPost
		{text: "EZTK", class: isAlnum, min: 50, rule: ruleToken},                                  // EasyPost, for tests
		{text: "GR1348941", class: isURL64, min: 20, rule: ruleGitLab},                            // registers runners
		{text: "SK", class: isHex, min: 32, max: 32, rule: ruleToken},                             // Twilio
		{text: "sha256", then: "~", class: isURL64, min: 43, rule: ruleToken},                     // OpenShift
		{text: "SCW", class: isUpper | isDigit, min: 17, max: 17, rule: ruleToken},                // Scaleway
		{text: "xprv", class: isAlnum, min: 100, rule: rulePrivateKey},                            // BIP 32, here and below
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
