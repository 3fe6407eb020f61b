package redact

// rule is what found something. Higher numbers win where two overlap.
type rule uint8

const (
	ruleNone rule = iota
	rulePhone
	ruleSSN
	ruleIBAN
	rulePIIField
	ruleEmail
	ruleCard
	// From here on everything is a secret.
	ruleAssignment
	ruleField
	ruleBearer
	ruleBasic
	ruleURL
	ruleToken
	ruleJWT
	ruleGitHub
	ruleGitLab
	ruleSlack
	ruleStripe
	ruleModel
	ruleGoogle
	ruleNPM
	ruleAWSKeyID
	ruleAWSSecret
	rulePrivateKey
	ruleLiteral
	ruleFault
)

var ruleNames = [...]string{
	ruleNone:       "none",
	rulePhone:      "pii.phone",
	ruleSSN:        "pii.ssn",
	ruleIBAN:       "pii.iban",
	rulePIIField:   "pii.field",
	ruleEmail:      "email",
	ruleCard:       "card",
	ruleAssignment: "secret.assignment",
	ruleField:      "secret.field",
	ruleBearer:     "secret.bearer",
	ruleBasic:      "secret.basic",
	ruleURL:        "secret.url",
	ruleToken:      "secret.token",
	ruleJWT:        "secret.jwt",
	ruleGitHub:     "secret.github",
	ruleGitLab:     "secret.gitlab",
	ruleSlack:      "secret.slack",
	ruleStripe:     "secret.stripe",
	ruleModel:      "secret.model_key",
	ruleGoogle:     "secret.google",
	ruleNPM:        "secret.npm",
	ruleAWSKeyID:   "secret.aws_key_id",
	ruleAWSSecret:  "secret.aws_secret",
	rulePrivateKey: "secret.private_key",
	ruleLiteral:    "secret.literal",
	ruleFault:      "fault",
}

// appendMask appends the mask of what r found in text.
func appendMask(to []byte, r rule, text []byte) []byte {
	switch {
	case r >= ruleAssignment:
		return append(to, MaskSecret...)
	case r == ruleEmail:
		return append(to, MaskEmail...)
	case r == ruleCard:
		return appendLast4(append(to, MaskCard...), text)
	}
	return append(to, MaskPII...)
}

func appendLast4(to, text []byte) []byte {
	i, n := len(text), 0
	for i > 0 && n < 4 {
		if i--; class[text[i]]&isDigit != 0 {
			n++
		}
	}
	for _, c := range text[i:] {
		if class[c]&isDigit != 0 {
			to = append(to, c)
		}
	}
	return to
}

// maskLen returns the length of the mask that s begins with, or 0.
func maskLen(s []byte) int {
	if len(s) == 0 || s[0] != '[' && s[0] != '*' {
		return 0
	}
	for _, m := range [...]string{MaskSecret, MaskPII, MaskEmail} {
		if len(s) >= len(m) && string(s[:len(m)]) == m {
			return len(m)
		}
	}
	n := len(MaskCard)
	if len(s) >= n+4 && string(s[:n]) == MaskCard && digitsFrom(s, n, 5) == 4 {
		return n + 4
	}
	return 0
}
