package fieldname

// place is where in a name a word has its meaning: "token" is a secret at
// the end, not in token_count.
type place uint8

const (
	anywhere place = iota
	atEnd
	alone
)

// word is a part of a name.
type word struct {
	text  string
	place place
	kind  Kind
}

// words are what names are made of, in lower case. Of two entries for one
// word the first that fits counts.
var words = [...]word{
	{"password", anywhere, Password}, {"passwords", anywhere, Password}, {"passwd", anywhere, Password},
	{"passphrase", anywhere, Password}, {"passcode", anywhere, Password}, {"passwort", anywhere, Password},
	{"kennwort", anywhere, Password}, {"contraseña", anywhere, Password}, {"contrasena", anywhere, Password},
	{"contraseÑa", anywhere, Password},
	{"motdepasse", anywhere, Password}, {"mdp", anywhere, Password}, {"wachtwoord", anywhere, Password},
	{"senha", anywhere, Password}, {"parola", anywhere, Password}, {"heslo", anywhere, Password},
	{"hasło", anywhere, Password}, {"salasana", anywhere, Password}, {"lösenord", anywhere, Password},
	{"passord", anywhere, Password}, {"adgangskode", anywhere, Password}, {"şifre", anywhere, Password},
	{"Şifre", anywhere, Password},
	{"пароль", anywhere, Password}, {"密码", anywhere, Password},
	{"nkey", atEnd, Key}, {"pwd", anywhere, Password}, {"pw", atEnd, Password},
	{"storepass", anywhere, Password}, {"keypass", anywhere, Password},
	{"dbpass", anywhere, Password}, {"userpass", anywhere, Password}, {"rootpass", anywhere, Password},
	{"sshpass", anywhere, Password}, {"ftppass", anywhere, Password},
	{"adminpass", anywhere, Password}, {"cvv", anywhere, Password}, {"cvc", anywhere, Password},
	{"cvv2", anywhere, Password},
	{"secret", anywhere, Secret}, {"secrets", anywhere, Secret}, {"apikey", anywhere, Secret},
	{"apikeys", anywhere, Secret},
	{"credential", anywhere, Secret}, {"credentials", anywhere, Secret}, {"privatekey", anywhere, Secret},
	{"accesskey", anywhere, Secret}, {"secretkey", anywhere, Secret}, {"accountkey", anywhere, Secret},
	{"authtoken", anywhere, Secret}, {"accesstoken", anywhere, Secret}, {"clientsecret", anywhere, Secret},
	{"sharedaccesskey", anywhere, Secret}, {"jwt", anywhere, Secret}, {"otp", anywhere, Secret},
	{"totp", anywhere, Secret},
	{"mnemonic", atEnd, Line}, {"seedphrase", atEnd, Line},
	{"authorization", atEnd, Line}, {"cookie", atEnd, Cookie}, {"cookies", atEnd, Cookie},
	{"token", atEnd, Secret}, {"bearer", atEnd, Secret}, {"connectionstring", atEnd, Secret},
	{"seed", atEnd, Key}, {"tokens", atEnd, Key}, {"verifier", atEnd, Key}, {"ticket", atEnd, Key},
	{"key", alone, Key}, {"oauth", anywhere, Likely}, {"oauth2", anywhere, Likely}, {"auth", anywhere, Likely},
	{"psk", atEnd, Likely}, {"pass", alone, Weak}, {"pass", atEnd, Password},
	{"ssn", anywhere, Number}, {"phone", atEnd, Number}, {"telephone", atEnd, Number}, {"mobile", atEnd, Number},
	{"fax", atEnd, Number}, {"iban", atEnd, Number}, {"msisdn", atEnd, Number}, {"itin", atEnd, Number},
	{"phonenumber", anywhere, Number}, {"mobilenumber", anywhere, Number}, {"socialsecuritynumber", anywhere, Number},
	{"dob", anywhere, PII}, {"surname", anywhere, Person}, {"firstname", anywhere, Person}, {"lastname", anywhere,
		Person},
	{"fullname", anywhere, Person}, {"birthdate", anywhere, PII}, {"birthday", anywhere, PII}, {"dateofbirth",
		anywhere, PII},
	{"passport", anywhere, PII}, {"geburtsdatum", anywhere, PII},
}

// endings are the same word where scripts write no blank between words, or
// where its capitals are not ASCII.
var endings = [...]string{
	"密码", "密碼", "口令", "パスワード", "비밀번호", "암호", "пароль", "Пароль", "ПАРОЛЬ", "סיסמה",
}

