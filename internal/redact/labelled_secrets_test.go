package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// secretCarrier is a carrier for a token: any plain one, or one that names it.
func (m *maker) secretCarrier() string {
	if m.r.IntN(3) > 0 {
		return m.plain()
	}
	return one(m,
		"TOKEN=§\n", "token: §\n", `{"token":"§"}`, `{"api_key": "§", "n": 1}`, "API_KEY='§'\n", "const apiKey = \"§\";\n", "api_token = \"§\"\n",
		"Authorization: Bearer §\r\nAccept: */*\r\n", "curl -H 'Authorization: Bearer §' https://api.example.com/v1/x\n",
		"https://api.example.com/v1/items?key=§&page=2", "https://api.example.com/v1/items?access_token=§", "the key is §",
		"git clone https://x:§@git.example.com/a/b.git\n", "docker login -u me -p § registry.example.com\n", "# §\n", "leaked: §!",
		`{\"apiKey\":\"§\"}`, "<apiKey>§</apiKey>", "run(token=\"§\", retries=3)\n",
	)
}

// tokens puts n values of each format into carriers.
func (m *maker) tokens(n int, formats map[string]func() string) {
	for _, sub := range sortedKeys(formats) {
		for range n {
			m.carry(sub, m.secretCarrier(), formats[sub]())
		}
	}
}

// near puts what only begins like a token, or is too short for one, into plain
// carriers.
func (m *maker) near(n int, values ...func() string) {
	for range n {
		for _, v := range values {
			m.spare("near", m.plain(), v())
		}
	}
}

func lit(s string) func() string { return func() string { return s } }

// AWS: IAM identifiers (unique ID prefixes AKIA and ASIA, 20 characters of
// base 32) and secret access keys of 40 base64 characters.
func (m *maker) aws() {
	id := func() string { return one(m, "AKIA", "ASIA") + m.of(base32, 16) }
	for range 40 {
		m.carry("key id", m.secretCarrier(), id())
	}
	for range 40 {
		secret := m.of(std64, 38) + m.of(upper26, 1) + m.of(lower26, 1)
		m.carry("key and secret", one(m,
			"[default]\naws_access_key_id = §\naws_secret_access_key = §\n", "AWS_ACCESS_KEY_ID=§\nAWS_SECRET_ACCESS_KEY=§\n", "§ / §",
			`{"AccessKeyId":"§","SecretAccessKey":"§","Expiration":"2026-11-22T03:00:00Z"}`, "export AWS_ACCESS_KEY_ID=§ AWS_SECRET_ACCESS_KEY=§",
			"access_key = \"§\"\nsecret_key = \"§\"\n", "boto3.client('s3', aws_access_key_id='§', aws_secret_access_key='§')\n",
		), id(), secret)
	}
	for range 12 {
		m.carry("session token", one(m, "aws_session_token = §\n", `{"SessionToken":"§"}`, "AWS_SESSION_TOKEN=§\n"), "IQoJb3JpZ2luX2Vj"+m.of(std64, 300)+"==")
	}
	m.near(25, lit("AKIA"), func() string { return "AKIA" + m.of(base32, 9) }, func() string { return "arn:aws:iam::" + m.digits(12) + ":role/reader" },
		func() string { return "AIDA-shaped" }, lit("aws_secret_access_key"), func() string { return "s3://bucket-" + m.hex(8) + "/a/b" },
		func() string { return "ami-" + m.hex(17) }, func() string { return "i-" + m.hex(17) })
}

