package fieldname

import "strings"

// IsCredential says whether a header field is one by which a caller proves who
// it is, and whose name says so only to those who know it, or means nothing
// else: Header masks its value whole, and the way out takes it out of requests
// (D23). Case does not matter, and "_" is "-" (RFC 3875 section 4.1.18).
func IsCredential(name string) bool {
	switch strings.ReplaceAll(strings.ToLower(name), "_", "-") {
	case "authorization", "cookie", "cookie2", "dpop",
		"private-token", "job-token", "deploy-token", "circle-token",
		"ocp-apim-subscription-key", "x-functions-key", "x-rapidapi-key", "x-goog-api-key", "dd-application-key",
		"x-shopify-access-token", "x-goog-iam-authorization-token", "x-ms-authorization-auxiliary",
		"x-consul-token", "x-figma-token", "x-github-token", "x-gitlab-token", "x-vault-token",
		"x-registry-auth", "x-forwarded-client-cert", "x-hub-signature", "x-hub-signature-256":
		return true
	}
	return false
}
