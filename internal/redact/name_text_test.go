package redact

import (
	"strings"
	"testing"
)

// namedSecrets are texts in which a name announces the value at §, by form.
var namedSecrets = map[string][]string{
	"label in bold": {
		"**Username:** kim\n**Password:** §\n", "**Password**: §\n", "- **API key:** `§`\n", "*Password:* §\n",
		"__Password:__ §\n", "<b>Password:</b> §<br>\n",
		"<strong>Password</strong>: §\n", "<strong>Password:</strong> <code>§</code>\n", "**Password:** **§**\n",
		"> **Token:** §\n", "1. **Secret**: \"§\"\n",
	},
	"string with a prefix": {
		"SECRET_KEY = b\"§\"\n", "api_key = f\"§\"\n", "password = r'§'\n", "auto password = u8\"§\";\n",
		"NSString *password = @\"§\";\n", "string password = $\"§\";\n",
		"password = rb'§'\n", "let password = r#\"§\"#;\n", "wchar_t *password = L\"§\";\n",
		"SET @password = N'§';\n", "const char *password = u\"§\";\n",
	},
	"declaration with a type": {
		"password: string = \"§\";\n", "var apiToken string = \"§\"\n", "password: str = \"§\"\n",
		"String password = \"§\";\n", "let password: &str = \"§\";\n",
		"pub const TOKEN: &'static str = \"§\";\n", "val password: String = \"§\"\n",
		"private readonly apiKey: string = '§';\n", "static let apiKey: String = \"§\"\n",
		"const char *db_password = \"§\";\n", "char password[] = \"§\";\n", "char password[32] = \"§\";\n",
		"Dim password As String = \"§\"\n",
		"password: Optional[str] = \"§\"\n", "apiToken: string | undefined = \"§\";\n",
		"final String dbPassword = \"§\";\n", "static const char* const kApiKey = \"§\";\n",
		"public string Password { get; set; } = \"§\";\n", "std::string password(\"§\");\n",
		"std::string password{\"§\"};\n", "secret: Final[str] = '§'\n",
	},
	"argument of a call": {
		"props.put(\"mail.password\", \"§\");\n", "req.Header.Set(\"X-Api-Key\", \"§\")\n",
		"user.setPassword(\"§\");\n", "process.env.JWT_SECRET || \"§\"\n",
		"const s = process.env.JWT_SECRET ?? '§';\n", "os.environ.get(\"SECRET\", \"§\")\n",
		"os.getenv('DB_PASSWORD', '§')\n", "ENV.fetch('SECRET_KEY_BASE', '§')\n",
		"env('DB_PASSWORD', '§')\n", "os.getenv(\"API_TOKEN\") or \"§\"\n",
		"System.getenv(\"API_TOKEN\") ?: \"§\"\n", "define('DB_PASSWORD', '§');\n",
		"headers.append(\"X-Auth-Token\", \"§\")\n", "builder.password(\"§\")\n",
		"conf.set(\"fs.s3a.secret.key\", \"§\")\n",
		"System.setProperty(\"javax.net.ssl.keyStorePassword\", \"§\");\n",
		"request.Headers.Add(\"X-Api-Key\", \"§\");\n", "client.withApiKey(\"§\")\n",
		"os.Setenv(\"API_TOKEN\", \"§\")\n", "getenv('SECRET') ?: '§'\n",
		"Password: SecretStr(\"§\")\n", "let password = String::from(\"§\");\n", "secret := []byte(\"§\")\n",
		"@Value(\"${db.password:§}\")\n", "password: ${DB_PASSWORD:-§}\n",
		"set_password(\"§\")\n", "localStorage.setItem(\"token\", \"§\")\n",
	},
	"value before its name": {
		"- value: §\n  name: DB_PASSWORD\n", "  value: \"§\"\n  name: \"API_TOKEN\"\n",
		"<add value=\"§\" key=\"DbPassword\"/>\n", "<input type=\"password\" value=\"§\">\n",
		"<input value=\"§\" name=\"password\">\n", "<property value=\"§\" name=\"password\"/>\n",
		"{value: '§', name: 'DB_PASSWORD'}\n", "<param value='§' name='apiKey'/>\n",
	},
	"name on a line above": {
		"- name: DB_PASSWORD\n  value: §\n",
		"variable \"db_password\" {\n  type    = string\n  default = \"§\"\n}\n", "Password:\n§\n",
		"Your password is:\n\n    §\n",
		"<property name=\"password\">\n  <value>§</value>\n</property>\n", "<password>\n  §\n</password>\n",
		"password: >-\n  §\n",
	},
	"table": {
		"| User | Password |\n|------|----------|\n| kim | § |\n| bo | § |\n", "| Password | § |\n",
		"| Name | Value |\n|---|---|\n| API key | `§` |\n",
		"user,password,role\nkim,§,admin\nbo,§,user\n", "id;username;password\n1;kim;§\n",
		"name\tpassword\nkim\t§\n", "username,password\n\"kim\",\"§\"\n",
		"<tr><th>Password</th><td>§</td></tr>\n", "<dt>Password</dt><dd>§</dd>\n", "<td>Password</td>\n<td>§</td>\n",
	},
	"markup": {
		"<password>§</password>\n", "<user name=\"kim\" password=\"§\"/>\n",
		"<input name=\"password\" type=\"hidden\" value=\"§\">\n", "<meta name=\"csrf-token\" content=\"§\">\n",
		"<entry key=\"db.password\">§</entry>\n", "<wsse:Password>§</wsse:Password>\n",
		"<Setting Name=\"Password\"><Value>§</Value></Setting>\n", "<param name=\"password\" value=\"§\" />\n",
	},
	"SQL": {
		"ALTER ROLE app WITH LOGIN PASSWORD '§';\n", "CREATE USER kim PASSWORD '§';\n",
		"CREATE USER kim IDENTIFIED BY '§';\n", "CREATE USER kim IDENTIFIED BY \"§\";\n",
		"CREATE USER 'kim'@'%' IDENTIFIED WITH mysql_native_password BY '§';\n",
		"SET PASSWORD FOR 'kim'@'%' = PASSWORD('§');\n", "CREATE LOGIN kim WITH PASSWORD = '§';\n",
		"CREATE LOGIN kim WITH PASSWORD = N'§';\n", "UPDATE users SET password = '§' WHERE id = 1;\n",
		"create role app login encrypted password '§'\n",
		"INSERT INTO users (name, password) VALUES ('kim', '§');\n",
	},
	"command line": {
		"openssl rsa -in k.pem -passin pass:§\n", "openssl pkcs12 -export -passout pass:§ -out x\n",
		"$p = ConvertTo-SecureString '§' -AsPlainText -Force\n",
		"ConvertTo-SecureString -String \"§\" -AsPlainText -Force\n", "tool --password § run\n",
		"tool --api-token=§\n", "mysql -u root -p§ db\n",
		"sshpass -p § ssh host\n", "Connect-Thing -Password '§' -User kim\n", "New-Thing -ApiKey §\n",
		"java -Ddb.password=§ -jar x.jar\n", "export DB_PASSWORD=§\n",
		"docker run -e API_TOKEN=§ x\n", "setx DB_PASSWORD \"§\"\n", "#define DB_PASSWORD \"§\"\n",
		"#define API_TOKEN \"§\"\n", "redis-cli -a § ping\n", "keytool -storepass § -list\n",
		"net use x: \\\\h\\s /user:kim /password:§\n", "wget --http-password=§ https://x.example\n",
	},
	"prose": {
		"my password is § and pass: § works too\n", "The password for the staging server is §.\n",
		"the token is §, keep it\n", "use password § to log in\n", "password was §\n",
		"Login with user kim and password §\n", "your new password: §\n", "Username: kim / Password: §\n",
		"the api key is §\n", "(password: §)\n", "pwd is §\n", "the secret is \"§\"\n",
		"log in with the password \"§\"\n", "password = § (changed today)\n", "PASS: §\n", "user: kim, pass: §\n",
		"pw: §\n",
	},
	"other languages": {
		"Das Passwort lautet: §\n", "mein Passwort ist §\n", "Kennwort: §\n", "contraseña: §\n",
		"la contraseña es §\n", "Contraseña = §\n", "mot de passe : §\n", "le mot de passe est §\n",
		"wachtwoord: §\n", "senha: §\n", "пароль: §\n", "Пароль: §\n", "密码: §\n", "密码：§\n", "パスワード: §\n",
		"パスワード：§\n", "hasło: §\n", "parola: §\n", "비밀번호: §\n",
	},
	"name with more": {
		"password1=§\n", "API_TOKEN_PROD=§\n", "apiTokenProd: \"§\",\n", "DB_PASSWORD_2: §\n",
		"secret_key_v2 = '§'\n", "MYSQL_ROOT_PASSWORD: §\n", "smtp.password.default=§\n",
	},
}