// Azure: account keys of storage and of Service Bus (base64 of 64 and 32
// bytes) in connection strings, shared access signatures, secrets of
// applications (three characters, a digit, "Q~", 34 more).
func (m *maker) azure() {
	for range 20 {
		m.carry("account key", one(m, "DefaultEndpointsProtocol=https;AccountName=stuff;AccountKey=§;EndpointSuffix=core.windows.net", `{"conn":"AccountName=stuff;AccountKey=§;EndpointSuffix=core.windows.net"}`),
			m.of(std64, 86)+"==")
		m.carry("bus", one(m, "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=§", "SharedAccessKey=§;EntityPath=q\n"), m.of(std64, 43)+"=")
		m.carry("sas", one(m, "https://stuff.blob.core.windows.net/c/f.txt?sv=2024-11-04&se=2026-12-01T00%3A00%3A00Z&sr=b&sp=r&sig=§",
			"GET https://stuff.queue.core.windows.net/q?sv=2024-11-04&ss=b&srt=sco&sp=rl&se=2026-12-01&sig=§\n"), m.of(alnum62, 20)+"%2B"+m.of(alnum62, 21)+"%3D")
		m.carry("application", m.secretCarrier(), m.of(alnum62, 3)+m.digits(1)+"Q~"+m.of(url64, 33)+m.of(alnum62, 1))
	}
	m.near(30, lit("https://stuff.blob.core.windows.net/c/f.txt"), lit("AccountName=stuff;EndpointSuffix=core.windows.net"), lit("sig=none"), lit("?sv=2024-11-04&sr=b"),
		func() string { return "/subscriptions/" + m.uuid() + "/resourceGroups/rg-1" }, lit("design=wide"), lit("Q~"), lit("SharedAccessKeyName=root"))
}

// GitHub: prefixes, 30 base-62 characters and six of a CRC-32; fine-grained
// tokens of 22 and 59 characters.
func (m *maker) github() {
	m.tokens(18, map[string]func() string{
		"ghp": func() string { b := m.alnum(30); return "ghp_" + b + crc62(b) }, "gho": func() string { b := m.alnum(30); return "gho_" + b + crc62(b) },
		"ghu": func() string { b := m.alnum(30); return "ghu_" + b + crc62(b) }, "ghs": func() string { b := m.alnum(30); return "ghs_" + b + crc62(b) },
		"ghr":          func() string { b := m.alnum(30); return "ghr_" + b + crc62(b) },
		"fine-grained": func() string { return "github_pat_" + m.alnum(22) + "_" + m.alnum(59) },
	})
	m.near(25, lit("ghp_"), lit("ghp_short"), lit("a token that begins with ghp_"), lit("github_pat_"), lit("ghs_installation_id"), func() string { return "ghp_" + m.alnum(8) },
		func() string { return "github.com/acme/tool@" + m.hex(40) }, func() string { return "weigh_" + m.name() }, lit("https://github.com/acme/tool/pull/412"))
}

// GitLab: its table of token prefixes, 20 characters behind most.
func (m *maker) gitlab() {
	formats := map[string]func() string{}
	for _, p := range []string{"glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glsoat-", "glimt-"} {
		formats[p] = func() string { return p + m.of(url64, 19) + m.alnum(1) }
	}
	formats["glagent-"] = func() string { return "glagent-" + m.of(url64, 49) + m.alnum(1) }
	formats["gloas-"] = func() string { return "gloas-" + m.hex(64) }
	formats["glcbt-"] = func() string { return "glcbt-" + m.hex(2) + "_" + m.of(url64, 19) + m.alnum(1) }
	formats["routable"] = func() string { return "glpat-" + m.of(url64, 27) + ".01." + m.of(digits10+lower26, 9) }
	m.tokens(8, formats)
	m.near(40, lit("glpat-"), lit("glpat-xyz"), lit("gitlab-runner-17.4.0"), lit("gldt-ish"), func() string { return "group/project!" + m.digits(4) }, lit("glft-"), lit("toggle-rt-mode"))
}

