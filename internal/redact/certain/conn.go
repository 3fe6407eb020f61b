package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/token"
)

// schemes are those of databases and queues: the credentials of such a URL are
// a connection string's.
var schemes = [...]string{
	"postgres", "postgresql", "mysql", "mysqlx", "mariadb", "mongodb", "redis", "rediss", "valkey", "valkeys", "amqp", "amqps",
	"sqlserver", "mssql", "oracle", "cockroachdb", "clickhouse", "cassandra", "neo4j", "neo4js", "bolt", "couchbase", "couchbases",
	"couchdb", "snowflake", "redshift", "trino", "presto", "vertica", "db2", "firebird", "libsql", "influxdb", "nats", "kafka", "elasticsearch",
}

var schemeGate = schemeGates()

func schemeGates() (g char.WordGate) {
	for _, s := range schemes {
		g.Add(s)
	}
	return g
}

// isDatabase says whether the ":" at i ends a database's scheme; what a "+"
// adds to it (a driver, srv) is not looked at.
func (x *Scanner) isDatabase(i int) bool {
	b := i
	for b > 0 && i-b < 40 && (char.Class[x.S[b-1]]&char.Alnum != 0 || x.S[b-1] == '+') {
		b--
	}
	name := x.S[b:i]
	if plus := bytes.IndexByte(name, '+'); plus >= 0 {
		name = name[:plus]
	}
	if len(name) == 0 || !schemeGate.May(name[0], len(name)) {
		return false
	}
	for _, s := range schemes {
		if char.EqualFold(name, s) {
			return true
		}
	}
	return false
}

// reachSettings is how far before a password the rest of a connection string
// is looked for, and how many settings back.
const (
	reachSettings = 160
	maxSettings   = 6
)

// hosts are the settings that make a list a connection string.
var hosts = [...]string{
	"server=", "data source=", "host=", "hostaddr=", "driver=", "dsn=", "addr=", "address=", "initial catalog=", "database=", "dbname=", "uid=",
	"user id=",
}

// hostsBy holds them by their last letter.
var hostsBy = hostsByLast()

func hostsByLast() *[256][]string {
	var t [256][]string
	for _, h := range hosts {
		c := h[len(h)-2]
		t[c] = append(t[c], h)
	}
	return &t
}

// inConnection reports whether the name at i is one of the settings of a
// connection string: others precede it, and after each is a ";", a blank,
// or in a URL a "&".
func (x *Scanner) inConnection(i int) bool {
	if i == 0 || char.IndexByte("; &?", x.S[i-1]) < 0 {
		return false
	}
	from := max(0, i-reachSettings)
	line := x.S[from:i]
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	for at, n := len(line)-1, 0; at > 0 && n < maxSettings; at-- {
		if line[at] != '=' {
			continue
		}
		n++
		for _, h := range hostsBy[char.ToLower(line[at-1])] {
			if char.HasFoldSuffix(line[:at+1], h) {
				return true
			}
		}
	}
	return bytes.Contains(line, []byte("jdbc:"))
}

// driverAddress masks the "user:password" before the "@" at i of the Go MySQL
// driver: user:password@tcp(host:3306)/db, or @unix(...).
func (x *Scanner) driverAddress(i int) bool {
	if !x.Has(i+1, "tcp(") && !x.Has(i+1, "unix(") && !x.Has(i+1, "tcp6(") {
		return false
	}
	b := i
	colon := false
	for b > x.low && i-b < 128 && char.Class[x.S[b-1]]&char.Space == 0 && !char.IsQuote(x.S[b-1]) &&
		x.S[b-1] != '/' && x.S[b-1] != '=' && !char.IsStop(x.S, b) {
		b--
		colon = colon || x.S[b] == ':'
	}
	if colon && mask.Len(x.S[b:i]) == 0 {
		x.mask(b, i, rule.Connection)
	}
	return true
}

// thinAddress masks the "user/password" of Oracle's jdbc:oracle:thin:, whose
// last ":" stands at i.
func (x *Scanner) thinAddress(i int) bool {
	if c := x.S[max(0, i-1)]; c != 'n' && c != 'i' || !x.Has(i-len("oracle:thin"), "oracle:thin") &&
		!x.Has(i-len("oracle:oci"), "oracle:oci") {
		return false
	}
	slash := x.End(i+1, 64, char.Ident)
	if slash == i+1 || !x.Has(slash, "/") {
		return false
	}
	for at := slash + 1; at < len(x.S) && at < slash+128 && char.Class[x.S[at]]&char.Space == 0; at++ {
		if x.S[at] == '@' {
			x.mask(i+1, at, rule.Connection)
			return true
		}
	}
	return false
}

// parameters are names that say in a URL what elsewhere they do not: the value
// of such a parameter is a secret where it looks opaque.
var parameters = [...]struct {
	text string
	hash bool // a hash may be one
}{
	{"sig", true}, {"signature", true}, {"key", false}, {"code", false}, {"session", true}, {"sid", true}, {"sessionid", true},
	{"jsessionid", true}, {"phpsessid", true}, {"ticket", false}, {"samlresponse", true}, {"assertion", true},
	{"appid", true},
}

var parameterGate = parameterGates()

func parameterGates() (g char.WordGate) {
	for _, p := range parameters {
		g.Add(p.text)
	}
	return g
}

// parameter masks the value of the URL's parameter [start, end) before the
// sign of w bytes at i: "?sig=...", "&X-Amz-Signature=...", "#code=...".
func (x *Scanner) parameter(i, w, start, end int) {
	if start == 0 || char.IndexByte("?&#;", x.S[start-1]) < 0 {
		return
	}
	name := x.S[start:end]
	if dash := bytes.LastIndexByte(name, '-'); dash >= 0 {
		name = name[dash+1:]
	}
	if len(name) == 0 || !parameterGate.May(name[0], len(name)) {
		return
	}
	v := i + w
	e := v
	var have uint16
	caps := false
	for ; e < len(x.S) && (char.Class[x.S[e]]&(char.Alnum|char.Symbol) != 0 || x.S[e] == '%'); e++ {
		if e-v >= MaxAhead/2 {
			continue
		}
		have |= char.Class[x.S[e]]
		caps = caps || char.Class[x.S[e]]&char.Letter != 0 && char.Class[x.S[e]]&char.Hex == 0
	}
	x.Touch(e)
	for n := 0; n < maxTail && e > v && x.S[e-1] == '.'; n++ {
		e--
	}
	if e-v < 16 || have&char.Digit == 0 || have&char.Letter == 0 {
		return
	}
	for _, p := range parameters {
		if char.EqualFold(name, p.text) && (p.hash || caps && (have&char.Letter == char.Letter ||
			p.text == "key" && token.IsUsualSize(e-v) && token.IsKey(x.S[v:e]))) {
			x.mask(v, e, rule.URL)
			return
		}
	}
}
