package redact

// Every detector decides within maxBehind bytes behind its trigger and maxAhead
// ahead of it; a span may go on over a run of one class, to its line's end, a
// closing quote or an armour's end. Words for a number are looked for in 40
// bytes before it (reachNear), a flag's command in 128 (reachCommand), the rest
// of a connection string in 160 and six settings (reachSettings), a .netrc's
// machine in 200 (reachMachine); a block of YAML is read 4096 bytes far
// (maxBlock), a webhook's path and a hash in the PHC form 512, an authority 256,
// what follows a token's prefix 128 (maxFollow). A mask begins in the word of
// its trigger, but for what leads() knows.

// rule is what found something. Higher numbers win where two overlap.
type rule uint8

const (
	ruleNone rule = iota
	// Guesses never touch what is certain.
	ruleGuessName
	ruleGuessAddress
	ruleGuessPhone
	rulePhone
	ruleSSN
	ruleIBAN
	ruleBank
	ruleHealth
	ruleNational
	ruleTax
	ruleVehicle
	ruleWallet
	ruleBirth
	rulePIIField
	ruleEmail
	ruleCard
	// From here on everything is a secret.
	ruleGuessSecret
	ruleAssignment
	ruleField
	ruleBearer
	ruleBasic
	ruleURL
	ruleConnection
	ruleHash
	ruleToken
	ruleWebhook
	ruleJWT
	ruleGitHub
	ruleGitLab
	ruleSlack
	ruleStripe
	ruleModel
	ruleGoogle
	ruleNPM
	ruleAzure
	ruleAWSKeyID
	ruleAWSSecret
	ruleAWSSession
	rulePrivateKey
	ruleLiteral
	ruleFault
)

var ruleNames = [...]string{
	ruleNone:         "none",
	ruleGuessName:    "guess.name",
	ruleGuessAddress: "guess.address",
	ruleGuessPhone:   "guess.phone",
	rulePhone:        "pii.phone",
	ruleSSN:          "pii.ssn",
	ruleIBAN:         "pii.iban",
	ruleBank:         "pii.bank",
	ruleHealth:       "pii.health",
	ruleNational:     "pii.national_id",
	ruleTax:          "pii.tax_id",
	ruleVehicle:      "pii.vehicle",
	ruleWallet:       "pii.wallet",
	ruleBirth:        "pii.birth",
	rulePIIField:     "pii.field",
	ruleEmail:        "email",
	ruleCard:         "card",
	ruleGuessSecret:  "guess.secret",
	ruleAssignment:   "secret.assignment",
	ruleField:        "secret.field",
	ruleBearer:       "secret.bearer",
	ruleBasic:        "secret.basic",
	ruleURL:          "secret.url",
	ruleConnection:   "secret.connection",
	ruleHash:         "secret.password_hash",
	ruleToken:        "secret.token",
	ruleWebhook:      "secret.webhook",
	ruleJWT:          "secret.jwt",
	ruleGitHub:       "secret.github",
	ruleGitLab:       "secret.gitlab",
	ruleSlack:        "secret.slack",
	ruleStripe:       "secret.stripe",
	ruleModel:        "secret.model_key",
	ruleGoogle:       "secret.google",
	ruleNPM:          "secret.npm",
	ruleAzure:        "secret.azure",
	ruleAWSKeyID:     "secret.aws_key_id",
	ruleAWSSecret:    "secret.aws_secret",
	ruleAWSSession:   "secret.aws_session",
	rulePrivateKey:   "secret.private_key",
	ruleLiteral:      "secret.literal",
	ruleFault:        "fault",
}

// secret says whether what r finds is a secret rather than personal.
func (r rule) secret() bool { return r >= ruleGuessSecret }
