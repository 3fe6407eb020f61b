package daemon

import (
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature/keyset"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
)

// verifier accepts the daemon's own tokens and those of the configured
// issuers, and nobody else's (D8).
func (d *Daemon) verifier() (*token.Verifier, error) {
	issuers := []token.Issuer{d.minter.Issuer()}
	for _, c := range d.loaded.Config.Identity.Issuers {
		keys, err := keyset.New(d.keysetOptions(c))
		if err != nil {
			return nil, err
		}
		d.keysets = append(d.keysets, keys)
		issuers = append(issuers, token.Issuer{Name: c.Name, Audience: c.Audience, Keys: keys,
			Algorithms: c.Algorithms, TenantFrom: c.TenantFrom, Tenants: c.Tenants})
	}
	return token.NewVerifier(issuers...)
}

func (d *Daemon) keysetOptions(c config.IssuerConfig) keyset.Options {
	o := keyset.Options{Warn: func(err error) { d.log.Warn("a key set could not be read", "issuer", c.Name, "err", err) }}
	switch {
	case c.JWKSFile != "" && filepath.IsAbs(c.JWKSFile):
		o.File = c.JWKSFile
	case c.JWKSFile != "":
		o.File = filepath.Join(filepath.Dir(d.loaded.Path), c.JWKSFile)
	case c.JWKSURL != "":
		o.URL = c.JWKSURL
	default:
		o.Issuer = c.Name
	}
	return o
}
