package keyset

import (
	"crypto"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/MicahParks/jwkset"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/leaf/token"
)

// errPrivate says that a set shows a private key.
var errPrivate = errors.New("the set holds a private key, so whoever can read it can sign tokens: publish the public part only, and replace that key")

// key is a public key with the one algorithm that it is for.
type key struct {
	public crypto.PublicKey
	alg    string
}

// keys is one reading of a set. It is not changed after it was made.
type keys struct {
	byID    map[string]key // without the ambiguous ids
	all     []key          // every usable key once
	ignored []string
}

// find returns the key of an id; an empty id means the only key there is.
func (k *keys) find(kid string) (key, bool) {
	if kid == "" {
		if len(k.all) != 1 {
			return key{}, false
		}
		return k.all[0], true
	}
	found, ok := k.byID[kid]
	return found, ok
}

func (k *keys) ids() []string { return slices.Sorted(maps.Keys(k.byID)) }

// parse reads a key set. Keys of other kinds and for other uses are ignored
// with the reason, as RFC 7517 section 5 wants; a set in which none is left is
// a set without keys, which is how an issuer withdraws all of them.
func parse(doc []byte) (*keys, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := unmarshal(doc, &set); err != nil {
		return nil, err
	}
	if set.Keys == nil {
		return nil, errors.New(`there is no member "keys" with an array`)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("there are more than %d keys", maxKeys)
	}
	k := &keys{byID: map[string]key{}}
	ambiguous := map[string]bool{}
	for i, raw := range set.Keys {
		var m jwkset.JWKMarshal
		if err := json.Unmarshal(raw, &m); err != nil {
			k.ignore(i, "it is malformed")
			continue
		}
		if private(m) {
			return nil, errPrivate
		}
		one, why := usable(m)
		if why != "" {
			k.ignore(i, why)
			continue
		}
		k.add(i, m.KID, one, ambiguous)
	}
	return k, nil
}

// unmarshal reads JSON without duplicate names; its errors name a place and
// repeat nothing of the text.
func unmarshal(doc []byte, to any) error {
	err := json.Unmarshal(doc, to)
	var syn *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syn) && errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("a name occurs twice, at byte %d", syn.ByteOffset)
	case errors.As(err, &syn):
		return fmt.Errorf("not JSON, at byte %d", syn.ByteOffset)
	}
	return errors.New("not a JSON object of the expected form")
}

func (k *keys) ignore(i int, why string) {
	k.ignored = append(k.ignored, fmt.Sprintf("key %d: %s", i+1, why))
}

// add takes a usable key. Two different keys of one id make the id useless:
// guessing between them is how one key is taken for another.
func (k *keys) add(i int, kid string, one key, ambiguous map[string]bool) {
	same := func(o key) bool {
		return o.alg == one.alg && one.public.(interface{ Equal(crypto.PublicKey) bool }).Equal(o.public)
	}
	if !slices.ContainsFunc(k.all, same) {
		k.all = append(k.all, one)
	}
	if kid == "" {
		return
	}
	if ambiguous[kid] {
		k.ignore(i, "its id is that of another key")
		return
	}
	if old, ok := k.byID[kid]; ok && !same(old) {
		ambiguous[kid] = true
		delete(k.byID, kid)
		k.ignore(i, "its id is that of another key")
		return
	}
	k.byID[kid] = one
}

// private says whether a member of a private key is there.
func private(m jwkset.JWKMarshal) bool {
	return m.KTY != jwkset.KtyOct && (m.D != "" || m.P != "" || m.Q != "" || m.DP != "" || m.DQ != "" || m.QI != "" || len(m.OTH) > 0)
}

// usable returns the key, or why it cannot verify tokens.
func usable(m jwkset.JWKMarshal) (key, string) {
	switch {
	case m.KTY == jwkset.KtyOct:
		return key{}, "it is symmetric"
	case m.USE != "" && m.USE != jwkset.UseSig:
		return key{}, "it is not for signatures"
	case len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify):
		return key{}, "it is not for verifying"
	case len(m.KID) > 4*token.MaxName:
		return key{}, "its id is too long"
	case !shaped(m):
		return key{}, "it is not Ed25519, P-256 or RSA of a usable length"
	}
	// Certificates are neither fetched nor judged: the set itself is what
	// is trusted.
	m.X5U, m.X5C, m.X5T, m.X5TS256 = "", nil, "", ""
	j, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return key{}, "it is malformed"
	}
	alg, err := token.AlgorithmFor(j.Key())
	if err != nil {
		return key{}, err.Error()
	}
	if m.ALG != "" && m.ALG.String() != alg {
		return key{}, "its algorithm is not EdDSA, ES256 or RS256"
	}
	return key{j.Key(), alg}, ""
}

// shaped bounds the numbers of a key before the library computes with them: it
// panics when a coordinate is longer than its curve. RFC 7518 section 6.2.1.2
// and RFC 8037 section 2 fix 32 bytes, which are 43 letters.
func shaped(m jwkset.JWKMarshal) bool {
	fits := func(s string) bool { return len(strings.TrimRight(s, "=")) == 43 }
	switch {
	case m.KTY == jwkset.KtyOKP && m.CRV == jwkset.CrvEd25519:
		return fits(m.X)
	case m.KTY == jwkset.KtyEC && m.CRV == jwkset.CrvP256:
		return fits(m.X) && fits(m.Y)
	case m.KTY == jwkset.KtyRSA:
		return len(m.N) <= 2048 && len(m.E) <= 8
	}
	return false
}