// TestNameAnnouncesSecretInText holds that each value is masked and nothing but it, and
// that a second redaction finds nothing.
func TestNameAnnouncesSecretInText(t *testing.T) {
	e := newEngine(t)
	const v = "Maple417xq!"
	for form, texts := range namedSecrets {
		for _, text := range texts {
			in := strings.ReplaceAll(text, "§", v)
			r := e.Text([]byte(in))
			if want := strings.ReplaceAll(text, "§", "[secret redacted]"); string(r.Out) != want {
				t.Errorf("%s: %q became %q", form, in, r.Out)
			} else if again := e.Text(r.Out); again.Found() {
				t.Errorf("%s: %q became %q", form, r.Out, again.Out)
			}
		}
	}
}

// TestServiceKeyIsMaskedWhereItIsRandom holds it for values that are random, not for those
// that are names.
func TestServiceKeyIsMaskedWhereItIsRandom(t *testing.T) {
	e := newEngine(t)
	for _, text := range []string{"TWITCHY_KEY=§\n", "deepgramKey: \"§\"\n", "const mapsKey = '§';\n",
		"SENTRY_KEY: §\n", "weather.key=§\n", "app_key: '§'\n"} {
		for value, masked := range map[string]bool{"q8ZtB2mWc0LrYv7nKd3XjH5pUs1EaG9f": true,
			"9f86d081884c7d659a2feaa0c55ad015": true, "name": false, "users/1": false, "2026-11-21": false} {
			in := strings.ReplaceAll(text, "§", value)
			if r := e.Text([]byte(in)); strings.Contains(string(r.Out), value) == masked {
				t.Errorf("%q became %q", in, r.Out)
			}
		}
	}
}

