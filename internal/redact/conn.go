package redact

import "bytes"

// schemes are those of databases and queues: the credentials of such a URL are
// a connection string's.
var schemes = [...]string{
	"postgres", "postgresql", "mysql", "mysqlx", "mariadb", "mongodb", "redis", "rediss", "valkey", "valkeys", "amqp", "amqps",
	"sqlserver", "mssql", "oracle", "cockroachdb", "clickhouse", "cassandra", "neo4j", "neo4js", "bolt", "couchbase", "couchbases",
	"couchdb", "snowflake", "redshift", "trino", "presto", "vertica", "db2", "firebird", "libsql", "influxdb", "nats", "kafka", "elasticsearch",
}

var schemeGate = schemeGates()

func schemeGates() (g gate) {
	for _, s := range schemes {
		g.add(s)
	}
	return g
}

// isDatabase says whether the ":" at i ends a database's scheme; what a "+"
// adds to it (a driver, srv) is not looked at.
func (x *scanner) isDatabase(i int) bool {
	b := i
	for b > 0 && i-b < 40 && (class[x.s[b-1]]&isAlnum != 0 || x.s[b-1] == '+') {
		b--
	}
	name := x.s[b:i]
	if plus := bytes.IndexByte(name, '+'); plus >= 0 {
		name = name[:plus]
	}
	if len(name) == 0 || !schemeGate.may(name[0], len(name)) {
		return false
	}
	for _, s := range schemes {
		if isFold(name, s) {
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

// inConnection says whether the name at i is one of the settings of a
// connection string: others stand before it, and behind each a ";", a blank,
// or in a URL a "&".
func (x *scanner) inConnection(i int) bool {
	if i == 0 || indexByte("; &?", x.s[i-1]) < 0 {
		return false
	}
	from := max(0, i-reachSettings)
	line := x.s[from:i]
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	for at, n := len(line)-1, 0; at > 0 && n < maxSettings; at-- {
		if line[at] != '=' {
			continue
		}
		n++
		for _, h := range hostsBy[lower(line[at-1])] {
			if endsFold(line[:at+1], h) {
				return true
			}
		}
	}
	return bytes.Contains(line, []byte("jdbc:"))
}

// driverAddress masks the "user:password" before the "@" at i of the Go MySQL
// driver: user:password@tcp(host:3306)/db, or @unix(...).
func (x *scanner) driverAddress(i int) bool {
	if !x.has(i+1, "tcp(") && !x.has(i+1, "unix(") && !x.has(i+1, "tcp6(") {
		return false
	}
	b := i
	colon := false
	for b > x.low && i-b < 128 && class[x.s[b-1]]&isSpace == 0 && !isQuote(x.s[b-1]) && x.s[b-1] != '/' && x.s[b-1] != '=' && !isStop(x.s, b) {
		b--
		colon = colon || x.s[b] == ':'
	}
	if colon && maskLen(x.s[b:i]) == 0 {
		x.mask(b, i, ruleConnection)
	}
	return true
}

// thinAddress masks the "user/password" of Oracle's jdbc:oracle:thin:, whose
// last ":" stands at i.
func (x *scanner) thinAddress(i int) bool {
	if c := x.s[max(0, i-1)]; c != 'n' && c != 'i' || !x.has(i-len("oracle:thin"), "oracle:thin") && !x.has(i-len("oracle:oci"), "oracle:oci") {
		return false
	}
	slash := x.end(i+1, 64, isIdent)
	if slash == i+1 || !x.has(slash, "/") {
		return false
	}
	for at := slash + 1; at < len(x.s) && at < slash+128 && class[x.s[at]]&isSpace == 0; at++ {
		if x.s[at] == '@' {
			x.mask(i+1, at, ruleConnection)
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
}

var parameterGate = parameterGates()

func parameterGates() (g gate) {
	for _, p := range parameters {
		g.add(p.text)
	}
	return g
}

// parameter masks the value of the URL's parameter [start, end) before the
// sign of w bytes at i: "?sig=...", "&X-Amz-Signature=...", "#code=...".
func (x *scanner) parameter(i, w, start, end int) {
	if start == 0 || indexByte("?&#;", x.s[start-1]) < 0 {
		return
	}
	name := x.s[start:end]
	if dash := bytes.LastIndexByte(name, '-'); dash >= 0 {
		name = name[dash+1:]
	}
	if len(name) == 0 || !parameterGate.may(name[0], len(name)) {
		return
	}
	v := i + w
	e := v
	var have uint16
	caps := false
	for ; e < len(x.s) && (class[x.s[e]]&(isAlnum|isSymbol) != 0 || x.s[e] == '%'); e++ {
		if e-v >= maxAhead/2 {
			continue
		}
		have |= class[x.s[e]]
		caps = caps || class[x.s[e]]&isLetter != 0 && class[x.s[e]]&isHex == 0
	}
	x.touch(e)
	for n := 0; n < maxTail && e > v && x.s[e-1] == '.'; n++ {
		e--
	}
	if e-v < 16 || have&isDigit == 0 || have&isLetter == 0 {
		return
	}
	for _, p := range parameters {
		if isFold(name, p.text) && (p.hash || caps && have&isLetter == isLetter) {
			x.mask(v, e, ruleURL)
			return
		}
	}
}
