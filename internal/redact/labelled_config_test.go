package redact

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// name is a short word or two, as users, hosts and variables have them.
func (m *maker) name() string {
	return one(m, "alpha", "delta", "river", "stone", "maple", "north", "cedar", "ember") + one(m, "", "1", "7", "_app", "-dev", "-main", "admin")
}

// password is what people and machines take for one; all of it may stand in a
// URL.
func (m *maker) password() string {
	return one(m,
		one(m, "correct", "winter", "Summer", "dragon", "blue")+one(m, "horse", "Rain", "2026", "sky")+m.digits(2+m.r.IntN(3)),
		m.alnum(8+m.r.IntN(16)), m.hex(16), m.of(url64+".~!", 14)+m.alnum(1), "hunter"+m.digits(1), m.of(lower26, 9)+"!"+m.digits(1)+"x",
	)
}

// Credentials in the authority of a URL: RFC 3986 section 3.2.1, and the
// connection strings of databases.
func (m *maker) urlCredentials() {
	for range 80 {
		scheme := one(m, "postgres", "postgresql", "mysql", "mongodb+srv", "redis", "amqps", "https", "ftp", "mssql", "smtp")
		user := m.name()
		if scheme == "redis" {
			user = ""
		}
		m.carry(scheme, one(m, slot, "DATABASE_URL=§\n", "url: §\n", `{"dsn":"§"}`, "connect(\"§\")\n", "psql '§'\n", "could not reach §: timeout\n", "- §\n")+"", "")
		e := &m.list[len(m.list)-1]
		head, tail := scheme+"://", one(m, "@db.example.com:5432/main?sslmode=require", "@10.1.2.3/x", "@cache-1.internal:6379/0", "@host/path")
		secret := user + ":" + m.password()
		e.text = e.text[:e.want[0].start] + head + secret + tail + e.text[e.want[0].start:]
		e.want = []label{{e.want[0].start + len(head), e.want[0].start + len(head) + len(secret)}}
	}
	for range 20 {
		m.carry("ado.net", one(m, "Server=db.example.com;Database=main;User Id=sa;Password=§;Encrypt=True", "jdbc:sqlserver://db:1433;databaseName=x;user=sa;password=§;", "host=db port=5432 user=app password=§ dbname=x\n"), m.alnum(14))
	}
	m.near(34, lit("postgres://localhost:5432/main"), lit("http://example.com:8080/a@b"), lit("https://example.com/@someone/post-7"), lit("ssh://git@git.example.com:22/a/b.git"), lit("postgres://${DB_USER}:${DB_PASS}@${DB_HOST}/main"),
		lit("https://example.com/a:b/c@d"), lit("redis://cache:6379/0"), lit("amqp://broker:5672"), lit("http://[2001:db8::1]:8080/x"), lit("mongodb://a:27017,b:27017/?replicaSet=rs0"))
}

// Names that say that their value is secret, in the ways in which configuration,
// code, queries, flags and markup assign.
func (m *maker) assignment() {
	for range 120 {
		n := one(m, "password", "passwd", "db_password", "DB_PASSWORD", "client_secret", "clientSecret", "apiKey", "api_key", "API-KEY", "secret_key", "SECRET_KEY", "auth_token", "accessToken", "private_key", "smtpPassword", "passphrase", "webhook_secret", "encryption_key")
		c := one(m, "N=§\n", "N: §\n", "N = \"§\"\n", "N = '§'\n", `{"N":"§"}`, `{"a":1,"N": "§","b":[]}`, "const N = \"§\";\n", "export N=\"§\"\n", "-e N=§ --rm image\n", "  N: '§'\n  port: 5432\n",
			"https://example.com/cb?state=7&N=§&x=1", "<N>§</N>", "[db]\nN = §\nhost = x\n", "config.N = '§'\n", "N := \"§\"\n", "{\\\"N\\\":\\\"§\\\"}", "set N=§\r\n", "my N is: §", "tool --N=§ --verbose\n")
		m.carry("assigned", strings.ReplaceAll(c, "N", n), m.password())
	}
	for range 20 {
		m.carry("flag", one(m, "mysql -h db --password § main\n", "tool login --token § --verbose\n", "curl --user me:§ https://example.com\n", "sshpass -p § ssh host\n", "tool --api-key § run\n"), m.alnum(16))
	}
	for _, s := range codeThatOnlyMentions {
		m.leave("mention", s)
	}
	for range 6 {
		for _, v := range codeThatOnlyMentions {
			m.leave("mention", one(m, "", "\t", "  ", "// ", "x = 1\n", "- ", "> ")+v+one(m, "", "\n", "\nreturn\n", " # see above\n"))
		}
	}
}

