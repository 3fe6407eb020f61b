package config

import (
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// minSecret is the least length of a webhook's shared secret in bytes: what an
// HMAC of SHA-256 is worth (D43).
const minSecret = 32

func (k *checker) webhook(w WebhookConfig, plain bool) {
	at := k.at("review.webhook")
	switch {
	case w == (WebhookConfig{}):
		return
	case w.URL == "":
		k.fail(at, "write url: https://host/path", "review.webhook has no url")
	default:
		k.address(at, "review.webhook.url", w.URL, plain)
	}
	switch {
	case (w.SecretFile == "") == (w.SecretEnv == ""):
		k.fail(at, "name a file or a variable with 32 random bytes, for example of `openssl rand -hex 32`", "review.webhook needs one of secret_file and secret_env")
	case w.SecretEnv != "" && !register.IsEnvName(w.SecretEnv):
		k.fail(at, "secret_env names a variable and holds no value", "review.webhook: that is no name of an environment variable")
	}
}

// ReadSecret reads the shared secret, at each use: one that was changed counts. The
// error names the place and never the value.
func (w *WebhookConfig) ReadSecret() (holdfast.Secret, error) {
	text, from := "", "the variable "+w.SecretEnv
	if w.SecretFile != "" {
		b, err := guard.ReadRegular(w.SecretFile, guard.MaxKeyFile, guard.CheckPrivate(w.SecretFile))
		if err != nil {
			why, hint := usage.Explain(guard.ExplainReadError(w.SecretFile, err))
			return holdfast.Secret{}, usage.HintErrorf(hint, "the webhook's secret: %s", why)
		}
		first, _, _ := strings.Cut(string(b), "\n")
		text, from = strings.TrimSuffix(first, "\r"), w.SecretFile
	} else if w.SecretEnv != "" {
		text = os.Getenv(w.SecretEnv)
	}
	if len(text) < minSecret {
		return holdfast.Secret{}, usage.HintErrorf("put 32 random bytes there, in one line", "the webhook's secret: %s holds fewer than %d bytes", from, minSecret)
	}
	return holdfast.NewSecret(text), nil
}
