package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/token"
)

// The boundaries that the measurements cross: one that asks every gate, and
// one whose hand waits.
const (
	benchOrder = "mcp/shop/order"
	benchWait  = "mcp/shop/wait"
)

const benchRules = `rules:
  - id: no-etc
    on: request
    boundary: mcp/shop/order
    when: args.path.startsWith("/etc/")
    message: nothing under /etc
  - id: small
    on: request
    boundary: mcp/shop/order
    when: args.amount > 1000 || size(args.text) > 4000
    message: too much
`

// benchPayload has 1 KB and 20 fields, and benchSchema describes each.
func benchPayload() []byte {
	b := []byte(`{"path":"/srv/orders/2026/11/21.json","amount":42.5,"count":7,"urgent":false,"note":null,"tags":["a","b","c"],"customer":{"id":90071,"name":"Ada Lovelace","city":"London"}`)
	for i := 12; i > 0; i-- {
		b = fmt.Appendf(b, `,"field_%02d":"value %d of an ordinary text field"`, i, i*7919)
	}
	b = append(b, `,"text":"`...)
	b = append(b, strings.Repeat("lorem ", (1024-len(b)-2)/6)...)
	return append(b, `"}`...)
}

func benchSchema() []byte {
	var b strings.Builder
	b.WriteString(`{"type":"object","required":["path","amount"],"additionalProperties":false,"properties":{` +
		`"path":{"type":"string","minLength":1,"maxLength":4096,"pattern":"^/"},"amount":{"type":"number","minimum":0,"maximum":100000},` +
		`"count":{"type":"integer","minimum":0},"urgent":{"type":"boolean"},"note":{"type":["string","null"]},` +
		`"tags":{"type":"array","items":{"type":"string"},"maxItems":10},` +
		`"customer":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"name":{"type":"string"},"city":{"type":"string"}}},` +
		`"text":{"type":"string","maxLength":100000}`)
	for i := range 12 {
		fmt.Fprintf(&b, `,"field_%02d":{"type":"string","maxLength":200}`, i+1)
	}
	b.WriteString(`}}`)
	return []byte(b.String())
}

// benchRepeats lets agents that are measured do the same again and again.
const benchRepeats = `unsafe: {watch_looser: true}
watch: {responses: {loop: record, error_rate: record, cost_per_hour: record, rapid_actions: record, escalating_cost: record}}`

// benchConfig is the configuration that is measured. JSON is YAML.
func benchConfig() string {
	return fmt.Sprintf(`version: 1
listen: {pages: none}
%s
identity:
  issuers:
    - {name: bench, audience: holdfast, jwks_file: jwks.json, algorithms: [EdDSA]}
  roles: {agent: ["mcp:call"]}
boundaries:
  - {boundary: %s, risk: MEDIUM, operation: write, permissions: ["mcp:call"], consumes: {llm_tokens: 10}, schema: %s}
  - {boundary: %s, risk: LOW, permissions: ["mcp:call"]}
budgets:
  - {scope: tenant, resource: llm_tokens, amount: 1000000000000, window: 24h}
  - {scope: agent, resource: llm_tokens, amount: 1000000000000, window: 24h}
rules: {files: [rules.yaml]}
`, benchRepeats, benchOrder, benchSchema(), benchWait)
}

// benchState is a daemon on a state directory of its own, and the key of an
// issuer whose tokens it accepts.
type benchState struct {
	d   *daemon.Daemon
	key ed25519.PrivateKey
	kid string
}

func (b *bench) open(name string) (*benchState, error) { return b.openWith(name, benchConfig()) }

func (b *bench) openWith(name, text string, change ...func(*daemon.Options)) (*benchState, error) {
	config := filepath.Join(b.dir, name+"-config")
	if err := os.Mkdir(config, 0o700); err != nil {
		return nil, err
	}
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	s := &benchState{key: key}
	if s.kid, err = token.Thumbprint(pub); err != nil {
		return nil, err
	}
	jwks := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":%q,"x":%q}]}`, s.kid, base64.RawURLEncoding.EncodeToString(pub))
	for file, text := range map[string]string{"jwks.json": jwks, "rules.yaml": benchRules, "holdfast.yaml": text} {
		if err := os.WriteFile(filepath.Join(config, file), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	o := daemon.Options{State: filepath.Join(b.dir, name), Config: filepath.Join(config, "holdfast.yaml"), Version: "bench"}
	for _, c := range change {
		c(&o)
	}
	s.d, err = daemon.Open(b.ctx, o)
	return s, err
}

// token makes a token of one of the tenants for an agent.
func (s *benchState) token(tenant int, agent string) (holdfast.Secret, error) {
	return s.tokenOf(fmt.Sprint("tenant-", tenant), agent)
}

func (s *benchState) tokenOf(tenant, agent string) (holdfast.Secret, error) {
	now := time.Now()
	header, err := json.Marshal(map[string]any{"alg": "EdDSA", "typ": "JWT", "kid": s.kid})
	claims, err2 := json.Marshal(map[string]any{
		"iss": "bench", "aud": "holdfast", "jti": uuid.NewString(), "sub": "user:" + agent, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"tenant_id": tenant, "roles": []string{"agent"}, "agent": agent, "session": agent + "-1",
	})
	if err := errors.Join(err, err2); err != nil {
		return holdfast.Secret{}, err
	}
	enc := base64.RawURLEncoding
	text := enc.EncodeToString(header) + "." + enc.EncodeToString(claims)
	return holdfast.NewSecret(text + "." + enc.EncodeToString(ed25519.Sign(s.key, []byte(text)))), nil
}

// requests makes one request for each caller, spread over the tenants.
func (s *benchState) requests(boundary string, payload []byte, callers, tenants int) ([]holdfast.Request, error) {
	var out []holdfast.Request
	for i := range callers {
		t, err := s.token(i%tenants, fmt.Sprint("agent-", i))
		if err != nil {
			return nil, err
		}
		out = append(out, holdfast.Request{Boundary: boundary, Payload: payload, Token: t})
	}
	return out, nil
}