// codeThatOnlyMentions speaks of secrets and holds none.
var codeThatOnlyMentions = []string{
	"Forgot your password? Ask for a link to set a new one.", "Your password must be at least 12 characters long.", "The password field is empty.", "password reset requested", "Do not share your password with anybody.",
	"the secret of good bread is time", "an open secret", "token count: 512", "max_tokens: 4096", "max_tokens=4096", "\"input_tokens\": 2095", "tokens per second: 87.5", "token_type: bearer", "tokenizer = load(path)", "the next token is a comma",
	"func (s *Store) Password(ctx context.Context) (string, error) {", "def reset_password(self, user):", "if password == \"\" {", "if (!password) return;", "password: str", "password: string;", "password: Optional[str] = None", "token: string | null",
	"password = getpass()", "password = getpass.getpass()", "password = os.environ[\"DB_PASSWORD\"]", "const password = process.env.DB_PASSWORD;", "password := os.Getenv(\"DB_PASSWORD\")", "api_key = config.get(\"api_key\")", "token = await getToken();",
	"PASSWORD=$DB_PASSWORD", "PASSWORD=${DB_PASSWORD}", "password: ${{ secrets.DB_PASSWORD }}", "password: {{ .Values.password }}", "password: null", "password: true", "\"password\": null", "secret: false", "password=", "password: \"\"",
	"password: [secret redacted]", "password: ********", "api_key: <your key here>", "required: [user, password]", "type Password struct {", "import { Secret } from \"./secret\";", "from secrets import choice", "secretsmanager:GetSecretValue",
	"SELECT password FROM users WHERE id = ?", "ALTER TABLE users ADD COLUMN password TEXT NOT NULL;", "kubectl get secrets -n prod", "password_hash_algorithm: argon2id", "password_min_length: 12", "secret_rotation_days = 30", "key: value", "primary_key: id", "foreign_key = user_id", "public_key: none",
	"author: someone", "passing: 12", "passed=40 failed=0", "compass: north", "the pass was closed by snow", "passport control is on the left", "keyboard: qwerty", "monkey=see", "turkey: 12 EUR", "cookie: chocolate chip, 12 pieces",
}

// Hashes of passwords: crypt(5)'s modular forms, the PHC string format.
func (m *maker) passwordHash() {
	b64 := "./" + alnum62
	m.tokens(13, map[string]func() string{
		"bcrypt":   func() string { return one(m, "$2a$", "$2b$", "$2y$") + one(m, "10", "12") + "$" + m.of(b64, 53) },
		"argon2":   func() string { return "$argon2id$v=19$m=65536,t=3,p=4$" + m.of(std64, 22) + "$" + m.of(std64, 43) },
		"sha512":   func() string { return "$6$" + m.of(b64, 16) + "$" + m.of(b64, 86) },
		"sha256":   func() string { return "$5$rounds=5000$" + m.of(b64, 16) + "$" + m.of(b64, 43) },
		"yescrypt": func() string { return "$y$j9T$" + m.of(b64, 22) + "$" + m.of(b64, 43) },
	})
	m.near(40, lit("$2 a piece"), lit("$6.50"), lit("$1 and $2"), lit("s/a/$1$2/"), lit("echo $5"), lit("$argon2id$"), lit("$2b$"), func() string { return fmt.Sprintf("$%d,%03d", m.r.IntN(90), m.r.IntN(999)) })
}
