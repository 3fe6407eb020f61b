package redact

import (
	"strings"
	"testing"
)

// formsWithSecrets hold Maple417, hunter2, swordfish or digits that a name announces.
var formsWithSecrets = []string{
	"PASSWORD=hunter2", "PASSWORD=swordfish", "DB_PASSWORD=swordfish\nDB_HOST=localhost", "password: swordfish",
	"password: hunter2", "spring.datasource.password=swordfish", "password = swordfish",
	"[db]\nuser = kim\npassword = swordfish\nport = 5432", "export API_TOKEN=hunter2", "export PASSWORD=\"swordfish\"",
	"services:\n  db:\n    environment:\n      POSTGRES_PASSWORD: swordfish\n      POSTGRES_USER: kim",
	"    environment:\n      - POSTGRES_PASSWORD=swordfish", "password: \"swordfish\"", "password: 'swordfish'  # dev",
	"password = \"swordfish\"", "db_password = \"swordfish\"\n", "const password = \"swordfish\";",
	"Server=x;User Id=sa;Password=swordfish;Database=y", "postgres://kim:swordfish@db/x",
	"jdbc:mysql://h/db?user=kim&password=swordfish", "//registry.npmjs.org/:_authToken=Maple417xq",
	"machine h login kim password swordfish", "[default]\naws_secret_access_key = Maple417xq/abcDEF",
	"connection.password=Maple417xq\n", "  password: Maple417xq,\n  user: kim", "{password: Maple417xq, user: kim}",
	"password=Maple417xq user=kim host=db", "2026-11-27 INFO login user=kim password=Maple417xq ok",
	"time=1 level=info msg=\"x\" token=Maple417xq", "login failed for kim (password: swordfish)",
	"--password=swordfish", "mysqldump --password=swordfish db", "-e MYSQL_ROOT_PASSWORD=swordfish mysql",
	"<Password>swordfish</Password>", "{\"password\":\"swordfish\"}",
	"{\"user\":{\"password\":\"swordfish\",\"token\":\"hunter2\"}}", "Password: swordfish",
	"The admin password is: swordfish", "password is hunter2", "Admin credentials: admin / Maple417xq",
	"{\"credentials\":{\"username\":\"kim\",\"password\":\"swordfish\"}}", "Basic auth: kim:Maple417xq",
	"token=Maple417xq&x=1", "?api_key=Maple417xq", "X-Api-Key: Maple417xq", "Authorization: Token Maple417xq",
	"authorization: Maple417xq", "curl -H \"X-Auth-Token: Maple417xq\" https://x", "api.key: Maple417xq",
	"apikey=Maple417xq", "\"apiKey\" : \"Maple417xq\"", "'secret' => 'Maple417xq',", ":password => \"Maple417xq\"",
	":password \"Maple417xq\"", "password <- \"Maple417xq\"", "password ||= \"Maple417xq\"", "password ?= Maple417xq",
	"PASSWORD := Maple417xq", "local password = \"Maple417xq\"", "my $password = 'Maple417xq';",
	"$env:DB_PASSWORD = \"Maple417xq\"", "%env DB_PASSWORD=Maple417xq", "os.environ[\"DB_PASSWORD\"] = \"Maple417xq\"",
	"process.env.DB_PASSWORD = \"Maple417xq\"", "config.set('db.password', 'Maple417xq')",
	"if password == \"Maple417xq\":", "assert user.password != 'Maple417xq'",
	"@WithMockUser(password = \"Maple417xq\")", "new Login { User = \"kim\", Password = \"Maple417xq\" }",
	"login(user=\"kim\", password=\"Maple417xq\")", "Login(user: \"kim\", password: \"Maple417xq\")",
	"kubectl create secret generic x --from-literal=password=Maple417xq", "echo \"password: Maple417xq\" > f",
	"printf 'machine h\nlogin k\npassword Maple417xq\n'", "// password: Maple417xq", "# password = Maple417xq",
	"/* token: Maple417xq */", "cat <<EOF > .env\nDB_PASSWORD=swordfish\nEOF", "password: |\n  Maple417xq\n",
	"passwords:\n  - Maple417xq\n  - hunter2", "pin: 1234 password: 987654", "password — Maple417xq",
	"password -> Maple417xq", "Your one-time password is 417823.", "your passcode: Maple417",
	"das passwort ist: hunter2", "contraseña=hunter2", "clave secreta: hunter2",
	"{\"Contraseña\":\"hunter2\",\"пароль\":\"Maple417\"}", "<input name=\"user[password]\" value=\"Maple417xq\">",
	"<input value=\"Maple417xq\" id=\"password\" type=\"text\">", "<secret name=\"x\">Maple417xq</secret>",
	"<appSettings><add key=\"SmtpPassword\" value=\"Maple417xq\" /></appSettings>",
	"<bean><property name=\"password\"><value>Maple417xq</value></property></bean>",
	"name,email,password\nkim,k@x.io,Maple417xq", "\"user\",\"password\"\n\"kim\",\"Maple417xq\"",
	"| Login | Passwort |\n|:--|:--|\n| kim | `Maple417xq` |", "| **Password** | Maple417xq |",
	"CREATE USER kim WITH PASSWORD 'swordfish';", "ALTER USER kim IDENTIFIED BY swordfish;",
	"CREATE USER kim IDENTIFIED BY \"swordfish\";", "GRANT ALL ON x.* TO 'k'@'h' IDENTIFIED BY 'swordfish';",
	"CREATE USER MAPPING FOR kim SERVER s OPTIONS (user 'kim', password 'swordfish');",
	"INSERT INTO users(login,password) VALUES('kim','swordfish')",
	"COPY t FROM 's3://x' CREDENTIALS 'aws_access_key_id=AKIA;aws_secret_access_key=Maple417xq'",
	"ldapsearch -D cn=x -w Maple417xq", "openssl enc -aes-256-cbc -k Maple417xq", "gpg --passphrase Maple417xq -c f",
	"7z x -pMaple417xq f.7z", "psql \"host=db password=swordfish\"", "PGPASSWORD=swordfish psql -h db",
	"sshpass -e; SSHPASS=swordfish", "az login --service-principal -u x -p Maple417xq --tenant t",
	"docker login -u kim -p Maple417xq", "git clone https://kim:swordfish@h/x",
	"rclone config create x password=Maple417xq",
}