// ordinaryNames are texts that name secrets and hold none.
var ordinaryNames = []string{
	"List<Credential> results = repo.findAll(name);\nPromise<AccessToken> get() { return f(); }\n",
	"Map<String, Token> tokens = new HashMap<>();\n", "Optional<Password> p = find();\n",
	"fn get(&self) -> Option<Secret> { None }\n",
	"public Task<ApiKey> CreateAsync(string name) => repo.Get(name);\n", "func f[T Token](x T) {}\n",
	"vector<Token> v = lex(s);\n",
	"std::unique_ptr<Password> p = make();\n", "const x: Array<Secret> = list();\n",
	"val t: Flow<AccessToken> = flow { }\n",
	"self.token = token\n", "Client(api_key=api_key)\n", "Password: cfg.Password,\n",
	"this.password = password;\n", "token := r.Token\n", "let token = next_token;\n", "password = getpass()\n",
	"secret = request.headers['x']\n", "auth=auth,\n", "x.token = y.token\n", "@token = token\n",
	"$this->token = $token;\n", "$password = $request->input('password');\n", "{ token: token, secret }\n",
	"token: raw,\n", "api_key: &str,\n", "password := flag.String(\"password\", \"\", \"what to log in with\")\n",
	"creds.Password == other.Password\n", "if token != expected {\n",
	"token = tokens[0]\n", "secret = a + b\n", "apiKey: process.env.API_KEY!,\n",
	"password = data.get(\"password\")\n", "return Token{Secret: s}\n", "token ??= await login()\n",
	"def f(password: str, token=None):\n", "password: z.string().min(8),\n",
	"password = models.CharField(max_length=128)\n", "token = match.group(1)\n", "secret: Buffer,\n",
	"type Credentials = { password: string; token?: string }\n", "private String password;\n",
	"val token: Token? = null\n", "var passwords: List<String>\n", "password=password, token=token)\n",
	"permissions:\n  id-token: write\n  contents: read\n", "fetch(u, { credentials: 'include' })\n",
	"STATUS_NO_TOKEN = 0xC000007C\n", "class User: first_name: str | None = None\n",
	"#define ERROR_BAD_TOKEN 0x80070542L\n", "credentials: 'same-origin'\n", "auth: required\n",
	"middleware('auth:api')\n", "const TOKEN_TYPE = 'bearer'\n", "password: 'required|min:8',\n",
	"PASSWORD_FIELD = \"password\"\n", "TOKEN_HEADER = \"X-Auth-Token\"\n", "grant_type: 'password'\n",
	"{ type: 'password', name: 'password', label: 'Password' }\n", "input[name=password]\n",
	"password: \"%s\"\n", "f\"token={token}\"\n", "`Bearer ${token}`\n", "\"Authorization: Bearer \" + token\n",
	"'Authorization': `Bearer ${token}`,\n", "password=\"{{ password }}\"\n",
	"password: {{ .Values.password }}\n",
	"token: ${{ secrets.GITHUB_TOKEN }}\n", "PASSWORD=$DB_PASSWORD\n", "password: <your-password>\n",
	"api_key = \"YOUR_API_KEY\"\n", "password: changeme\n", "token: xxxxxxxx\n", "secret = \"***\"\n",
	"password: \"\"\n", "token: null\n", "secret: true\n", "SELECT * FROM users WHERE password = :password\n",
	"WHERE token = ?\n", "WHERE token = $1\n", "password = @password\n",
	"The password is required.\n", "the token is invalid\n", "the secret is out\n",
	"a password is not a policy\n", "the key is under the mat\n", "your password is too short, use 12 letters\n",
	"my password is not working\n", "the token is a comma\n", "pass: 12, fail: 3\n", "pass: ok\n",
	"PASS: TestTokens (0.01s)\n", "the pass is closed\n", "token is expired at 12:30\n",
	"| Field | Password |\n|---|---|\n| type | string |\n", "| password | string | required | The password |\n",
	"name,password_length\nkim,12\n", "| Token | Meaning |\n|---|---|\n| + | plus |\n",
	"<label for=\"password\">Password</label>\n",
	"<input type=\"password\" placeholder=\"Password\" value=\"\">\n", "<th>Password</th><th>Token</th>\n",
	"ALTER TABLE users ADD password TEXT;\n",
	"INSERT INTO users (name, password) VALUES (?, ?);\n", "docker login --password-stdin\n",
	"tool --password-file x\n", "use the --token flag\n", "set(\"password\", password)\n", "get(\"token\")\n",
	"t(\"password\", \"Password\")\n", "expect(\"token\", \"is required\")\n", "getPassword(\"user\")\n",
	"user.getToken(\"access\")\n", "findElement(\"password\")\n", "validate(\"password\", \"required\")\n",
	"password_hash_algorithm: argon2id\n", "next_page_token: CAUQAA\n", "pageToken=CAUQAA&x=1\n",
	"cancellationToken: source.Token\n", "pad_token = \"[PAD]\"\n", "max_tokens: 4096\n",
	"PWD=/home/kim/work\n", "OLDPWD=/srv\n", "TOKEN_FILE=/run/secrets/token\n", "token: /run/secrets/token\n",
	"secret: projects/acme/secrets/db\n", "auth_url: https://x.example/token\n",
}

// TestNameInCodeAndProseStays holds that none of ordinaryNames is changed, whatever is
// around it.
func TestNameInCodeAndProseStays(t *testing.T) {
	e := newEngine(t)
	for _, text := range ordinaryNames {
		for _, in := range []string{text, "    " + text, "func f() {\n" + text + "}\n", "x = 1\n" + text +
			"return y\n"} {
			if r := e.Text([]byte(in)); r.Found() {
				t.Errorf("%q became %q by %v", in, r.Out, r.Rules())
				break
			}
		}
	}
}
