package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// CONTRIBUTING.md has the steps for a new row, under "A token that redaction finds by its prefix".

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
	rule rule.Rule
}

// underscored, dashed and dotted are the prefixes that end in "_", "-" and
// ".", in the forms that their issuers document. What is not bound is found
// inside longer words too. A check inside a token (GitHub's, npm's) is not
// asked for: the form alone is masked.
var (
	underscored = [...]prefix{
		// Code hosts and registries.
		{text: "ghp_", class: char.Alnum, more: "_", min: 16, rule: rule.GitHub},
		{text: "gho_", class: char.Alnum, more: "_", min: 16, rule: rule.GitHub},
		{text: "ghu_", class: char.Alnum, more: "_", min: 16, rule: rule.GitHub},
		{text: "ghs_", class: char.URL64, more: ".", min: 16, rule: rule.GitHub},
		{text: "ghr_", class: char.Alnum, more: "_", min: 16, rule: rule.GitHub},
		{text: "github_pat_", class: char.Alnum, more: "_", min: 20, rule: rule.GitHub},
		{text: "npm_", class: char.Alnum, min: 30, rule: rule.NPM},
		{text: "rubygems_", class: char.Hex, min: 40, rule: rule.Token},
		{text: "dckr_pat_", class: char.URL64, min: 20, rule: rule.Token}, // Docker Hub
		{text: "dckr_oat_", class: char.URL64, min: 20, rule: rule.Token}, // Docker, of an organisation
		{text: "CLOJARS_", class: char.Hex, min: 60, rule: rule.Token},
		{text: "sgp_", class: char.Hex, more: "_", min: 40, bound: true, rule: rule.Token}, // Sourcegraph
		// Payment.
		{text: "sk_live_", class: char.Alnum, min: 10, rule: rule.Stripe},
		{text: "rk_live_", class: char.Alnum, min: 10, rule: rule.Stripe},
		{text: "sk_test_", class: char.Alnum, min: 10, rule: rule.Stripe},
		{text: "rk_test_", class: char.Alnum, min: 10, rule: rule.Stripe},
		{text: "whsec_", class: char.Std64, more: "=", min: 16, rule: rule.Stripe}, // Stripe's webhooks, and Svix
		{text: "access_", then: "token$production$", class: char.Alnum, more: "$", min: 40, rule: rule.Token},
		{text: "access_", then: "token$sandbox$", class: char.Alnum, more: "$", min: 40, rule: rule.Token},
		{text: "shippo_live_", class: char.Hex, min: 40, rule: rule.Token}, // Shippo
		{text: "shippo_test_", class: char.Hex, min: 40, rule: rule.Token},
		{text: "duffel_live_", class: char.URL64, min: 40, rule: rule.Token},
		{text: "duffel_test_", class: char.URL64, min: 40, rule: rule.Token},
		{text: "shpat_", class: char.Hex, min: 32, rule: rule.Token}, // Shopify, here and below
		{text: "shpss_", class: char.Hex, min: 32, rule: rule.Token},
		{text: "shpca_", class: char.Hex, min: 32, rule: rule.Token},
		{text: "shppa_", class: char.Hex, min: 32, rule: rule.Token},
		// Models and what agents use.
		{text: "hf_", class: char.Alnum, min: 30, bound: true, rule: rule.Model},              // Hugging Face
		{text: "api_org_", class: char.Alnum, min: 34, bound: true, rule: rule.Model},         // Hugging Face, of an organisation
		{text: "gsk_", class: char.Alnum, min: 40, bound: true, rule: rule.Model},             // Groq
		{text: "sk_", class: char.Hex, min: 48, max: 48, bound: true, rule: rule.Model},       // ElevenLabs
		{text: "r8_", class: char.Alnum, min: 37, max: 40, bound: true, rule: rule.Model},     // Replicate
		{text: "jina_", class: char.Alnum, min: 40, bound: true, rule: rule.Model},            // Jina
		{text: "pcsk_", class: char.Alnum, more: "_", min: 40, bound: true, rule: rule.Model}, // Pinecone
		{text: "lsv2_pt_", class: char.Hex, more: "_", min: 32, rule: rule.Model},             // LangSmith
		{text: "lsv2_sk_", class: char.Hex, more: "_", min: 32, rule: rule.Model},
		{text: "wandb_v1_", class: char.URL64, min: 40, rule: rule.Model},                              // Weights & Biases
		{text: "tgp_v1_", class: char.URL64, min: 30, rule: rule.Model},                                // Together
		{text: "fw_", class: char.Alnum, min: 22, max: 24, bound: true, mixed: true, rule: rule.Model}, // Fireworks
		{text: "e2b_", class: char.Hex, min: 40, bound: true, rule: rule.Model},                        // E2B
		{text: "bb_live_", class: char.URL64, min: 20, bound: true, rule: rule.Model},                  // Browserbase
		// Clouds, hosting and databases.
		{text: "dop_v1_", class: char.Hex, min: 40, rule: rule.Token}, // DigitalOcean: personal, OAuth, refresh
		{text: "doo_v1_", class: char.Hex, min: 40, rule: rule.Token},
		{text: "dor_v1_", class: char.Hex, min: 40, rule: rule.Token},
		{text: "nfp_", class: char.Alnum, min: 36, bound: true, rule: rule.Token}, // Netlify
		{text: "vcp_", class: char.Alnum, min: 40, bound: true, rule: rule.Token}, // Vercel, here and below
		{text: "vci_", class: char.Alnum, min: 40, bound: true, rule: rule.Token},
		{text: "vca_", class: char.Alnum, min: 40, bound: true, rule: rule.Token},
		{text: "vcr_", class: char.Alnum, min: 40, bound: true, rule: rule.Token},
		{text: "vck_", class: char.Alnum, min: 40, bound: true, rule: rule.Token},
		{text: "sbp_", class: char.Hex, min: 40, bound: true, rule: rule.Token}, // Supabase
		{text: "sb_secret_", class: char.URL64, min: 20, bound: true, rule: rule.Token},
		{text: "pscale_tkn_", class: char.URL64, more: ".", min: 30, rule: rule.Token}, // PlanetScale
		{text: "pscale_pw_", class: char.URL64, more: ".", min: 30, rule: rule.Token},
		{text: "pscale_oauth_", class: char.URL64, more: ".", min: 30, rule: rule.Token},
		{text: "napi_", class: char.Alnum, min: 40, bound: true, rule: rule.Token}, // Neon
		{text: "mdb_sa_sk_", class: char.URL64, min: 30, rule: rule.Token},         // MongoDB Atlas
		{text: "cfut_", class: char.Alnum, min: 40, bound: true, rule: rule.Token}, // Cloudflare: of a user, of an account
		{text: "cfat_", class: char.Alnum, min: 40, bound: true, rule: rule.Token},
		{text: "fm2_", class: char.Std64, more: "=", min: 100, bound: true, rule: rule.Token},   // Fly.io
		{text: "fo1_", class: char.URL64, min: 40, bound: true, rule: rule.Token},               // Fly.io
		{text: "rnd_", class: char.Alnum, min: 28, bound: true, rule: rule.Token},               // Render
		{text: "ops_", then: "eyJ", class: char.URL64, min: 100, bound: true, rule: rule.Token}, // 1Password's service accounts
		// CI and quality.
		{text: "CCIPAT_", class: char.URL64, min: 30, rule: rule.Token}, // CircleCI: personal, of a project
		{text: "CCIPRJ_", class: char.URL64, min: 30, rule: rule.Token},
		{text: "bkua_", class: char.Hex, min: 40, bound: true, rule: rule.Token}, // Buildkite
		{text: "sqp_", class: char.Hex, min: 40, bound: true, rule: rule.Token},  // SonarQube: of a project, a user, an analysis
		{text: "squ_", class: char.Hex, min: 40, bound: true, rule: rule.Token},
		{text: "sqa_", class: char.Hex, min: 40, bound: true, rule: rule.Token},
		{text: "pnu_", class: char.Alnum, min: 36, bound: true, rule: rule.Token}, // Prefect: of a user, of a bot
		{text: "pnb_", class: char.Alnum, min: 36, bound: true, rule: rule.Token},
		{text: "dbtc_", class: char.URL64, min: 30, bound: true, rule: rule.Token}, // dbt: of a service, of a user
		{text: "dbtu_", class: char.URL64, min: 30, bound: true, rule: rule.Token},
		// Observability.
		{text: "sntrys_", class: char.Std64, more: "_=-", min: 60, rule: rule.Token}, // Sentry: of an organisation, of a user
		{text: "sntryu_", class: char.Hex, min: 60, rule: rule.Token},
		{text: "glsa_", class: char.Alnum, more: "_", min: 40, bound: true, rule: rule.Token},             // Grafana: of a service account
		{text: "glc_", class: char.Std64, more: "=", min: 32, bound: true, mixed: true, rule: rule.Token}, // Grafana Cloud
		{text: "hcaik_", class: char.Alnum, min: 30, bound: true, rule: rule.Token},                       // Honeycomb: to ingest, classic
		{text: "hcbik_", class: char.Alnum, min: 30, bound: true, rule: rule.Token},
		{text: "phx_", class: char.Alnum, min: 40, bound: true, rule: rule.Token}, // PostHog
		// Work.
		{text: "lin_api_", class: char.Alnum, min: 30, rule: rule.Token}, // Linear
		{text: "lin_oauth_", class: char.Alnum, min: 30, rule: rule.Token},
		{text: "ntn_", class: char.Alnum, min: 40, bound: true, rule: rule.Token},                          // Notion
		{text: "secret_", class: char.Alnum, min: 43, max: 43, bound: true, mixed: true, rule: rule.Token}, // Notion's of old
		{text: "figd_", class: char.URL64, min: 38, bound: true, rule: rule.Token},                         // Figma
		{text: "rdme_", class: char.Alnum, min: 60, bound: true, rule: rule.Token},                         // ReadMe
		{text: "tfp_", class: char.URL64, more: ".", min: 40, bound: true, rule: rule.Token},               // Typeform
		// Of the rule sets of gitleaks, trufflehog, titus and detect-secrets, by what their issuers document.
		{text: "alcht_", class: char.Alnum, min: 30, bound: true, rule: rule.Token},        // Alchemy
		{text: "aio_", class: char.Alnum, min: 28, max: 28, bound: true, rule: rule.Token}, // Adafruit IO
		{text: "apify_api_", class: char.Alnum, min: 36, rule: rule.Token},                 // Apify
		{text: "AVNS_", class: char.URL64, min: 18, bound: true, rule: rule.Token},
		// Aiven, of a service
		{text: "authress_", class: char.URL64, more: "./+=", min: 60, bound: true, rule: rule.Token},
		// Authress, here and below
		{text: "scauth_", class: char.URL64, more: "./+=", min: 60, bound: true, rule: rule.Token},
		{text: "bb_pr_", class: char.Hex, min: 30, bound: true, rule: rule.Token}, // Bannerbear: of a project, of all
		{text: "bb_ma_", class: char.Hex, min: 30, bound: true, rule: rule.Token},
		{text: "cfk_", class: char.Alnum, min: 40, bound: true, rule: rule.Token},
		// Cloudflare, the global key
		{text: "ddp_", class: char.Alnum, min: 36, max: 36, bound: true, rule: rule.Token},
		// Deno Deploy: personal, of an organisation
		{text: "ddw_", class: char.Alnum, min: 36, max: 36, bound: true, rule: rule.Token},
		{text: "figp_", class: char.URL64, more: "=", min: 38, bound: true, rule: rule.Token}, // Figma, here and below
		{text: "figr_", class: char.URL64, more: "=", min: 38, bound: true, rule: rule.Token},
		{text: "figo_", class: char.URL64, more: "=", min: 38, bound: true, rule: rule.Token},
		{text: "figu_", class: char.URL64, more: "=", min: 38, bound: true, rule: rule.Token},
		{text: "flb_live_", class: char.Alnum, min: 20, rule: rule.Token}, // Fleetbase
		{text: "flb_test_", class: char.Alnum, min: 20, rule: rule.Token},
		{text: "flp_", class: char.Alnum, min: 46, bound: true, rule: rule.Model},              // Friendli
		{text: "fm1a_", class: char.Std64, more: "=", min: 100, bound: true, rule: rule.Token}, // Fly.io, of before
		{text: "fm1r_", class: char.Std64, more: "=", min: 100, bound: true, rule: rule.Token},
		{text: "key_", class: char.Hex, min: 28, max: 28, bound: true, rule: rule.Model},  // Retell
		{text: "live_", class: char.Hex, min: 35, max: 35, bound: true, rule: rule.Token}, // Lob
		{text: "test_", class: char.Hex, min: 35, max: 35, bound: true, rule: rule.Token}, // Lob, for tests
		{text: "ls__", class: char.Hex, min: 32, max: 32, bound: true, rule: rule.Model},  // LangSmith, of before
		{text: "nfc_", class: char.Alnum, min: 36, bound: true, rule: rule.Token},         // Netlify, here and below
		{text: "nfo_", class: char.Alnum, min: 36, bound: true, rule: rule.Token},
		{text: "nfu_", class: char.Alnum, min: 36, bound: true, rule: rule.Token},
		{text: "odt_", class: char.Alnum, min: 32, bound: true, mixed: true, rule: rule.Token},
		// Dependency-Track
		{text: "pat_", class: char.Alnum, min: 63, bound: true, mixed: true, rule: rule.Model}, // Coze
		{text: "ptr_", class: char.Std64, more: "_-=", min: 40, bound: true, mixed: true, rule: rule.Token},
		// Portainer
		{text: "ramp_sec_", class: char.Alnum, min: 48, rule: rule.Token},              // Ramp
		{text: "rootly_", class: char.Hex, min: 64, bound: true, rule: rule.Token},     // Rootly
		{text: "rzp_live_", class: char.Alnum, min: 14, bound: true, rule: rule.Token}, // Razorpay
		{text: "rzp_test_", class: char.Alnum, min: 14, bound: true, rule: rule.Token},
		{text: "salad_cloud_", class: char.Alnum, more: "_", min: 24, bound: true, mixed: true, rule: rule.Token},
		// Salad
		{text: "sk_prod_", class: char.Alnum, min: 10, rule: rule.Stripe},
		{text: "rk_prod_", class: char.Alnum, min: 10, rule: rule.Stripe},
		{text: "sk_pr_", class: char.Alnum, more: "_", min: 42, bound: true, rule: rule.Model}, // PhotoRoom
		{text: "_secret_", class: char.Alnum, min: 25, max: 25, mixed: true, rule: rule.Stripe},
		// the secret of a Stripe payment's client
		{text: "slk_", class: char.Hex, min: 64, bound: true, rule: rule.Token},
		// Sourcegraph, of a licence
		{text: "sm_aat_", class: char.Alnum, min: 16, bound: true, rule: rule.Token},
		// SettleMint, here and below
		{text: "sm_pat_", class: char.Alnum, min: 16, bound: true, rule: rule.Token},
		{text: "sm_sat_", class: char.Alnum, min: 16, bound: true, rule: rule.Token},
		{text: "tkn.v1_", class: char.Std64, more: "=", min: 60, bound: true, rule: rule.Token},         // Teamwork
		{text: "vercel_blob_rw_", class: char.Alnum, more: "_", min: 30, bound: true, rule: rule.Token}, // Vercel Blob
		{text: "waka_", class: char.Hex, more: "-", min: 36, bound: true, rule: rule.Token},             // WakaTime
		{text: "zpka_", class: char.Alnum, more: "_", min: 40, bound: true, rule: rule.Token},           // Zuplo
	}
	dashed = [...]prefix{
		{text: "sk-", class: char.URL64, min: 20, bound: true, mixed: true, rule: rule.Model},   // OpenAI, Anthropic, OpenRouter, DeepSeek and others
		{text: "csk-", class: char.Alnum, min: 40, bound: true, mixed: true, rule: rule.Model},  // Cerebras
		{text: "xai-", class: char.Alnum, min: 60, bound: true, rule: rule.Model},               // xAI
		{text: "pplx-", class: char.Alnum, min: 40, bound: true, rule: rule.Model},              // Perplexity
		{text: "nvapi-", class: char.URL64, min: 50, bound: true, rule: rule.Model},             // NVIDIA
		{text: "tvly-", class: char.URL64, min: 28, bound: true, mixed: true, rule: rule.Model}, // Tavily
		{text: "fc-", class: char.Hex, min: 32, max: 32, bound: true, rule: rule.Model},         // Firecrawl
		{text: "bedrock-api-key-", class: char.Std64, more: "=", min: 40, rule: rule.Model},     // Amazon Bedrock
		{text: "glpat-", class: char.URL64, more: ".", min: 16, rule: rule.GitLab},
		{text: "gldt-", class: char.URL64, more: ".", min: 16, bound: true, rule: rule.GitLab},
		{text: "glrt-", class: char.URL64, more: ".", min: 16, bound: true, rule: rule.GitLab},
		{text: "glptt-", class: char.URL64, more: ".", min: 16, bound: true, rule: rule.GitLab},
		{text: "glcbt-", class: char.URL64, more: ".", min: 16, bound: true, rule: rule.GitLab},
		{text: "glft-", class: char.URL64, min: 20, bound: true, rule: rule.GitLab},
		{text: "glimt-", class: char.URL64, min: 20, bound: true, rule: rule.GitLab},
		{text: "gloas-", class: char.URL64, min: 20, bound: true, rule: rule.GitLab},
		{text: "glsoat-", class: char.URL64, min: 20, bound: true, rule: rule.GitLab},
		{text: "glffct-", class: char.URL64, min: 20, bound: true, rule: rule.GitLab},
		{text: "glwt-", class: char.URL64, min: 20, bound: true, rule: rule.GitLab},
		{text: "glagent-", class: char.URL64, min: 20, bound: true, rule: rule.GitLab},
		{text: "xoxa-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "xoxc-", class: char.URL64, more: "%", min: 10, rule: rule.Slack},
		{text: "xoxd-", class: char.URL64, more: "%+/=", min: 10, rule: rule.Slack},
		{text: "xoxe-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "xoxo-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "xoxe.xoxp-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "xoxe.xoxb-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "xoxb-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "xoxp-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "xoxr-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "xoxs-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "xapp-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "xwfp-", class: char.URL64, min: 10, rule: rule.Slack},
		{text: "GOCSPX-", class: char.URL64, min: 20, rule: rule.Google}, // the secret of an OAuth client
		{text: "pypi-", class: char.URL64, min: 50, rule: rule.Token},
		{text: "tskey-", class: char.URL64, min: 20, bound: true, mixed: true, rule: rule.Token}, // Tailscale
		{text: "pul-", class: char.Hex, min: 40, bound: true, rule: rule.Token},                  // Pulumi
		{text: "HRKU-", class: char.URL64, min: 30, bound: true, rule: rule.Token},               // Heroku
		{text: "NRAK-", class: char.Alnum, min: 20, bound: true, rule: rule.Token},               // New Relic: of a user
		{text: "NRII-", class: char.URL64, min: 20, bound: true, rule: rule.Token},               // New Relic: to insert
		{text: "PMAK-", class: char.Hex, more: "-", min: 50, bound: true, rule: rule.Token},      // Postman
		{text: "xkeysib-", class: char.Alnum, more: "-", min: 64, rule: rule.Token},              // Brevo
		{text: "xsmtpsib-", class: char.Alnum, more: "-", min: 64, rule: rule.Token},             // Brevo's SMTP
		{text: "key-", class: char.Hex, min: 32, max: 32, bound: true, rule: rule.Token},         // Mailgun
		{text: "sq0atp-", class: char.URL64, min: 22, rule: rule.Token},                          // Square
		{text: "sq0csp-", class: char.URL64, min: 40, rule: rule.Token},                          // Square, of an application
		{text: "FLWSECK-", class: char.Alnum, more: "-", min: 12, rule: rule.Token},              // Flutterwave
		{text: "FLWSECK_TEST-", class: char.Alnum, more: "-", min: 12, rule: rule.Token},
		{text: "access-production-", class: char.Hex, more: "-", min: 36, rule: rule.Token}, // Plaid, here and below
		{text: "access-development-", class: char.Hex, more: "-", min: 36, rule: rule.Token},
		{text: "access-sandbox-", class: char.Hex, more: "-", min: 36, rule: rule.Token},
		{text: "pat-na1-", class: char.Hex, more: "-", min: 36, bound: true, rule: rule.Token}, // HubSpot
		{text: "pat-eu1-", class: char.Hex, more: "-", min: 36, bound: true, rule: rule.Token},
		{text: "CFPAT-", class: char.URL64, min: 40, bound: true, rule: rule.Token},                 // Contentful
		{text: "dnkey-", class: char.URL64, min: 40, bound: true, rule: rule.Token},                 // Defined Networking
		{text: "v1.0-", class: char.Hex, more: "-", min: 64, bound: true, rule: rule.Token},         // Cloudflare, to sign origins
		{text: "sdk-", class: char.Hex, more: "-", min: 36, max: 36, bound: true, rule: rule.Token}, // LaunchDarkly
		{text: "signkey-prod-", class: char.Alnum, min: 20, rule: rule.Token},                       // Inngest
		{text: "signkey-test-", class: char.Alnum, min: 20, rule: rule.Token},
		{text: "A3-", class: char.Upper | char.Digit, more: "-", min: 32, max: 40, bound: true, rule: rule.Token}, // 1Password's secret key
		{text: "API-", class: char.Upper | char.Digit, min: 26, max: 26, bound: true, rule: rule.Token},           // Octopus Deploy
		{text: "p8e-", class: char.Alnum, min: 32, max: 32, bound: true, mixed: true, rule: rule.Token},           // Adobe
		{text: "AGE-SECRET-KEY-", class: char.Alnum, min: 20, rule: rule.PrivateKey},                              // age
		{text: "AGE-SECRET-KEY-PQ-", class: char.Alnum, min: 20, rule: rule.PrivateKey},
		{text: "api-", class: char.Hex, more: "-", min: 36, max: 36, bound: true, rule: rule.Token}, // LaunchDarkly
		{text: "BBDC-", class: char.Std64, more: "@_-", min: 40, bound: true, rule: rule.Token},
		// Bitbucket Data Center
		{text: "BBFF-", class: char.Alnum, min: 30, bound: true, rule: rule.Token},                      // Ubidots
		{text: "cr-", class: char.Hex, min: 58, max: 58, bound: true, rule: rule.Model},                 // CodeRabbit
		{text: "da2-", class: char.Lower | char.Digit, min: 26, max: 26, bound: true, rule: rule.Token}, // AWS AppSync
		{text: "fio-u-", class: char.URL64, min: 60, bound: true, rule: rule.Token},                     // Frame.io
		{text: "glrtr-", class: char.URL64, more: ".", min: 20, bound: true, rule: rule.GitLab},
		{text: "ico-", class: char.Alnum, min: 32, max: 32, bound: true, mixed: true, rule: rule.Token}, // Infracost
		{text: "NRAA-", class: char.Hex, min: 27, bound: true, rule: rule.Token},
		// New Relic, here and below
		{text: "NRBR-", class: char.Hex, min: 19, bound: true, rule: rule.Token},
		{text: "NRIQ-", class: char.URL64, min: 25, bound: true, rule: rule.Token},
		{text: "NRJS-", class: char.Hex, min: 19, bound: true, rule: rule.Token},
		{text: "pa-", class: char.URL64, min: 43, max: 43, bound: true, mixed: true, rule: rule.Model}, // Voyage
		{text: "pat-na2-", class: char.Hex, more: "-", min: 36, bound: true, rule: rule.Token},
		// HubSpot, here and below
		{text: "pat-na3-", class: char.Hex, more: "-", min: 36, bound: true, rule: rule.Token},
		{text: "pat-ap1-", class: char.Hex, more: "-", min: 36, bound: true, rule: rule.Token},
		{text: "pub-c-", class: char.Hex, more: "-", min: 36, bound: true, rule: rule.Token}, // PubNub, here and below
		{text: "sub-c-", class: char.Hex, more: "-", min: 36, bound: true, rule: rule.Token},
		{text: "sec-c-", class: char.Std64, more: "=", min: 40, bound: true, rule: rule.Token},
		{text: "RGAPI-", class: char.Hex, more: "-", min: 36, bound: true, rule: rule.Token}, // Riot Games
		{text: "s-s4t2ud-", class: char.Hex, min: 64, rule: rule.Token},
		// 42: of an application, of a user
		{text: "s-s4t2af-", class: char.Hex, min: 64, rule: rule.Token},
		{text: "u-s4t2ud-", class: char.Hex, min: 64, rule: rule.Token},
		{text: "u-s4t2af-", class: char.Hex, min: 64, rule: rule.Token},
		{text: "scp-live-", class: char.Alnum, min: 32, bound: true, rule: rule.Token}, // Scrapfly
		{text: "scp-test-", class: char.Alnum, min: 32, bound: true, rule: rule.Token},
		{text: "sess-", class: char.Alnum, min: 40, max: 40, bound: true, mixed: true, rule: rule.Model},
		// OpenAI, of a session
		{text: "tk-us-", class: char.URL64, min: 48, bound: true, rule: rule.Token}, // Scalingo
	}
	dotted = [...]prefix{
		{text: "ya29.", class: char.URL64, more: ".", min: 20, rule: rule.Google},           // OAuth
		{text: "SG.", class: char.URL64, more: ".", min: 40, bound: true, rule: rule.Token}, // SendGrid
		{text: "hvs.", class: char.URL64, min: 20, bound: true, rule: rule.Token},           // HashiCorp Vault: service, batch, recovery
		{text: "hvb.", class: char.URL64, min: 40, bound: true, rule: rule.Token},
		{text: "hvr.", class: char.URL64, min: 40, bound: true, rule: rule.Token},
		{text: "dp.pt.", class: char.Alnum, min: 40, bound: true, rule: rule.Token}, // Doppler, here and below
		{text: "dp.ct.", class: char.Alnum, min: 40, bound: true, rule: rule.Token},
		{text: "dp.sa.", class: char.Alnum, min: 40, bound: true, rule: rule.Token},
		{text: "dp.scim.", class: char.Alnum, min: 40, bound: true, rule: rule.Token},
		{text: "dp.audit.", class: char.Alnum, min: 40, bound: true, rule: rule.Token},
		{text: "dp.st.", class: char.URL64, more: ".", min: 40, bound: true, rule: rule.Token},
		{text: "snyk_uat.", class: char.URL64, more: ".", min: 40, rule: rule.Token},
		{text: "snyk_sat.", class: char.URL64, more: ".", min: 40, rule: rule.Token},
		{text: "dt0c01.", class: char.Alnum, more: ".", min: 60, rule: rule.Token}, // Dynatrace, here and below
		{text: "dt0s01.", class: char.Alnum, more: ".", min: 60, rule: rule.Token},
		{text: "dt0s16.", class: char.Alnum, more: ".", min: 60, rule: rule.Token},
		{text: "sk.", then: "eyJ", class: char.URL64, more: ".", min: 40, bound: true, rule: rule.Token},  // Mapbox
		{text: "sl.", class: char.URL64, more: ".", min: 60, bound: true, mixed: true, rule: rule.Token},  // Dropbox
		{text: "t1.", class: char.URL64, more: ".=", min: 60, bound: true, mixed: true, rule: rule.Token}, // Yandex Cloud
		{text: "pat.", class: char.Alnum, more: "_-.", min: 50, bound: true, mixed: true, rule: rule.Token},
		{text: "1000.", class: char.Hex, more: ".", min: 60, bound: true, rule: rule.Token},    // Zoho
		{text: "VF.DM.", class: char.Alnum, more: ".", min: 41, bound: true, rule: rule.Token}, // Voiceflow
		{text: "VF.WS.", class: char.Alnum, more: ".", min: 41, bound: true, rule: rule.Token},
		{text: "v1.local.", class: char.URL64, more: ".", min: 64, bound: true, rule: rule.Token},
		// PASETO, encrypted and signed
		{text: "v1.public.", class: char.URL64, more: ".", min: 86, bound: true, rule: rule.Token},
		{text: "v2.local.", class: char.URL64, more: ".", min: 64, bound: true, rule: rule.Token},
		{text: "v2.public.", class: char.URL64, more: ".", min: 86, bound: true, rule: rule.Token},
		{text: "v3.local.", class: char.URL64, more: ".", min: 64, bound: true, rule: rule.Token},
		{text: "v3.public.", class: char.URL64, more: ".", min: 86, bound: true, rule: rule.Token},
		{text: "v4.local.", class: char.URL64, more: ".", min: 64, bound: true, rule: rule.Token},
		{text: "v4.public.", class: char.URL64, more: ".", min: 86, bound: true, rule: rule.Token},
		{text: "k1.local.", class: char.URL64, min: 43, bound: true, rule: rule.PrivateKey}, // PASERK, keys of PASETO
		{text: "k1.secret.", class: char.URL64, min: 64, bound: true, rule: rule.PrivateKey},
		{text: "k2.local.", class: char.URL64, min: 43, bound: true, rule: rule.PrivateKey},
		{text: "k2.secret.", class: char.URL64, min: 64, bound: true, rule: rule.PrivateKey},
		{text: "k3.local.", class: char.URL64, min: 43, bound: true, rule: rule.PrivateKey},
		{text: "k3.secret.", class: char.URL64, min: 64, bound: true, rule: rule.PrivateKey},
		{text: "k4.local.", class: char.URL64, min: 43, bound: true, rule: rule.PrivateKey},
		{text: "k4.secret.", class: char.URL64, min: 64, bound: true, rule: rule.PrivateKey},
	}
	// runs are told at the first digit of a word that begins with them.
	runs = [...]prefix{
		{text: "ABIA", class: char.Upper | char.Digit, min: 16, max: 16, rule: rule.AWSKeyID}, // of a service's bearer
		{text: "ACCA", class: char.Upper | char.Digit, min: 16, max: 16, rule: rule.AWSKeyID}, // of a context
		{text: "ABSK", class: char.Std64, more: "=", min: 60, rule: rule.Model},               // Amazon Bedrock
		{text: "IQoJb3", class: char.Std64, more: "=%", min: 60, rule: rule.AWSSession},       // session tokens, here and below
		{text: "FwoGZXIvYXdz", class: char.Std64, more: "=%", min: 60, rule: rule.AWSSession},
		{text: "FQoGZXIvYXdz", class: char.Std64, more: "=%", min: 60, rule: rule.AWSSession},
		{text: "LTAI", class: char.Alnum, min: 12, max: 26, rule: rule.Token},                         // Alibaba Cloud
		{text: "AKID", class: char.Alnum, min: 32, max: 40, mixed: true, rule: rule.Token},            // Tencent Cloud
		{text: "dapi", class: char.Hex, more: "-", min: 32, max: 34, rule: rule.Token},                // Databricks
		{text: "dose", class: char.Hex, min: 32, max: 32, rule: rule.Token},                           // Databricks, OAuth
		{text: "ATATT3", class: char.URL64, more: "=", min: 40, rule: rule.Token},                     // Atlassian
		{text: "ATCTT3", class: char.URL64, more: "=", min: 40, rule: rule.Token},                     // Bitbucket
		{text: "ATBB", class: char.Alnum, more: "=", min: 24, max: 40, mixed: true, rule: rule.Token}, // Bitbucket, an app's password
		{text: "EAA", class: char.URL64, min: 55, mixed: true, rule: rule.Token},                      // Meta
		{text: "oy2", class: char.Lower | char.Digit, min: 43, max: 43, rule: rule.Token},             // NuGet
		{text: "cio", class: char.Alnum, min: 32, max: 32, mixed: true, rule: rule.Token},             // crates.io
		{text: "cmVmdGtu", class: char.Alnum, min: 40, rule: rule.Token},                              // JFrog, by reference
		{text: "AKCp", class: char.Alnum, min: 60, rule: rule.Token},                                  // JFrog
		{text: "EZAK", class: char.Alnum, min: 50, rule: rule.Token},                                  // EasyPost
		{text: "EZTK", class: char.Alnum, min: 50, rule: rule.Token},                                  // EasyPost, for tests
		{text: "GR1348941", class: char.URL64, min: 20, rule: rule.GitLab},                            // registers runners
		{text: "SK", class: char.Hex, min: 32, max: 32, rule: rule.Token},                             // Twilio
		{text: "sha256", then: "~", class: char.URL64, min: 43, rule: rule.Token},                     // OpenShift
		{text: "SCW", class: char.Upper | char.Digit, min: 17, max: 17, rule: rule.Token},             // Scaleway
		{text: "xprv", class: char.Alnum, min: 100, rule: rule.PrivateKey},                            // BIP 32, here and below
		{text: "yprv", class: char.Alnum, min: 100, rule: rule.PrivateKey},
		{text: "zprv", class: char.Alnum, min: 100, rule: rule.PrivateKey},
		{text: "tprv", class: char.Alnum, min: 100, rule: rule.PrivateKey},
		{text: "AQVN", class: char.URL64, min: 35, max: 38, rule: rule.Token},              // Yandex Cloud
		{text: "KEY0", class: char.URL64, min: 51, max: 60, mixed: true, rule: rule.Token}, // Telnyx
		{text: "3MVG9", class: char.URL64, more: ".", min: 80, rule: rule.Token},
		// Salesforce, of an application
		{text: "4b1d", class: char.Alnum, min: 38, max: 38, mixed: true, rule: rule.Token}, // ClickHouse Cloud
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
