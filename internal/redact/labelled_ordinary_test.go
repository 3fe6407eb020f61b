package redact

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// ordinary is something that tempts a scanner and is nothing: a hash, an id, a
// time, a version, an address of a machine, a piece of prose or code.
func (m *maker) ordinary() (sub, value string) {
	sub = one(m, sortedKeys(ordinaries())...)
	return sub, ordinaries()[sub](m)
}

func ordinaries() map[string]func(*maker) string {
	return map[string]func(*maker) string{
		"uuid":         (*maker).uuid,
		"sha256":       func(m *maker) string { return m.hex(64) },
		"sha1":         func(m *maker) string { return m.hex(40) },
		"short hash":   func(m *maker) string { return m.hex(7) },
		"md5":          func(m *maker) string { return m.hex(32) },
		"seconds":      func(m *maker) string { return "17" + m.digits(8) },
		"milliseconds": func(m *maker) string { return "17" + m.digits(11) },
		"nanoseconds":  func(m *maker) string { return "17" + m.digits(17) },
		"stamp": func(m *maker) string {
			return fmt.Sprintf("2026-%02d-%02dT%02d:%02d:44.%sZ", 1+m.r.IntN(12), 1+m.r.IntN(28), m.r.IntN(24), m.r.IntN(60), m.digits(6))
		},
		"date": func(m *maker) string { return fmt.Sprintf("2026-%02d-%02d", 1+m.r.IntN(12), 1+m.r.IntN(28)) },
		"ipv4": func(m *maker) string {
			return fmt.Sprintf("%d.%d.%d.%d", 1+m.r.IntN(223), m.r.IntN(256), m.r.IntN(256), 1+m.r.IntN(254))
		},
		"ipv6": func(m *maker) string { return "2001:db8:" + m.hex(4) + ":" + m.hex(4) + "::" + m.hex(4) },
		"mac": func(m *maker) string {
			return strings.Join([]string{"02", m.hex(2), m.hex(2), m.hex(2), m.hex(2), m.hex(2)}, ":")
		},
		"version": func(m *maker) string {
			return fmt.Sprintf("v%d.%d.%d-rc.%d+%s", m.r.IntN(20), m.r.IntN(40), m.r.IntN(99), m.r.IntN(9), m.hex(7))
		},
		"snowflake": func(m *maker) string { return "1" + m.digits(18) },
		"order":     func(m *maker) string { return one(m, "ORD-", "INV", "#", "SO-2026-") + m.digits(6+m.r.IntN(4)) },
		"amount": func(m *maker) string {
			return one(m, "$", "EUR ", "") + m.digits(3) + "," + m.digits(3) + "." + m.digits(2)
		},
		"fraction": func(m *maker) string { return "0." + m.digits(16) },
		"ulid":     func(m *maker) string { return "01" + m.of("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24) },
		"image": func(m *maker) string {
			return "data:image/png;base64,iVBORw0KGgo" + m.of(std64, 200+m.r.IntN(300)) + "=="
		},
		"base64 text": func(m *maker) string {
			return base64.StdEncoding.EncodeToString([]byte("the quick brown fox number " + m.digits(3)))
		},
		"integrity": func(m *maker) string { return "sha512-" + m.of(std64, 86) + "==" },
		"digest":    func(m *maker) string { return "sha256:" + m.hex(64) },
		"identifier": func(m *maker) string {
			return one(m, "getUserTokenCount", "SECRET_SANTA_LIST", "passwordless_login", "KeyError", "is_authorized", "AuthorizationPolicy", "tokenize_and_count", "card_index", "phone_home", "emailTemplateId")
		},
		"path": func(m *maker) string {
			return one(m, "/usr/lib/python3.13/site-packages/secrets.py", `C:\Users\me\token.txt`, "/etc/passwd", "./internal/redact/token_test.go", "/srv/mail/1732160564.M12345P678.host", "~/.ssh/known_hosts")
		},
		"url": func(m *maker) string {
			return "https://example.com/a/" + m.digits(8) + "?page=" + m.digits(2) + "&sort=name#part-" + m.digits(2)
		},
		"prose": func(m *maker) string {
			return one(m, "the keys to the house are under the mat", "we met Mr. President at noon", "a password is not a policy", "the card was red and the order was 12", "lorem ipsum dolor sit amet, consectetur adipiscing elit")
		},
		"colour": func(m *maker) string { return "#" + m.hex(6) },
		"trace":  func(m *maker) string { return "00-" + m.hex(32) + "-" + m.hex(16) + "-01" },
		"ean":    func(m *maker) string { return "978" + m.digits(10) },
		"coordinates": func(m *maker) string {
			return fmt.Sprintf("%d.%s, %d.%s", m.r.IntN(90), m.digits(6), m.r.IntN(180), m.digits(6))
		},
		"range":  func(m *maker) string { return fmt.Sprintf("%d-%d", m.r.IntN(9000), m.r.IntN(9000)) },
		"cidr":   func(m *maker) string { return fmt.Sprintf("10.%d.0.0/16", m.r.IntN(256)) },
		"size":   func(m *maker) string { return m.digits(9) + " bytes" },
		"flags":  func(m *maker) string { return "--jobs=" + m.digits(1) + " -O2 -DNDEBUG --no-verify" },
		"regexp": func(m *maker) string { return `^[A-Z]{2}\d{2}[a-z0-9]+$` },
		"cron":   func(m *maker) string { return "*/5 3 1-7 * 1" },
		"matrix": func(m *maker) string {
			return strings.Join([]string{m.digits(2), m.digits(3), m.digits(1), m.digits(2)}, " ")
		},
	}
}