// formsWithout name secrets in code, settings, pages and prose, and hold none.
var formsWithout = []string{
	"password: swordfish;", "    token: string\n    secret: string", "token: Token", "  password: PasswordSchema,",
	"  credentials: Credentials", "api_key: Optional[str] = None", "access_token: Mapped[str] = mapped_column()",
	"    token = forms.CharField()", "password_hash = bcrypt.hashpw(password, salt)",
	"const [password, setPassword] = useState('')",
	"<input type=\"password\" value={password} onChange={e => setPassword(e.target.value)} />",
	"<TextField label=\"Password\" type=\"password\" />", "v-model=\"password\"", ":token=\"token\"",
	"[password]=\"form.password\"", "(token)=\"onToken($event)\"", "placeholder=\"Enter your password\"",
	"\"password\": \"Password\",", "\"forgotPassword\": \"Forgot your password?\",",
	"\"invalid_token\": \"The token is invalid or has expired\",", "password: Mot de passe",
	"  password: Password\n  token: Token", "throw new Error(\"password is required\")",
	"raise ValueError(\"invalid token\")", "logger.info(\"token: %s\", token)", "fmt.Printf(\"password=%s\n\", p)",
	"console.log(`token=${token}`)", "print(f\"secret: {secret}\")", "\"SELECT password FROM users WHERE token = %s\"",
	"res.status(401).json({ error: \"invalid token\" })", "return { token, secret }", "token = tokenizer.next()",
	"let token: u8 = 5;", "for token in tokens:", "while (token = next()) {", "case TOKEN_EOF: return null;",
	"token == '('", "if (token === \")\") {", "token.type == \"identifier\"", "expect(token).toBe(\"abc\")",
	"{\"type\":\"password\",\"name\":\"password\"}", "input[type=password]", "$('#password').val()",
	".password { color: red }", "#password-field { width: 12px; }", "password-reset: true",
	"password_reset_token_expires_in: 3600", "secret_name: my-app-secrets", "secretName: tls-secret",
	"secretKeyRef:\n  name: db\n  key: password", "imagePullSecrets:\n  - name: regcred", "secrets: inherit",
	"secrets:\n  - db_password\n  - api_key", "token: ${{ secrets.NPM_TOKEN }}", "password: !Ref DbPassword",
	"Password: !Sub \"{{resolve:secretsmanager:x}}\"", "password = var.db_password",
	"password = random_password.db.result", "password = \"${var.password}\"", "password: \"{{ vault_db_password }}\"",
	"password: <%= ENV[\"DB_PASSWORD\"] %>", "password=$(cat /run/secrets/db)", "PASSWORD=\"$1\"", "TOKEN=`cat token`",
	"export PASSWORD", "read -s PASSWORD", "unset TOKEN", "API_KEY=", "API_KEY=\"\"", "API_KEY=your_api_key_here",
	"API_KEY=<your api key>", "API_KEY=xxxxxxxxxxxx", "SECRET=changeme", "TOKEN=...", "password: (hidden)",
	"password: [hidden]", "password: ********", "Password: ••••••••", "token: REDACTED",
	"# Set your password in the config file", "Set the password with `tool passwd`.",
	"The token is sent in the header.", "Each token is 32 bytes long.",
	"The password must contain 8 characters and a number.", "The secret is that we use sha256.",
	"Passwords are hashed with bcrypt.", "The API key is required for all requests.", "the password is base64 encoded",
	"token is OAuth2 based", "the token is valid for 3600s", "password is utf8 text", "Reset password for user kim1234",
	"password protected, see section 4.2", "the password policy v2.1 applies", "2 tokens per second, token bucket",
	"pass: 100%, fail: 0", "pass the salt", "PASS  src/x.test.js", "tests pass: 12 of 12", "by pass: road",
	"auth: none", "auth: oauth2", "auth: Bearer", "auth=basic", "Authorization: Bearer <token>",
	"Authorization: Bearer $TOKEN", "\"Authorization\": \"Bearer \" + token", "Authorization: required", "Cookie: none",
	"cookies: enabled", "cookie: { secure: true }", "set-cookie: <cookie>",
	"key: value\nsort_key: abc123def456ghi789jkl012", "public_key: q8ZtB2mWc0LrYv7nKd3XjH5pUs1EaG9f",
	"cache-key: node-9f86d081884c7d659a2feaa0c55ad015", "idempotency_key: 9f86d081884c7d659a2feaa0c55ad015",
	"partition_key: 550e8400-e29b-41d4-a716-446655440000", "GROUP_KEY=team/alpha", "full_name: kubernetes/kubernetes",
	"\"full_name\": \"octocat/Hello-World\",", "first_name: string", "last_name = models.CharField(max_length=100)",
	"firstName?: string;", "surname VARCHAR(50)", "passport: passport-local", "passport.use(new Strategy())",
	"import passport from 'passport'", "dob: date",
	"{\"title\":\"x\",\"properties\":{\"api_key\":{\"title\":\"Api Key\",\"type\":\"string\"}},\"required\":[\"api_key\"]}",
	"{\"openapi\":\"3.1.0\",\"components\":{\"securitySchemes\":{\"apiKey\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-Api-Key\"}}}}",
	"{\"securityDefinitions\":{\"token\":{\"type\":\"oauth2\",\"flow\":\"password\",\"tokenUrl\":\"https://x/token\",\"scopes\":{\"read\":\"r\"}}}}",
	"{\"usage\":{\"prompt_tokens\":12,\"completion_tokens_details\":{\"reasoning_tokens\":3}}}",
	"{\"tokens\":[\"Hello\",\" world\"],\"token_logprobs\":[-0.1,-0.2]}",
	"{\"nextToken\":null,\"token\":\"\",\"password\":null}",
	"{\"cursor\":\"abc123\",\"continuationToken\":\"a1b2c3d4\",\"sync_token\":\"s123_456\"}",
	"{\"event\":\"token\",\"data\":{\"token\":\"Hello\",\"logprob\":-0.2}}",
	"{\"name\":\"get_token\",\"description\":\"Gets the token\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}",
	"{\"role\":\"user\",\"content\":\"What is a good password policy?\"}",
	"{\"key\":\"password\",\"label\":\"Password\",\"value\":\"\"}",
	"{\"id\":\"password\",\"type\":\"string\",\"value\":null}",
}