// about are last words of names whose value describes a secret:
// password_min_length, secretName, token_url.
var about = [...]string{
	"algorithm", "length", "name", "names", "policy", "count", "days", "rotation", "required", "enabled",
	"disabled", "expiry", "expires", "ttl",
	"timeout", "version", "type", "types", "format", "regex", "pattern", "strength", "attempts", "path", "paths",
	"dir", "url", "uri", "endpoint",
	"provider", "limit", "budget", "usage", "size", "min", "max", "id", "ids", "ref", "arn", "label", "title",
	"input", "description", "message",
	"error", "errors", "placeholder", "class", "style", "icon", "button", "form", "page", "view", "controller",
	"service", "manager", "providers",
	"factory", "handler", "store", "storage", "repository", "config", "settings", "options", "encoder",
	"validator", "validation", "checker",
	"verified", "valid", "changed", "at", "date", "time", "age", "expiration", "lifetime", "duration", "status",
	"state", "mode", "method",
	"methods", "scheme", "source", "location", "filename", "file", "files", "header", "headers", "param",
	"parameter", "prefix", "suffix", "rule", "rules", "table",
	"column", "kind", "scope", "scopes", "issuer", "audience", "host", "port", "server", "domain", "generator",
	"grant", "callback", "listener", "exception",
	"engine", "backend", "driver", "module", "plugin", "package", "namespace", "group", "role", "username",
	"email", "policies", "converter",
	"matching", "match", "advice", "sid", "empty", "encryption", "extension", "reset", "help",
	"visible", "visibility", "hidden", "complexity", "requirements", "reuse", "history", "resolver", "parser",
	"reader", "writer", "jar", "domains", "seats", "oid", "charset", "broker", "encoding", "bytes", "in",
}

// notBefore are words that make one of words something else: the token of a
// page, the pass of a renderer, the key of a table.
var notBefore = [...]struct {
	word   string
	before []string
}{
	{"token", []string{
		"page", "next", "continuation", "continue", "progress", "sync", "resume", "cancellation", "cancel",
		"pagination", "eos", "bos", "unk",
		"pad", "mask", "sep", "cls", "special", "stop", "start", "starting", "end", "prev", "previous", "change",
		"fencing", "idempotency", "cursor",
		"decoder", "image", "video", "audio", "prompt", "completion", "added", "separator", "marker", "scroll",
		"concurrency", "delta", "per", "key", "lookahead",
	}},
	{"pass", []string{
		"test", "first", "second", "two", "render", "depth", "color", "single", "multi", "compiler",
		"optimization", "shadow", "post", "boarding", "low", "high", "band",
		"by", "must", "should", "will",
	}},
	{"key", []string{
		"public", "primary", "foreign", "sort", "partition", "cache", "routing", "object", "s3", "row",
		"idempotency", "dedup", "hash", "range", "map", "storage",
		"store", "file", "translation", "message", "lookup", "index", "group", "unique", "natural", "composite",
		"event", "state", "query", "search", "redis",
		"lock", "react", "item", "node", "issue", "project", "document", "doc", "record", "image", "label",
		"dict", "trace", "tag", "config", "feature", "publishable",
		"site", "pub", "host", "verification", "verify", "entity", "parent", "child", "sequence", "data", "value",
		"the", "a", "is", "of", "my", "any", "each", "this",
	}},
}

// headWords begin names of what people read or of what is true: LABEL_PASSWORD, has_password.
var headWords = [...]string{
	"label", "lbl", "title", "msg", "show", "hide", "mandatory", "invalid", "missing", "is", "has", "no",
	"nopasswd", "err",
}

// qualifiers are last words that say for what a secret is, not what it is.
var qualifiers = [...]string{
	"prod", "production", "dev", "development", "staging", "stage", "test", "testing", "live", "sandbox", "local",
	"qa", "uat", "old", "new",
	"backup", "default", "primary", "secondary", "value", "string", "text", "b64", "base64", "hex", "raw",
	"plain", "v1", "v2", "v3", "eu", "us", "confirm", "confirmation",
}

// pair is a word that has its meaning after one of others.
type pair struct {
	second string
	first  []string
	kind   Kind
}

// pairs are two words that follow each other.
var pairs = [...]pair{
	{"key", keyWords[:], Secret},
	{"keys", keyWords[:], Secret},
	{"code", []string{"security", "recovery", "verification", "backup", "authorization"}, Secret},
	{"string", []string{"connection"}, Secret}, {"verifier", []string{"oauth", "code", "pkce"}, Secret},
	{"phrase", []string{"seed", "recovery", "mnemonic", "backup"}, Line},
	{"words", []string{"seed", "recovery"}, Line},
	{"passe", []string{"de", "palavra"}, Password},
	{"secreta", []string{"clave", "palabra"}, Password},
	{"name", []string{"first", "last", "full", "given", "family", "middle", "maiden"}, Person},
	{"date", []string{"birth"}, PII},
	{"birth", []string{"birth", "of"}, PII},
	{"address", []string{"home", "street", "postal"}, PII},
	{"license", []string{"driver", "drivers"}, PII},
	{"licence", []string{"driver", "drivers"}, PII},
	{"id", []string{"national", "tax"}, PII},
	{"number", []string{"phone", "mobile", "telephone", "fax", "social"}, Number},
	{"security", []string{"social"}, Number},
}

var keyWords = [...]string{
	"api", "access", "secret", "private", "signing", "encryption", "master", "account", "shared", "ssh",
	"license", "auth", "session",
	"subscription", "hmac", "consumer", "deploy", "client", "oauth", "cipher", "priv", "service", "db", "database",
}