// Slack: bot, user, app and refresh tokens.
func (m *maker) slack() {
	team := func() string { return m.digits(11 + m.r.IntN(3)) }
	m.tokens(12, map[string]func() string{
		"xoxb": func() string { return "xoxb-" + team() + "-" + team() + "-" + m.alnum(24) },
		"xoxp": func() string { return "xoxp-" + team() + "-" + team() + "-" + team() + "-" + m.hex(32) },
		"xoxa": func() string { return "xoxa-2-" + team() + "-" + team() + "-" + m.hex(32) },
		"xoxs": func() string { return "xoxs-" + team() + "-" + team() + "-" + team() + "-" + m.hex(10) },
		"xapp": func() string { return "xapp-1-A" + m.of(upper26+digits10, 10) + "-" + team() + "-" + m.hex(64) },
		"xoxe": func() string { return "xoxe.xoxp-1-" + m.alnum(163) },
	})
	m.near(30, lit("xoxb"), lit("xoxb-"), lit("tokens start with xoxb- or xoxp-"), lit("xapp-1"), func() string { return "C0" + m.of(upper26+digits10, 9) },
		func() string { return "https://acme.slack.com/archives/C0" + m.of(upper26, 8) + "/p17" + m.digits(14) }, func() string { return m.digits(10) + "." + m.digits(6) })
}

// Stripe: secret and restricted keys, endpoints' signing secrets. What begins
// with pk_, cus_, price_ and the like is no secret.
func (m *maker) stripe() {
	m.tokens(14, map[string]func() string{
		"sk_live": func() string { return "sk_live_" + m.alnum(24) }, "sk_live, long": func() string { return "sk_live_51" + m.alnum(97) },
		"sk_test": func() string { return "sk_test_" + m.alnum(24) }, "rk_live": func() string { return "rk_live_" + m.alnum(24) },
		"rk_test": func() string { return "rk_test_" + m.alnum(24) }, "whsec": func() string { return "whsec_" + m.alnum(32) },
	})
	m.near(30, func() string { return "pk_live_" + m.alnum(24) }, func() string { return "cus_" + m.alnum(14) }, func() string { return "price_1" + m.alnum(23) },
		func() string { return "pi_3" + m.alnum(23) }, func() string { return "evt_1" + m.alnum(23) }, lit("sk_live_"), lit("risk_live_view"), lit("task_test_names"))
}

// Keys of model providers.
func (m *maker) modelKey() {
	m.tokens(9, map[string]func() string{
		"openai, old":     func() string { return "sk-" + m.alnum(20) + "T3BlbkFJ" + m.alnum(20) },
		"openai, project": func() string { return "sk-proj-" + m.of(url64, 74) + "T3BlbkFJ" + m.of(url64, 73) + m.alnum(1) },
		"openai, service": func() string { return "sk-svcacct-" + m.of(url64, 74) + "T3BlbkFJ" + m.of(url64, 73) + m.alnum(1) },
		"anthropic":       func() string { return "sk-ant-api03-" + m.of(url64, 93) + "AA" },
		"anthropic admin": func() string { return "sk-ant-admin01-" + m.of(url64, 93) + "AA" },
		"openrouter":      func() string { return "sk-or-v1-" + m.hex(64) },
		"groq":            func() string { return "gsk_" + m.alnum(52) },
		"xai":             func() string { return "xai-" + m.alnum(80) },
		"hugging face":    func() string { return "hf_" + m.of(upper26+lower26, 34) },
		"replicate":       func() string { return "r8_" + m.alnum(37) },
		"perplexity":      func() string { return "pplx-" + m.alnum(48) },
	})
	m.near(35, lit("sk-"), lit("sk-learn"), lit("sk-ant-api03"), lit("hf_hub_download"), lit("gsk_"), lit("a-risk-assessment-of-everything-there"), lit("task-force-for-better-documentation"),
		func() string { return "msg_01" + m.of(base58Alphabet, 22) }, func() string { return "chatcmpl-" + m.alnum(29) }, func() string { return "req_" + m.hex(32) }, lit("xai-org/grok"))
}

// Google: API keys, OAuth client secrets and access tokens.
func (m *maker) google() {
	m.tokens(24, map[string]func() string{
		"api key": func() string { return "AIza" + m.of(url64, 34) + m.alnum(1) },
		"client":  func() string { return "GOCSPX-" + m.of(url64, 27) + m.alnum(1) },
		"access":  func() string { return "ya29.a0" + m.of(url64, 200) + m.alnum(1) },
	})
	m.near(40, lit("AIza"), lit("AIzaShort"), func() string { return m.digits(12) + "-" + m.of(lower26+digits10, 32) + ".apps.googleusercontent.com" }, lit("GOCSPX-"), lit("ya29."),
		func() string { return "https://drive.google.com/file/d/" + m.alnum(12) }, lit("projects/acme-prod/locations/europe-west1"))
}