// TestSettingsAndLinesAreTold holds that formsWithSecrets are masked, and formsWithout kept.
func TestSettingsAndLinesAreTold(t *testing.T) {
	e := newEngine(t)
	for _, text := range formsWithSecrets {
		r, err := e.JSON([]byte(text))
		out := string(r.Out)
		if err != nil || !r.Found() || strings.Contains(out, "Maple417") || strings.Contains(out, "hunter2") ||
			strings.Contains(out, "swordfish") {
			t.Errorf("%q became %q, %v", text, out, err)
		} else if again, _ := e.JSON(r.Out); again.Found() {
			t.Errorf("%q became %q", out, again.Out)
		}
	}
	for _, text := range formsWithout {
		if r, err := e.JSON([]byte(text)); err != nil || r.Found() {
			t.Errorf("%q became %q, %v", text, r.Out, err)
		}
	}
}

// A value that only stands for one is kept: what tests and guides write, labels in other
// languages, one sign again and again; a value of the same name beside it is masked.
func TestValuesOfExamplesStay(t *testing.T) {
	e := newEngine(t)
	for _, v := range []string{"test", "dummy", "foobar", "some-password", "test-access-token", "put-your-key-here",
		"12345678", "yyyyyyyy", "Пароль", "Új jelszó", "現在輸入的密碼不正確。", "Mot de passe non validé."} {
		for _, form := range []string{`{"password": "§"}`, `password = "§"`, `client_secret: '§'`} {
			if r := e.Text([]byte(strings.ReplaceAll(form, "§", v))); r.Found() {
				t.Errorf("Text(%s of %s) = %s", form, v, r.Out)
			}
		}
	}
	for _, url := range []string{"mysql://user:pass@h.example/db", "https://username:password@h.example", "http://a:test@h.example"} {
		if r := e.Text([]byte(url)); r.Found() {
			t.Errorf("Text(%s) = %s", url, r.Out)
		}
	}
	for _, text := range []string{`{"password": "Tést417!"}`, `password = "test-Maple417"`, "mysql://user:Maple417@h.example/db"} {
		if r := e.Text([]byte(text)); !r.Found() {
			t.Errorf("Text keeps %s", text)
		}
	}
}

// Keys of a service: one word before "key", within braces, with a dot.
func TestKeysOfServicesAreMasked(t *testing.T) {
	e := newEngine(t)
	for _, text := range []string{"[DEBUG] Using Key=§", "ollama key = §", "twitchy_key: §", "<secret>{AQAAABAA §}</secret>",
		"<secret>{twitchy AQAAABAA §}</secret>"} {
		for _, v := range []string{"wdvnousa87acfxp9ioasrea4tbeasrfa", "e56714bd7c1146e4b4801244bc2bc67a.3GAswjZGZ5YY6Qdg"} {
			if r := e.Text([]byte(strings.ReplaceAll(text, "§", v))); strings.Contains(string(r.Out), v) {
				t.Errorf("Text keeps %s", r.Out)
			}
		}
	}
	for _, text := range []string{"the primary key = e56714bd7c1146e4b4801244bc2bc67a", "<secret>{name2}</secret>"} {
		if r := e.Text([]byte(text)); r.Found() {
			t.Errorf("Text(%s) = %s", text, r.Out)
		}
	}
}
