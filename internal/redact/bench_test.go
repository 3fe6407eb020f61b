package redact

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// prose, code and chat are ordinary texts of about 64 KiB without a finding.
func samples() map[string][]byte {
	prose := strings.Repeat("The agent opened the report of 2026-11-21 and wrote three lines: totals (42), a note, and the next step. Nothing else changed; see section 4.2 for more.\n", 420)
	code := strings.Repeat("func (s *Store) lookup_by_id(ctx context.Context, id int64) (*Row, error) {\n\trow := s.db.QueryRow(ctx, `SELECT a, b FROM t WHERE id = ?`, id)\n\tif err := row.Err(); err != nil {\n\t\treturn nil, fmt.Errorf(\"lookup %d: %w\", id, err)\n\t}\n\treturn scan_row(row, 0x1f, 64)\n}\n", 230)
	chat := strings.Repeat(`{"role":"assistant","id":"msg_01XFDUDYJgAACzvnptvVoYEL","content":[{"type":"text","text":"I read the file and found 3 lines to change in main.go."}],"usage":{"input_tokens":2095,"output_tokens":503},"at":"2026-11-21T03:42:44Z"},`, 280)
	return map[string][]byte{"prose": []byte(prose), "code": []byte(code), "chat": []byte(chat)}
}

// naive is the way of one regular expression per rule, for comparison.
func naive() []*regexp.Regexp {
	var l []*regexp.Regexp
	for _, p := range []string{
		`[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`, `A[KS]IA[A-Z0-9]{16}`, `gh[pousr]_[A-Za-z0-9]{16,}`, `github_pat_\w{20,}`,
		`glpat-[\w.-]{16,}`, `xox[abceoprs]-[\w-]{10,}`, `[sr]k_(live|test)_\w{10,}`, `\bsk-[\w-]{20,}`, `AIza[\w-]{30,}`, `npm_\w{30,}`,
		`eyJ[\w-]{5,}\.[\w-]+\.[\w-]*`, `(?s)-----BEGIN [A-Z ]*PRIVATE KEY.*?-----END`, `(?i)bearer +[\w.~+/=-]+`,
		`(?i)(password|passwd|secret|token|api[_-]?key|authorization)["']?\s*[:=]\s*\S+`, `://[^/\s:@]*:[^/\s@]+@`,
		`\b(\d[ -]?){12,18}\d\b`, `\b\d{3}-\d{2}-\d{4}\b`, `\+\d[\d ().-]{7,}`, `\(?\d{3}\)?[-. ]\d{3}[-.]\d{4}`,
	} {
		l = append(l, regexp.MustCompile(p))
	}
	return l
}

// BenchmarkText stands beside its floor (one look at every byte through a
// table), and beside one regular expression per rule on the same bytes.
func BenchmarkText(b *testing.B) {
	e := newEngine(b)
	res := naive()
	for _, name := range []string{"prose", "code", "chat"} {
		s := samples()[name]
		b.Run(name+"/engine", func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				if e.Text(s).Found() {
					b.Fatal("found something")
				}
			}
		})
		b.Run(name+"/floor", func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			n := 0
			for b.Loop() {
				for _, c := range s {
					if triggerBytes[c] {
						n++
					}
				}
			}
			b.ReportMetric(float64(n)/float64(b.N)/float64(len(s)), "triggerBytes/B")
		})
		b.Run(name+"/regexp", func(b *testing.B) {
			s := s[:8192]
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				for _, r := range res {
					r.Match(s)
				}
			}
		})
	}
}

// leaf is a ledger entry of about 1.4 KB.
func leaf() []byte {
	return fmt.Appendf(nil, `{"id":"019ab3f2-7b1e-7cc0-9b1e-0123456789ab","tenant_id":"local","correlation_id":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2026-11-21T03:42:44.123456Z","boundary_crossing":"mcp/filesystem/write_file","caller_user_id":"agent-7","caller_roles":["developer","reader"],"k1_schema_id":"mcp/filesystem/write_file","k1_valid":true,"k2_required_permissions":["mcp:filesystem:write"],"k2_granted_permissions":["mcp:filesystem:read","mcp:filesystem:write"],"k2_authorized":true,"k3_resource_type":"wall_ms","k3_budget_limit":3600000,"k3_usage_before":12034,"k3_requested":5000,"k3_within_budget":true,"k5_idempotency_key":"%s","exact_hash":"%s","k7_confidence_score":0.93,"k7_human_approved":null,"k8_eval_passed":true,"operation_result":"{\"content\":[{\"type\":\"text\",\"text\":\"Successfully wrote to /srv/out/report.md\"}]}","exit_code":0,"redaction_rules_applied":[],"contains_pii_before_redaction":false,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","created_at":"2026-11-21T03:42:44.223456Z","partition_date":"2026-11-21","opinions":[{"gate":"K1","verdict":"allow","rule":"schema","why":"valid"},{"gate":"K2","verdict":"allow","rule":"roles","why":"granted by developer"}]}`,
		strings.Repeat("9f86d081", 8), strings.Repeat("e3b0c442", 8))
}

var identity = []string{"id", "tenant_id", "correlation_id", "timestamp", "k5_idempotency_key", "exact_hash", "traceparent", "created_at", "caller_user_id"}

// BenchmarkSeal stands beside the parser's bare validity check of the leaf.
func BenchmarkSeal(b *testing.B) {
	e, lit := newEngine(b), newEngine(b, "tenant-own-secret", "another-of-them")
	doc := leaf()
	b.Run("engine", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.Seal(doc, identity...); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("literals", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			if _, err := lit.Seal(doc, identity...); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("validity", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			if !jsontext.Value(doc).IsValid() {
				b.Fatal("invalid")
			}
		}
	})
}

func TestSealLeavesALeafAlone(t *testing.T) {
	doc := leaf()
	rec, err := newEngine(t).Seal(doc, identity...)
	if err != nil || !bytes.Equal(rec.Bytes(), doc) {
		t.Fatalf("%v\n%s\n%s", err, rec.Bytes(), doc)
	}
	// Without exemption too: no id and no hash looks like a secret.
	if rec, err = newEngine(t).Seal(doc); err != nil || !bytes.Equal(rec.Bytes(), doc) {
		t.Fatalf("%v\n%s\n%s", err, rec.Bytes(), doc)
	}
}

// BenchmarkStream stands beside BenchmarkText on the same texts: in pieces of
// 4 KiB, and of 20 bytes as models write them.
func BenchmarkStream(b *testing.B) {
	e := newEngine(b)
	for _, name := range []string{"prose", "code", "chat"} {
		for _, size := range []int{4096, 20} {
			pieces := every(samples()[name], size)
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.SetBytes(int64(len(samples()[name])))
				b.ReportAllocs()
				for b.Loop() {
					s := e.Stream(io.Discard)
					for _, p := range pieces {
						if _, err := s.Write(p); err != nil {
							b.Fatal(err)
						}
					}
					if err := s.Close(); err != nil || len(s.Findings().Counts) > 0 {
						b.Fatal(err, s.Findings())
					}
				}
			})
		}
	}
}

// triggerBytes are the bytes at which a search for what is certain may stop.
var triggerBytes = func() (t [256]bool) {
	for _, c := range []byte("0123456789@:=>+%-_.JKSzbBwW") {
		t[c] = true
	}
	return t
}()