// Package registries: npm (CRC-32 at the end), PyPI (a macaroon), RubyGems,
// NuGet, Docker Hub, crates.io.
func (m *maker) registry() {
	m.tokens(15, map[string]func() string{
		"npm":       func() string { b := m.alnum(30); return "npm_" + b + crc62(b) },
		"pypi":      func() string { return "pypi-AgEIcHlwaS5vcmc" + m.of(url64, 140) + m.alnum(1) },
		"rubygems":  func() string { return "rubygems_" + m.hex(48) },
		"docker":    func() string { return "dckr_pat_" + m.of(url64, 26) + m.alnum(1) },
		"nuget":     func() string { return "oy2" + m.of(lower26+digits10, 43) },
		"crates.io": func() string { return "cio" + m.alnum(32) },
	})
	m.near(30, lit("npm_config_registry"), lit("npm_lifecycle_event=test"), lit("pypi-publish"), lit("rubygems_version"), lit("npm_package_version"), lit("dckr_pat_"), lit("@acme/tool@12.4.0"),
		lit("pypi-attestations-0.0.27"), func() string { return "sha512-" + m.of(std64, 86) + "==" })
}

// Tokens of other providers, each as its own documents describe it.
func (m *maker) otherToken() {
	m.tokens(4, map[string]func() string{
		"digitalocean": func() string { return one(m, "dop_v1_", "doo_v1_", "dor_v1_") + m.hex(64) },
		"shopify":      func() string { return one(m, "shpat_", "shpca_", "shppa_", "shpss_") + m.hex(32) },
		"sendgrid":     func() string { return "SG." + m.of(url64, 21) + m.alnum(1) + "." + m.of(url64, 42) + m.alnum(1) },
		"mailchimp":    func() string { return m.hex(32) + "-us" + one(m, "1", "12", "21") },
		"vault":        func() string { return "hvs." + m.of(url64, 94) + m.alnum(1) },
		"terraform":    func() string { return m.alnum(14) + ".atlasv1." + m.of(url64, 66) + m.alnum(1) },
		"databricks":   func() string { return "dapi" + m.hex(32) },
		"linear":       func() string { return "lin_api_" + m.alnum(40) },
		"notion":       func() string { return "ntn_" + m.digits(11) + m.alnum(35) },
		"figma":        func() string { return "figd_" + m.of(url64, 39) + m.alnum(1) },
		"airtable":     func() string { return "pat" + m.alnum(14) + "." + m.hex(64) },
		"atlassian":    func() string { return "ATATT3xFfGF0" + m.of(url64, 171) + "=" + strings.ToUpper(m.hex(8)) },
		"heroku":       func() string { return "HRKU-AA" + m.of(url64, 57) + m.alnum(1) },
		"new relic":    func() string { return "NRAK-" + m.of(upper26+digits10, 27) },
		"grafana":      func() string { return "glsa_" + m.alnum(32) + "_" + m.hex(8) },
		"sentry":       func() string { return "sntryu_" + m.hex(64) },
		"telegram":     func() string { return one(m, "1", "5", "7") + m.digits(9) + ":AA" + m.of(url64, 32) + m.alnum(1) },
		"doppler":      func() string { return "dp.pt." + m.alnum(43) },
		"supabase":     func() string { return "sbp_" + m.hex(40) },
		"postman":      func() string { return "PMAK-" + m.hex(24) + "-" + m.hex(34) },
		"dynatrace":    func() string { return "dt0c01." + m.of(base32, 24) + "." + m.of(base32, 64) },
		"pulumi":       func() string { return "pul-" + m.hex(40) },
		"planetscale":  func() string { return "pscale_tkn_" + m.of(url64, 42) + m.alnum(1) },
		"square":       func() string { return "sq0csp-" + m.of(url64, 42) + m.alnum(1) },
		"netlify":      func() string { return "nfp_" + m.alnum(36) },
		"tailscale":    func() string { return "tskey-auth-" + m.alnum(12) + "CNTRL-" + m.alnum(32) },
		"age":          func() string { return "AGE-SECRET-KEY-1" + strings.ToUpper(m.of(bech32Alphabet, 58)) },
	})
	m.near(36, lit("dapi"), lit("lin_api_docs"), lit("SG.1"), lit("pat.12"), lit("pul-request"), lit("figd_"), lit("nfp_report_2026"), lit("sbp_chart"), lit("secret_santa"),
		func() string { return "pat" + m.hex(6) + "." + m.hex(6) }, func() string { return m.hex(32) }, lit("NRAK-"))
}

