package redact

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
