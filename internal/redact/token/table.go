package token

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// CONTRIBUTING.md has the steps for a new row, under "A token that redaction finds by its prefix".

// underscored, dashed and dotted are the prefixes that end in "_", "-" and
// ".", in the forms that their issuers document. A prefix without Bound is found
// inside longer words too. A check digit in a token (GitHub's, npm's) is not
// verified: the form alone is masked.
var (
	underscored = [...]Prefix{
		// Code hosts and registries.
		{Text: "ghp_", Class: char.Alnum, More: "_", Min: 16, Rule: rule.GitHub},
		{Text: "gho_", Class: char.Alnum, More: "_", Min: 16, Rule: rule.GitHub},
		{Text: "ghu_", Class: char.Alnum, More: "_", Min: 16, Rule: rule.GitHub},
		{Text: "ghs_", Class: char.URL64, More: ".", Min: 16, Mixed: true, Rule: rule.GitHub},
		{Text: "ghr_", Class: char.Alnum, More: "_", Min: 16, Rule: rule.GitHub},
		{Text: "github_pat_", Class: char.Alnum, More: "_", Min: 20, Rule: rule.GitHub},
		{Text: "npm_", Class: char.Alnum, Min: 30, Rule: rule.NPM},
		{Text: "rubygems_", Class: char.Hex, Min: 40, Rule: rule.Token},
		{Text: "dckr_pat_", Class: char.URL64, Min: 20, Rule: rule.Token}, // Docker Hub
		{Text: "dckr_oat_", Class: char.URL64, Min: 20, Rule: rule.Token}, // Docker, of an organisation
		{Text: "CLOJARS_", Class: char.Hex, Min: 60, Rule: rule.Token},
		{Text: "sgp_", Class: char.Hex, More: "_", Min: 40, Bound: true, Rule: rule.Token}, // Sourcegraph
		// Payment.
		{Text: "sk_live_", Class: char.Alnum, Min: 10, Rule: rule.Stripe},
		{Text: "rk_live_", Class: char.Alnum, Min: 10, Rule: rule.Stripe},
		{Text: "sk_test_", Class: char.Alnum, Min: 10, Rule: rule.Stripe},
		{Text: "rk_test_", Class: char.Alnum, Min: 10, Rule: rule.Stripe},
		{Text: "whsec_", Class: char.Std64, More: "=", Min: 16, Rule: rule.Stripe}, // Stripe's webhooks, and Svix
		{Text: "access_", Then: "token$production$", Class: char.Alnum, More: "$", Min: 40, Rule: rule.Token},
		{Text: "access_", Then: "token$sandbox$", Class: char.Alnum, More: "$", Min: 40, Rule: rule.Token},
		{Text: "shippo_live_", Class: char.Hex, Min: 40, Rule: rule.Token}, // Shippo
		{Text: "shippo_test_", Class: char.Hex, Min: 40, Rule: rule.Token},
		{Text: "duffel_live_", Class: char.URL64, Min: 40, Rule: rule.Token},
		{Text: "duffel_test_", Class: char.URL64, Min: 40, Rule: rule.Token},
		{Text: "shpat_", Class: char.Hex, Min: 32, Rule: rule.Token}, // Shopify, here and below
		{Text: "shpss_", Class: char.Hex, Min: 32, Rule: rule.Token},
		{Text: "shpca_", Class: char.Hex, Min: 32, Rule: rule.Token},
		{Text: "shppa_", Class: char.Hex, Min: 32, Rule: rule.Token},
		// Models and what agents use.
		{Text: "hf_", Class: char.Alnum, Min: 30, Bound: true, Rule: rule.Model},              // Hugging Face
		{Text: "api_org_", Class: char.Alnum, Min: 34, Bound: true, Rule: rule.Model},         // Hugging Face, of an organisation
		{Text: "gsk_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Model},             // Groq
		{Text: "sk_", Class: char.Hex, Min: 48, Max: 48, Bound: true, Rule: rule.Model},       // ElevenLabs
		{Text: "r8_", Class: char.Alnum, Min: 37, Max: 40, Bound: true, Rule: rule.Model},     // Replicate
		{Text: "jina_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Model},            // Jina
		{Text: "pcsk_", Class: char.Alnum, More: "_", Min: 40, Bound: true, Rule: rule.Model}, // Pinecone
		{Text: "lsv2_pt_", Class: char.Hex, More: "_", Min: 32, Rule: rule.Model},             // LangSmith
		{Text: "lsv2_sk_", Class: char.Hex, More: "_", Min: 32, Rule: rule.Model},
		{Text: "wandb_v1_", Class: char.URL64, Min: 40, Rule: rule.Model},                              // Weights & Biases
		{Text: "tgp_v1_", Class: char.URL64, Min: 30, Rule: rule.Model},                                // Together
		{Text: "fw_", Class: char.Alnum, Min: 22, Max: 24, Bound: true, Mixed: true, Rule: rule.Model}, // Fireworks
		{Text: "e2b_", Class: char.Hex, Min: 40, Bound: true, Rule: rule.Model},                        // E2B
		{Text: "bb_live_", Class: char.URL64, Min: 20, Bound: true, Rule: rule.Model},                  // Browserbase
		// Clouds, hosting and databases.
		{Text: "dop_v1_", Class: char.Hex, Min: 40, Rule: rule.Token}, // DigitalOcean: personal, OAuth, refresh
		{Text: "doo_v1_", Class: char.Hex, Min: 40, Rule: rule.Token},
		{Text: "dor_v1_", Class: char.Hex, Min: 40, Rule: rule.Token},
		{Text: "nfp_", Class: char.Alnum, Min: 36, Bound: true, Rule: rule.Token}, // Netlify
		{Text: "vcp_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token}, // Vercel, here and below
		{Text: "vci_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "vca_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "vcr_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "vck_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "sbp_", Class: char.Hex, Min: 40, Bound: true, Rule: rule.Token}, // Supabase
		{Text: "sb_secret_", Class: char.URL64, Min: 20, Bound: true, Rule: rule.Token},
		{Text: "pscale_tkn_", Class: char.URL64, More: ".", Min: 30, Rule: rule.Token}, // PlanetScale
		{Text: "pscale_pw_", Class: char.URL64, More: ".", Min: 30, Rule: rule.Token},
		{Text: "pscale_oauth_", Class: char.URL64, More: ".", Min: 30, Rule: rule.Token},
		{Text: "napi_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token}, // Neon
		{Text: "mdb_sa_sk_", Class: char.URL64, Min: 30, Rule: rule.Token},         // MongoDB Atlas
		{Text: "cfut_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token}, // Cloudflare: of a user, of an account
		{Text: "cfat_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "FlyV1 fm2_", Class: char.Std64, More: "=,_", Min: 100, Bound: true, Rule: rule.Token}, // Fly.io, several
		{Text: "fm2_", Class: char.Std64, More: "=", Min: 100, Bound: true, Rule: rule.Token},         // Fly.io
		{Text: "fo1_", Class: char.URL64, Min: 40, Bound: true, Rule: rule.Token},                     // Fly.io
		{Text: "rnd_", Class: char.Alnum, Min: 28, Bound: true, Rule: rule.Token},                     // Render
		{Text: "ops_", Then: "eyJ", Class: char.URL64, Min: 100, Bound: true, Rule: rule.Token},       // 1Password's service accounts
		// CI and quality.
		{Text: "CCIPAT_", Class: char.URL64, Min: 30, Rule: rule.Token}, // CircleCI: personal, of a project
		{Text: "CCIPRJ_", Class: char.URL64, Min: 30, Rule: rule.Token},
		{Text: "bkua_", Class: char.Hex, Min: 40, Bound: true, Rule: rule.Token}, // Buildkite
		{Text: "sqp_", Class: char.Hex, Min: 40, Bound: true, Rule: rule.Token},  // SonarQube: of a project, a user, an analysis
		{Text: "squ_", Class: char.Hex, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "sqa_", Class: char.Hex, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "pnu_", Class: char.Alnum, Min: 36, Bound: true, Rule: rule.Token}, // Prefect: of a user, of a bot
		{Text: "pnb_", Class: char.Alnum, Min: 36, Bound: true, Rule: rule.Token},
		{Text: "dbtc_", Class: char.URL64, Min: 30, Bound: true, Rule: rule.Token}, // dbt: of a service, of a user
		{Text: "dbtu_", Class: char.URL64, Min: 30, Bound: true, Rule: rule.Token},
		// Observability.
		{Text: "sntrys_", Class: char.Std64, More: "_=-", Min: 60, Rule: rule.Token}, // Sentry: of an organisation, of a user
		{Text: "sntryu_", Class: char.Hex, Min: 60, Rule: rule.Token},
		{Text: "glsa_", Class: char.Alnum, More: "_", Min: 40, Bound: true, Rule: rule.Token},             // Grafana: of a service account
		{Text: "glc_", Class: char.Std64, More: "=", Min: 32, Bound: true, Mixed: true, Rule: rule.Token}, // Grafana Cloud
		{Text: "hcaik_", Class: char.Alnum, Min: 30, Bound: true, Rule: rule.Token},                       // Honeycomb: to ingest, classic
		{Text: "hcbik_", Class: char.Alnum, Min: 30, Bound: true, Rule: rule.Token},
		{Text: "phx_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token}, // PostHog
		// Work.
		{Text: "lin_api_", Class: char.Alnum, Min: 30, Rule: rule.Token}, // Linear
		{Text: "lin_oauth_", Class: char.Alnum, Min: 30, Rule: rule.Token},
		{Text: "ntn_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},                          // Notion
		{Text: "secret_", Class: char.Alnum, Min: 43, Max: 43, Bound: true, Mixed: true, Rule: rule.Token}, // Notion's of old
		{Text: "figd_", Class: char.URL64, Min: 38, Bound: true, Rule: rule.Token},                         // Figma
		{Text: "rdme_", Class: char.Alnum, Min: 60, Bound: true, Rule: rule.Token},                         // ReadMe
		{Text: "tfp_", Class: char.URL64, More: ".", Min: 40, Bound: true, Rule: rule.Token},               // Typeform
		// Of the rule sets of gitleaks, trufflehog, titus and detect-secrets, by what their issuers document.
		{Text: "alcht_", Class: char.Alnum, Min: 30, Bound: true, Rule: rule.Token},        // Alchemy
		{Text: "aio_", Class: char.Alnum, Min: 28, Max: 28, Bound: true, Rule: rule.Token}, // Adafruit IO
		{Text: "apify_api_", Class: char.Alnum, Min: 36, Rule: rule.Token},                 // Apify
		{Text: "AVNS_", Class: char.URL64, Min: 18, Bound: true, Rule: rule.Token},
		// Aiven, of a service
		{Text: "authress_", Class: char.URL64, More: "./+=", Min: 60, Bound: true, Rule: rule.Token},
		// Authress, here and below
		{Text: "scauth_", Class: char.URL64, More: "./+=", Min: 60, Bound: true, Rule: rule.Token},
		{Text: "bb_pr_", Class: char.Hex, Min: 30, Bound: true, Rule: rule.Token}, // Bannerbear: of a project, of all
		{Text: "bb_ma_", Class: char.Hex, Min: 30, Bound: true, Rule: rule.Token},
		{Text: "cfk_", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},
		// Cloudflare, the global key
		{Text: "ddp_", Class: char.Alnum, Min: 36, Max: 36, Bound: true, Rule: rule.Token},
		// Deno Deploy: personal, of an organisation
		{Text: "ddw_", Class: char.Alnum, Min: 36, Max: 36, Bound: true, Rule: rule.Token},
		{Text: "figp_", Class: char.URL64, More: "=", Min: 38, Bound: true, Rule: rule.Token}, // Figma, here and below
		{Text: "figr_", Class: char.URL64, More: "=", Min: 38, Bound: true, Rule: rule.Token},
		{Text: "figo_", Class: char.URL64, More: "=", Min: 38, Bound: true, Rule: rule.Token},
		{Text: "figu_", Class: char.URL64, More: "=", Min: 38, Bound: true, Rule: rule.Token},
		{Text: "flb_live_", Class: char.Alnum, Min: 20, Rule: rule.Token}, // Fleetbase
		{Text: "flb_test_", Class: char.Alnum, Min: 20, Rule: rule.Token},
		{Text: "flp_", Class: char.Alnum, Min: 46, Bound: true, Rule: rule.Model},              // Friendli
		{Text: "fm1a_", Class: char.Std64, More: "=", Min: 100, Bound: true, Rule: rule.Token}, // Fly.io, of before
		{Text: "fm1r_", Class: char.Std64, More: "=", Min: 100, Bound: true, Rule: rule.Token},
		{Text: "key_", Class: char.Hex, Min: 28, Max: 28, Bound: true, Rule: rule.Model},  // Retell
		{Text: "live_", Class: char.Hex, Min: 35, Max: 35, Bound: true, Rule: rule.Token}, // Lob
		{Text: "test_", Class: char.Hex, Min: 35, Max: 35, Bound: true, Rule: rule.Token}, // Lob, for tests
		{Text: "ls__", Class: char.Hex, Min: 32, Max: 32, Bound: true, Rule: rule.Model},  // LangSmith, of before
		{Text: "nfc_", Class: char.Alnum, Min: 36, Bound: true, Rule: rule.Token},         // Netlify, here and below
		{Text: "nfo_", Class: char.Alnum, Min: 36, Bound: true, Rule: rule.Token},
		{Text: "nfu_", Class: char.Alnum, Min: 36, Bound: true, Rule: rule.Token},
		{Text: "odt_", Class: char.Alnum, Min: 32, Bound: true, Mixed: true, Rule: rule.Token},
		// Dependency-Track
		{Text: "pat_", Class: char.Alnum, Min: 63, Bound: true, Mixed: true, Rule: rule.Model}, // Coze
		{Text: "ptr_", Class: char.Std64, More: "_-=", Min: 40, Bound: true, Mixed: true, Rule: rule.Token},
		// Portainer
		{Text: "ramp_sec_", Class: char.Alnum, Min: 48, Rule: rule.Token},              // Ramp
		{Text: "rootly_", Class: char.Hex, Min: 64, Bound: true, Rule: rule.Token},     // Rootly
		{Text: "rzp_live_", Class: char.Alnum, Min: 14, Bound: true, Rule: rule.Token}, // Razorpay
		{Text: "rzp_test_", Class: char.Alnum, Min: 14, Bound: true, Rule: rule.Token},
		{Text: "salad_cloud_", Class: char.Alnum, More: "_", Min: 24, Bound: true, Mixed: true, Rule: rule.Token},
		// Salad
		{Text: "sk_prod_", Class: char.Alnum, Min: 10, Rule: rule.Stripe},
		{Text: "rk_prod_", Class: char.Alnum, Min: 10, Rule: rule.Stripe},
		{Text: "sk_pr_", Class: char.Alnum, More: "_", Min: 42, Bound: true, Rule: rule.Model}, // PhotoRoom
		{Text: "_secret_", Class: char.Alnum, Min: 25, Max: 25, Mixed: true, Rule: rule.Stripe},
		// the secret of a Stripe payment's client
		{Text: "slk_", Class: char.Hex, Min: 64, Bound: true, Rule: rule.Token},
		// Sourcegraph, of a licence
		{Text: "sm_aat_", Class: char.Alnum, Min: 16, Bound: true, Rule: rule.Token},
		// SettleMint, here and below
		{Text: "sm_pat_", Class: char.Alnum, Min: 16, Bound: true, Rule: rule.Token},
		{Text: "sm_sat_", Class: char.Alnum, Min: 16, Bound: true, Rule: rule.Token},
		{Text: "tkn.v1_", Class: char.Std64, More: "=", Min: 60, Bound: true, Rule: rule.Token},         // Teamwork
		{Text: "vercel_blob_rw_", Class: char.Alnum, More: "_", Min: 30, Bound: true, Rule: rule.Token}, // Vercel Blob
		{Text: "waka_", Class: char.Hex, More: "-", Min: 36, Bound: true, Rule: rule.Token},             // WakaTime
		// Of the issuers' own pages.
		{Text: "cal_live_", Class: char.Hex, Min: 32, Max: 32, Bound: true, Rule: rule.Token}, // Cal.com
		{Text: "key_", Class: char.Hex, Min: 64, Bound: true, Rule: rule.Model},               // Cursor
		{Text: "key_live_", Class: char.Alnum, Min: 32, Max: 32, Bound: true, Mixed: true, Rule: rule.Token},
		// Branch, here and below
		{Text: "key_test_", Class: char.Alnum, Min: 32, Max: 32, Bound: true, Mixed: true, Rule: rule.Token},
		{Text: "ion_", Class: char.Alnum, Min: 42, Bound: true, Mixed: true, Rule: rule.Token},              // Ionic
		{Text: "lip_", Class: char.Alnum, Min: 20, Max: 20, Bound: true, Mixed: true, Rule: rule.Token},     // Lichess
		{Text: "live_pub_", Class: char.Hex, Min: 31, Max: 31, Bound: true, Rule: rule.Token},               // Lob
		{Text: "test_pub_", Class: char.Hex, Min: 31, Max: 31, Bound: true, Rule: rule.Token},               // Lob, for tests
		{Text: "os_v2_app_", Class: char.Lower | char.Digit, Min: 80, Bound: true, Rule: rule.Token},        // OneSignal
		{Text: "os_v2_org_", Class: char.Lower | char.Digit, Min: 80, Bound: true, Rule: rule.Token},        // OneSignal
		{Text: "ovsxat_", Class: char.URL64, Min: 36, Bound: true, Rule: rule.Token},                        // Open VSX
		{Text: "pgar_", Class: char.Lower | char.Digit, Min: 27, Max: 27, Bound: true, Rule: rule.Token},    // pganalyze
		{Text: "rpa_", Class: char.Alnum, Min: 40, Bound: true, Mixed: true, Rule: rule.Model},              // RunPod
		{Text: "sc_", Class: char.URL64, More: "./+=", Min: 80, Bound: true, Mixed: true, Rule: rule.Token}, // Authress, of before
		{Text: "zpka_", Class: char.Alnum, More: "_", Min: 40, Bound: true, Rule: rule.Token},               // Zuplo
	}
	dashed = [...]Prefix{
		{ // OpenAI, Anthropic, OpenRouter, DeepSeek and others; not SSH's types of keys
			Text: "sk-", Not: [2]string{"ssh-", "ecdsa-"}, Class: char.URL64, Min: 20, Bound: true, Mixed: true,
			Rule: rule.Model,
		},
		{Text: "csk-", Class: char.Alnum, Min: 40, Bound: true, Mixed: true, Rule: rule.Model},  // Cerebras
		{Text: "xai-", Class: char.Alnum, Min: 60, Bound: true, Rule: rule.Model},               // xAI
		{Text: "pplx-", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Model},              // Perplexity
		{Text: "nvapi-", Class: char.URL64, Min: 50, Bound: true, Rule: rule.Model},             // NVIDIA
		{Text: "tvly-", Class: char.URL64, Min: 28, Bound: true, Mixed: true, Rule: rule.Model}, // Tavily
		{Text: "fc-", Class: char.Hex, Min: 32, Max: 32, Bound: true, Rule: rule.Model},         // Firecrawl
		{Text: "bedrock-api-key-", Class: char.Std64, More: "=", Min: 40, Rule: rule.Model},     // Amazon Bedrock
		{Text: "glpat-", Class: char.URL64, More: ".", Min: 16, Rule: rule.GitLab},
		{Text: "gldt-", Class: char.URL64, More: ".", Min: 16, Bound: true, Rule: rule.GitLab},
		{Text: "glrt-", Class: char.URL64, More: ".", Min: 16, Bound: true, Rule: rule.GitLab},
		{Text: "glptt-", Class: char.URL64, More: ".", Min: 16, Bound: true, Rule: rule.GitLab},
		{Text: "glcbt-", Class: char.URL64, More: ".", Min: 16, Bound: true, Rule: rule.GitLab},
		{Text: "glft-", Class: char.URL64, Min: 20, Bound: true, Rule: rule.GitLab},
		{Text: "glimt-", Class: char.URL64, Min: 20, Bound: true, Rule: rule.GitLab},
		{Text: "gloas-", Class: char.URL64, Min: 20, Bound: true, Rule: rule.GitLab},
		{Text: "glsoat-", Class: char.URL64, Min: 20, Bound: true, Rule: rule.GitLab},
		{Text: "glffct-", Class: char.URL64, Min: 20, Bound: true, Rule: rule.GitLab},
		{Text: "glwt-", Class: char.URL64, Min: 20, Bound: true, Rule: rule.GitLab},
		{Text: "glagent-", Class: char.URL64, Min: 20, Bound: true, Rule: rule.GitLab},
		{Text: "xoxa-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "xoxc-", Class: char.URL64, More: "%", Min: 10, Rule: rule.Slack},
		{Text: "xoxd-", Class: char.URL64, More: "%+/=", Min: 10, Rule: rule.Slack},
		{Text: "xoxe-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "xoxo-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "xoxe.xoxp-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "xoxe.xoxb-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "xoxb-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "xoxp-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "xoxr-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "xoxs-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "xapp-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "xwfp-", Class: char.URL64, Min: 10, Rule: rule.Slack},
		{Text: "GOCSPX-", Class: char.URL64, Min: 20, Rule: rule.Google}, // the secret of an OAuth client
		{Text: "pypi-", Class: char.URL64, Min: 50, Rule: rule.Token},
		{Text: "tskey-", Class: char.URL64, Min: 20, Bound: true, Mixed: true, Rule: rule.Token}, // Tailscale
		{Text: "pul-", Class: char.Hex, Min: 40, Bound: true, Rule: rule.Token},                  // Pulumi
		{Text: "HRKU-", Class: char.URL64, Min: 30, Bound: true, Rule: rule.Token},               // Heroku
		{Text: "NRAK-", Class: char.Alnum, Min: 20, Bound: true, Rule: rule.Token},               // New Relic: of a user
		{Text: "NRII-", Class: char.URL64, Min: 20, Bound: true, Rule: rule.Token},               // New Relic: to insert
		{Text: "PMAK-", Class: char.Hex, More: "-", Min: 50, Bound: true, Rule: rule.Token},      // Postman
		{Text: "xkeysib-", Class: char.Alnum, More: "-", Min: 64, Rule: rule.Token},              // Brevo
		{Text: "xsmtpsib-", Class: char.Alnum, More: "-", Min: 64, Rule: rule.Token},             // Brevo's SMTP
		{Text: "key-", Class: char.Hex, Min: 32, Max: 32, Bound: true, Rule: rule.Token},         // Mailgun
		{Text: "sq0atp-", Class: char.URL64, Min: 22, Rule: rule.Token},                          // Square
		{Text: "sq0csp-", Class: char.URL64, Min: 40, Rule: rule.Token},                          // Square, of an application
		{Text: "FLWSECK-", Class: char.Alnum, More: "-", Min: 12, Rule: rule.Token},              // Flutterwave
		{Text: "FLWSECK_TEST-", Class: char.Alnum, More: "-", Min: 12, Rule: rule.Token},
		{Text: "access-production-", Class: char.Hex, More: "-", Min: 36, Rule: rule.Token}, // Plaid, here and below
		{Text: "access-development-", Class: char.Hex, More: "-", Min: 36, Rule: rule.Token},
		{Text: "access-sandbox-", Class: char.Hex, More: "-", Min: 36, Rule: rule.Token},
		{Text: "pat-na1-", Class: char.Hex, More: "-", Min: 36, Bound: true, Rule: rule.Token}, // HubSpot
		{Text: "pat-eu1-", Class: char.Hex, More: "-", Min: 36, Bound: true, Rule: rule.Token},
		{Text: "CFPAT-", Class: char.URL64, Min: 40, Bound: true, Rule: rule.Token},                 // Contentful
		{Text: "dnkey-", Class: char.URL64, Min: 40, Bound: true, Rule: rule.Token},                 // Defined Networking
		{Text: "v1.0-", Class: char.Hex, More: "-", Min: 64, Bound: true, Rule: rule.Token},         // Cloudflare, to sign origins
		{Text: "sdk-", Class: char.Hex, More: "-", Min: 36, Max: 36, Bound: true, Rule: rule.Token}, // LaunchDarkly
		{Text: "signkey-prod-", Class: char.Alnum, Min: 20, Rule: rule.Token},                       // Inngest
		{Text: "signkey-test-", Class: char.Alnum, Min: 20, Rule: rule.Token},
		{Text: "A3-", Class: char.Upper | char.Digit, More: "-", Min: 32, Max: 40, Bound: true, Rule: rule.Token}, // 1Password's secret key
		{Text: "API-", Class: char.Upper | char.Digit, Min: 26, Max: 26, Bound: true, Rule: rule.Token},           // Octopus Deploy
		{Text: "p8e-", Class: char.Alnum, Min: 32, Max: 32, Bound: true, Mixed: true, Rule: rule.Token},           // Adobe
		{Text: "AGE-SECRET-KEY-", Class: char.Alnum, Min: 20, Rule: rule.PrivateKey},                              // age
		{Text: "AGE-SECRET-KEY-PQ-", Class: char.Alnum, Min: 20, Rule: rule.PrivateKey},
		{Text: "api-", Class: char.Hex, More: "-", Min: 36, Max: 36, Bound: true, Rule: rule.Token}, // LaunchDarkly
		{Text: "BBDC-", Class: char.Std64, More: "@_-", Min: 40, Bound: true, Rule: rule.Token},
		// Bitbucket Data Center
		{Text: "BBFF-", Class: char.Alnum, Min: 30, Bound: true, Rule: rule.Token},                      // Ubidots
		{Text: "cr-", Class: char.Hex, Min: 58, Max: 58, Bound: true, Rule: rule.Model},                 // CodeRabbit
		{Text: "da2-", Class: char.Lower | char.Digit, Min: 26, Max: 26, Bound: true, Rule: rule.Token}, // AWS AppSync
		{Text: "fio-u-", Class: char.URL64, Min: 60, Bound: true, Rule: rule.Token},                     // Frame.io
		{Text: "glrtr-", Class: char.URL64, More: ".", Min: 20, Bound: true, Rule: rule.GitLab},
		{Text: "ico-", Class: char.Alnum, Min: 32, Max: 32, Bound: true, Mixed: true, Rule: rule.Token}, // Infracost
		{Text: "NRAA-", Class: char.Hex, Min: 27, Bound: true, Rule: rule.Token},
		// New Relic, here and below
		{Text: "NRBR-", Class: char.Hex, Min: 19, Bound: true, Rule: rule.Token},
		{Text: "NRIQ-", Class: char.URL64, Min: 25, Bound: true, Rule: rule.Token},
		{Text: "NRJS-", Class: char.Hex, Min: 19, Bound: true, Rule: rule.Token},
		{Text: "pa-", Class: char.URL64, Min: 43, Max: 43, Bound: true, Mixed: true, Rule: rule.Model}, // Voyage
		{Text: "pat-na2-", Class: char.Hex, More: "-", Min: 36, Bound: true, Rule: rule.Token},
		// HubSpot, here and below
		{Text: "pat-na3-", Class: char.Hex, More: "-", Min: 36, Bound: true, Rule: rule.Token},
		{Text: "pat-ap1-", Class: char.Hex, More: "-", Min: 36, Bound: true, Rule: rule.Token},
		{Text: "pub-c-", Class: char.Hex, More: "-", Min: 36, Bound: true, Rule: rule.Token}, // PubNub, here and below
		{Text: "sub-c-", Class: char.Lower | char.Digit, More: "-", Min: 36, Bound: true, Rule: rule.Token},
		{Text: "sec-c-", Class: char.Std64, More: "=", Min: 40, Bound: true, Rule: rule.Token},
		{Text: "RGAPI-", Class: char.Lower | char.Digit, More: "-", Min: 36, Bound: true, Rule: rule.Token}, // Riot Games
		{Text: "s-s4t2ud-", Class: char.Hex, Min: 64, Rule: rule.Token},
		// 42: of an application, of a user
		{Text: "s-s4t2af-", Class: char.Hex, Min: 64, Rule: rule.Token},
		{Text: "u-s4t2ud-", Class: char.Hex, Min: 64, Rule: rule.Token},
		{Text: "u-s4t2af-", Class: char.Hex, Min: 64, Rule: rule.Token},
		{Text: "scp-live-", Class: char.Alnum, Min: 32, Bound: true, Rule: rule.Token}, // Scrapfly
		{Text: "scp-test-", Class: char.Alnum, Min: 32, Bound: true, Rule: rule.Token},
		{Text: "sess-", Class: char.Alnum, Min: 40, Max: 40, Bound: true, Mixed: true, Rule: rule.Model},
		// OpenAI, of a session
		{Text: "m0-", Class: char.Alnum, Min: 40, Max: 40, Bound: true, Mixed: true, Rule: rule.Model}, // Mem0
		{Text: "sandbox-sq0csb-", Class: char.URL64, Min: 40, Bound: true, Rule: rule.Token},           // Square, here and below
		{Text: "sq0csb-", Class: char.URL64, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "spu-", Class: char.Lower | char.Digit, Min: 32, Max: 32, Bound: true, Rule: rule.Token}, // Spectral
		{Text: "thog-secret-", Class: char.Hex, Min: 32, Bound: true, Rule: rule.Token},                 // TruffleHog
		{Text: "xaat-", Class: char.Hex, More: "-", Min: 36, Bound: true, Rule: rule.Token},             // Axiom, here and below
		{Text: "xapt-", Class: char.Hex, More: "-", Min: 36, Bound: true, Rule: rule.Token},
		{Text: "tk-us-", Class: char.URL64, Min: 48, Bound: true, Rule: rule.Token}, // Scalingo
	}
	dotted = [...]Prefix{
		{Text: "ya29.", Class: char.URL64, More: ".", Min: 20, Rule: rule.Google},           // OAuth
		{Text: "SG.", Class: char.URL64, More: ".", Min: 40, Bound: true, Rule: rule.Token}, // SendGrid
		{Text: "hvs.", Class: char.URL64, Min: 20, Bound: true, Rule: rule.Token},           // HashiCorp Vault: service, batch, recovery
		{Text: "hvb.", Class: char.URL64, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "hvr.", Class: char.URL64, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "dp.pt.", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token}, // Doppler, here and below
		{Text: "dp.ct.", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "dp.sa.", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "dp.scim.", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "dp.audit.", Class: char.Alnum, Min: 40, Bound: true, Rule: rule.Token},
		{Text: "dp.st.", Class: char.URL64, More: ".", Min: 40, Bound: true, Rule: rule.Token},
		{Text: "snyk_uat.", Class: char.URL64, More: ".", Min: 40, Rule: rule.Token},
		{Text: "snyk_sat.", Class: char.URL64, More: ".", Min: 40, Rule: rule.Token},
		{Text: "dt0c01.", Class: char.Alnum, More: ".", Min: 60, Rule: rule.Token}, // Dynatrace, here and below
		{Text: "dt0s01.", Class: char.Alnum, More: ".", Min: 60, Rule: rule.Token},
		{Text: "dt0s16.", Class: char.Alnum, More: ".", Min: 60, Rule: rule.Token},
		{Text: "sk.", Then: "eyJ", Class: char.URL64, More: ".", Min: 40, Bound: true, Rule: rule.Token},  // Mapbox
		{Text: "sl.", Class: char.URL64, More: ".", Min: 60, Bound: true, Mixed: true, Rule: rule.Token},  // Dropbox
		{Text: "t1.", Class: char.URL64, More: ".=", Min: 60, Bound: true, Mixed: true, Rule: rule.Token}, // Yandex Cloud
		{Text: "pat.", Class: char.Alnum, More: "_-.", Min: 50, Bound: true, Mixed: true, Rule: rule.Token},
		{Text: "1000.", Class: char.Hex, More: ".", Min: 60, Bound: true, Rule: rule.Token},    // Zoho
		{Text: "VF.DM.", Class: char.Alnum, More: ".", Min: 41, Bound: true, Rule: rule.Token}, // Voiceflow
		{Text: "VF.WS.", Class: char.Alnum, More: ".", Min: 41, Bound: true, Rule: rule.Token},
		{Text: "vk1.a.", Class: char.URL64, Min: 100, Bound: true, Rule: rule.Token}, // VK
		{Text: "v1.local.", Class: char.URL64, More: ".", Min: 64, Bound: true, Rule: rule.Token},
		// PASETO, encrypted and signed
		{Text: "v1.public.", Class: char.URL64, More: ".", Min: 86, Bound: true, Rule: rule.Token},
		{Text: "v2.local.", Class: char.URL64, More: ".", Min: 64, Bound: true, Rule: rule.Token},
		{Text: "v2.public.", Class: char.URL64, More: ".", Min: 86, Bound: true, Rule: rule.Token},
		{Text: "v3.local.", Class: char.URL64, More: ".", Min: 64, Bound: true, Rule: rule.Token},
		{Text: "v3.public.", Class: char.URL64, More: ".", Min: 86, Bound: true, Rule: rule.Token},
		{Text: "v4.local.", Class: char.URL64, More: ".", Min: 64, Bound: true, Rule: rule.Token},
		{Text: "v4.public.", Class: char.URL64, More: ".", Min: 86, Bound: true, Rule: rule.Token},
		{Text: "k1.local.", Class: char.URL64, Min: 43, Bound: true, Rule: rule.PrivateKey}, // PASERK, keys of PASETO
		{Text: "k1.secret.", Class: char.URL64, Min: 64, Bound: true, Rule: rule.PrivateKey},
		{Text: "k2.local.", Class: char.URL64, Min: 43, Bound: true, Rule: rule.PrivateKey},
		{Text: "k2.secret.", Class: char.URL64, Min: 64, Bound: true, Rule: rule.PrivateKey},
		{Text: "k3.local.", Class: char.URL64, Min: 43, Bound: true, Rule: rule.PrivateKey},
		{Text: "k3.secret.", Class: char.URL64, Min: 64, Bound: true, Rule: rule.PrivateKey},
		{Text: "k4.local.", Class: char.URL64, Min: 43, Bound: true, Rule: rule.PrivateKey},
		{Text: "k4.secret.", Class: char.URL64, Min: 64, Bound: true, Rule: rule.PrivateKey},
	}
	// runs are prefixes without a sign at their end. They are looked for at the first digit of a word.
	runs = [...]Prefix{
		{Text: "ABIA", Class: char.Upper | char.Digit, Min: 16, Max: 16, Rule: rule.AWSKeyID}, // of a service's bearer
		{Text: "ACCA", Class: char.Upper | char.Digit, Min: 16, Max: 16, Rule: rule.AWSKeyID}, // of a context
		{Text: "ABSK", Class: char.Std64, More: "=", Min: 60, Rule: rule.Model},               // Amazon Bedrock
		{Text: "IQoJb3", Class: char.Std64, More: "=%", Min: 60, Rule: rule.AWSSession},       // session tokens, here and below
		{Text: "FwoGZXIvYXdz", Class: char.Std64, More: "=%", Min: 60, Rule: rule.AWSSession},
		{Text: "FQoGZXIvYXdz", Class: char.Std64, More: "=%", Min: 60, Rule: rule.AWSSession},
		{Text: "LTAI", Class: char.Alnum, Min: 12, Max: 26, Rule: rule.Token},                         // Alibaba Cloud
		{Text: "AKID", Class: char.Alnum, Min: 32, Max: 40, Mixed: true, Rule: rule.Token},            // Tencent Cloud
		{Text: "dapi", Class: char.Hex, More: "-", Min: 32, Max: 34, Rule: rule.Token},                // Databricks
		{Text: "dose", Class: char.Hex, Min: 32, Max: 32, Rule: rule.Token},                           // Databricks, OAuth
		{Text: "ATATT3", Class: char.URL64, More: "=", Min: 40, Rule: rule.Token},                     // Atlassian
		{Text: "ATCTT3", Class: char.URL64, More: "=", Min: 40, Rule: rule.Token},                     // Bitbucket
		{Text: "ATBB", Class: char.Alnum, More: "=", Min: 24, Max: 40, Mixed: true, Rule: rule.Token}, // Bitbucket, an app's password
		{Text: "EAA", Class: char.URL64, Min: 55, Mixed: true, Rule: rule.Token},                      // Meta
		{Text: "oy2", Class: char.Lower | char.Digit, Min: 43, Max: 43, Rule: rule.Token},             // NuGet
		{Text: "cio", Class: char.Alnum, Min: 32, Max: 32, Mixed: true, Rule: rule.Token},             // crates.io
		{Text: "cmVmdGtu", Class: char.Alnum, Min: 40, Rule: rule.Token},                              // JFrog, by reference
		{Text: "AKCp", Class: char.Alnum, Min: 60, Rule: rule.Token},                                  // JFrog
		{Text: "EZAK", Class: char.Alnum, Min: 50, Rule: rule.Token},                                  // EasyPost
		{Text: "EZTK", Class: char.Alnum, Min: 50, Rule: rule.Token},                                  // EasyPost, for tests
		{Text: "GR1348941", Class: char.URL64, Min: 20, Rule: rule.GitLab},                            // registers runners
		{Text: "SK", Class: char.Hex, Min: 32, Max: 32, Rule: rule.Token},                             // Twilio
		{Text: "sha256", Then: "~", Class: char.URL64, Min: 43, Rule: rule.Token},                     // OpenShift
		{Text: "SCW", Class: char.Upper | char.Digit, Min: 17, Max: 17, Rule: rule.Token},             // Scaleway
		{Text: "xprv", Class: char.Alnum, Min: 100, Rule: rule.PrivateKey},                            // BIP 32, here and below
		{Text: "yprv", Class: char.Alnum, Min: 100, Rule: rule.PrivateKey},
		{Text: "zprv", Class: char.Alnum, Min: 100, Rule: rule.PrivateKey},
		{Text: "tprv", Class: char.Alnum, Min: 100, Rule: rule.PrivateKey},
		{Text: "AQVN", Class: char.URL64, Min: 35, Max: 38, Rule: rule.Token},              // Yandex Cloud
		{Text: "KEY0", Class: char.URL64, Min: 51, Max: 60, Mixed: true, Rule: rule.Token}, // Telnyx
		{Text: "3MVG9", Class: char.URL64, More: ".", Min: 80, Rule: rule.Token},
		// Salesforce, of an application
		{Text: "4b1d", Class: char.Alnum, Min: 38, Max: 38, Mixed: true, Rule: rule.Token}, // ClickHouse Cloud
	}
)