// Webhooks that need no other credential: Slack, Discord, Microsoft Teams.
func (m *maker) webhook() {
	id := func(n int) string { return m.of(upper26+digits10, n) }
	for range 24 {
		m.carry("slack", one(m, "https://hooks.slack.com/services/§", "curl -X POST https://hooks.slack.com/services/§ -d @x\n", `{"hook":"https://hooks.slack.com/services/§"}`),
			"T"+id(8)+"/B"+id(10)+"/"+m.alnum(24))
		m.carry("discord", one(m, "https://discord.com/api/webhooks/"+m.digits(19)+"/§", `{"hook":"https://discord.com/api/webhooks/`+m.digits(18)+`/§"}`, "see https://discordapp.com/api/webhooks/"+m.digits(18)+"/§ now"),
			m.of(url64, 67)+m.alnum(1))
		m.carry("teams", one(m, "https://acme.webhook.office.com/webhookb2/§", `{"hook":"https://acme.webhook.office.com/webhookb2/§"}`),
			m.uuid()+"@"+m.uuid()+"/IncomingWebhook/"+m.hex(32)+"/"+m.uuid())
	}
	m.near(40, lit("https://hooks.slack.com/"), lit("https://discord.com/channels/112233445566778899/998877"), lit("https://discord.com/developers/docs/resources/webhook"), lit("https://acme.webhook.office.com/"),
		lit("https://example.com/webhooks/new"), lit("https://api.slack.com/messaging/webhooks"))
}

// JSON Web Tokens: RFC 7519, signed as of RFC 7515 or encrypted as of RFC 7516.
func (m *maker) jwt() {
	seg := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // only maps of strings and numbers are given
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	for range 60 {
		head := seg(map[string]any{"alg": one(m, "HS256", "RS256", "ES256", "EdDSA"), "typ": "JWT", "kid": m.hex(8)})
		m.carry("signed", m.secretCarrier(), head+"."+seg(map[string]any{"sub": m.digits(10), "iat": 1763690000 + m.r.IntN(90000), "iss": "https://id.example.com"})+"."+m.of(url64, one(m, 43, 86, 342)))
	}
	for range 15 {
		m.carry("encrypted", m.secretCarrier(), seg(map[string]any{"alg": "RSA-OAEP", "enc": "A256GCM"})+"."+m.of(url64, 342)+"."+m.of(url64, 16)+"."+m.of(url64, 60)+"."+m.of(url64, 22))
	}
	m.near(40, lit("eyJ"), lit("eyJ.eyJ"), func() string { return seg(map[string]any{"alg": "none", "n": m.r.IntN(9999)}) }, func() string { return seg(map[string]any{"cursor": m.digits(9), "page": 2}) },
		lit("a JWT begins with eyJ"), func() string { return "v1.2." + m.digits(3) }, func() string { return "data.eyeJ." + m.alnum(9) })
}

