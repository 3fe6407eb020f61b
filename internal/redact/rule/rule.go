// Package rule has the rules of redaction. A rule names what a finding is, such as secret.github;
// its class is secret or personal.
package rule

// Rule names what a finding is. Where two findings overlap the higher rule wins.
type Rule uint8

const (
	None Rule = iota
	// What an external detector found: names, addresses, and what else it looks for.
	DetectorOther
	DetectorAddress
	DetectorName
	Phone
	SSN
	IBAN
	Bank
	Health
	National
	Tax
	Vehicle
	Wallet
	Birth
	PIIField
	Email
	Card
	// From here on everything is a secret.
	Assignment
	Field
	Bearer
	Basic
	URL
	Connection
	Hash
	Token
	Webhook
	JWT
	GitHub
	GitLab
	Slack
	Stripe
	Model
	Google
	NPM
	Azure
	AWSKeyID
	AWSSecret
	AWSSession
	PrivateKey
	Literal
	Fault
)

// Names are the names of the rules in records and documentation.
var Names = [...]string{
	None:            "none",
	DetectorOther:   "detector.other",
	DetectorAddress: "detector.address",
	DetectorName:    "detector.name",
	Phone:           "pii.phone",
	SSN:             "pii.ssn",
	IBAN:            "pii.iban",
	Bank:            "pii.bank",
	Health:          "pii.health",
	National:        "pii.national_id",
	Tax:             "pii.tax_id",
	Vehicle:         "pii.vehicle",
	Wallet:          "pii.wallet",
	Birth:           "pii.birth",
	PIIField:        "pii.field",
	Email:           "email",
	Card:            "card",
	Assignment:      "secret.assignment",
	Field:           "secret.field",
	Bearer:          "secret.bearer",
	Basic:           "secret.basic",
	URL:             "secret.url",
	Connection:      "secret.connection",
	Hash:            "secret.password_hash",
	Token:           "secret.token",
	Webhook:         "secret.webhook",
	JWT:             "secret.jwt",
	GitHub:          "secret.github",
	GitLab:          "secret.gitlab",
	Slack:           "secret.slack",
	Stripe:          "secret.stripe",
	Model:           "secret.model_key",
	Google:          "secret.google",
	NPM:             "secret.npm",
	Azure:           "secret.azure",
	AWSKeyID:        "secret.aws_key_id",
	AWSSecret:       "secret.aws_secret",
	AWSSession:      "secret.aws_session",
	PrivateKey:      "secret.private_key",
	Literal:         "secret.literal",
	Fault:           "fault",
}

// IsSecret reports whether what r finds is a secret, not personal data.
func (r Rule) IsSecret() bool { return r >= Assignment }

// Class is what is searched for: secrets, personal data or, as the zero value, both.
type Class uint8

// The classes.
const (
	AnyClass Class = iota
	OnlySecrets
	OnlyPersonal
)

// Has reports whether what r finds is searched for.
func (c Class) Has(r Rule) bool { return c.Seeks(r.IsSecret()) }

// Seeks reports whether secrets are searched for; with false, whether personal data is.
func (c Class) Seeks(secret bool) bool { return c == AnyClass || secret == (c == OnlySecrets) }