// Private keys: RFC 7468's armour, OpenSSH's, PGP's; PuTTY's own form.
func (m *maker) privateKey() {
	body := func(lines int) string {
		var b strings.Builder
		for range lines {
			b.WriteString(m.of(std64, 64) + "\n")
		}
		return b.String() + m.of(std64, 30) + "==\n"
	}
	for range 60 {
		name := one(m, "", "RSA ", "EC ", "DSA ", "ENCRYPTED ", "OPENSSH ")
		m.carry(strings.TrimSpace(name+"PEM"), one(m, slot+"\n", "key:\n§\nnext\n", `{"type":"service_account","private_key":"§","client_id":"1"}`, `{"text":"here it is: § ok"}`, "cat > k <<EOF\n§\nEOF\n", "const k = `§`;\n", "ssl_key = '''§'''\n"),
			"-----BEGIN "+name+"PRIVATE KEY-----\n"+body(3+m.r.IntN(20))+"-----END "+name+"PRIVATE KEY-----")
	}
	for range 10 {
		m.carry("PGP", slot+"\n", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n"+body(12)+"="+m.of(std64, 4)+"\n-----END PGP PRIVATE KEY BLOCK-----")
	}
	armour := func(name string) func() string {
		return func() string { return "-----BEGIN " + name + "-----\n" + body(6) + "-----END " + name + "-----\n" }
	}
	m.near(28, armour("CERTIFICATE"), armour("PUBLIC KEY"), armour("RSA PUBLIC KEY"), armour("CERTIFICATE REQUEST"), armour("DH PARAMETERS"), armour("PGP PUBLIC KEY BLOCK"), armour("X509 CRL"),
		func() string { return "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + m.of(std64, 43) + " laptop" })
}

// Credentials in headers: RFC 6750 and RFC 7617, and cookies of RFC 6265.
func (m *maker) authorization() {
	for range 40 {
		m.carry("bearer", one(m, "Authorization: Bearer §\r\nHost: example.com\r\n", "curl -H \"Authorization: Bearer §\" https://example.com\n", `{"headers":{"Authorization":"Bearer §"}}`,
			"authorization: bearer §\n", "headers = {'Authorization': 'Bearer §'}\n", "sent with Bearer § as before"), one(m, m.of(url64, 31)+m.alnum(1), m.hex(40), m.uuid(), "v1."+m.of(url64, 40)+m.alnum(1)))
		m.carry("basic", one(m, "Authorization: Basic §\r\nHost: example.com\r\n", `{"headers":{"Authorization":"Basic §"}}`, "Proxy-Authorization: Basic §\n", "curl -H 'Authorization: Basic §' https://example.com\n"),
			base64.StdEncoding.EncodeToString([]byte(m.name()+":"+m.alnum(6+m.r.IntN(12)))))
	}
	for range 20 {
		m.carry("cookie", "GET / HTTP/1.1\r\nHost: example.com\r\nCookie: §\r\nAccept: */*\r\n\r\n", "sid="+m.hex(32)+"; theme=dark")
		m.carry("set-cookie", "HTTP/1.1 200 OK\r\nSet-Cookie: §\r\nContent-Type: text/html\r\n\r\n", "sid="+m.hex(32)+"; Path=/; HttpOnly")
		m.carry("api key header", one(m, "X-Api-Key: §\r\nHost: example.com\r\n", "x-auth-token: §\n", `{"headers":{"X-API-Key":"§"}}`), m.alnum(32))
	}
	m.near(30, lit("the bearer of bad news"), lit("Bearer authentication is required"), lit(`WWW-Authenticate: Bearer realm="example", error="invalid_token"`), lit(`WWW-Authenticate: Basic realm="x"`), lit("basic authentication"),
		lit("basic training for everyone"), lit("Basic English, 850 words"), lit("a bearer token, see RFC 6750"), lit("we use cookies on this page"), lit("Cookie policy"), lit("authorization is decided by the gate"), lit("Authorization header missing"))
}

// uuid is a random one of RFC 9562.
func (m *maker) uuid() string {
	h := m.hex(32)
	return fmt.Sprintf("%s-%s-4%s-%s%s-%s", h[:8], h[8:12], h[13:16], one(m, "8", "9", "a", "b"), h[17:20], h[20:])
}
