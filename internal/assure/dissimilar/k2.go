package dissimilar

import (
	"fmt"
	"slices"
	"strings"
)

// agent is what events have said of one.
type agent struct {
	level, was string
	changed    stamp // when level was set
	paused     int64 // the leaf that paused it, -1 for none
	parent     string
}

// covers says whether what is granted covers what is required: by its own
// name, or by "scheme:*". To require "scheme:*" needs "scheme:*" itself.
func covers(granted map[string]bool, required string) bool {
	scheme, name, ok := strings.Cut(required, ":")
	if !ok || scheme == "" || name == "" {
		return false
	}
	return granted[required] || granted[scheme+":*"]
}

// missing is what is required and not granted. A record may have tens of
// thousands of both.
func missing(granted, required []string) []string {
	has := make(map[string]bool, len(granted))
	for _, p := range granted {
		has[p] = true
	}
	var out []string
	for _, p := range required {
		if !covers(has, p) {
			out = append(out, p)
		}
	}
	return out
}

// ladder is the order of the trust levels.
func ladder(level string) int {
	return slices.Index([]string{"baseline", "medium", "high", "highest"}, level)
}

// demands is the least trust level for a permission (spec 000, "Trust
// levels"): baseline reads, medium spawns, high proposes root intents, highest
// proposes estimators and writes the knowledge base.
func demands(permission string) int {
	scheme, name, _ := strings.Cut(strings.ToLower(permission), ":")
	first, _, _ := strings.Cut(name, ":")
	every := strings.Contains(first, "*")
	switch {
	case scheme == "spawn":
		return 1
	case scheme == "intent" && (first == "propose" || every):
		return 2
	case scheme == "estimator" && (first == "propose" || every):
		return 3
	case scheme == "kb" && first != "read":
		return 3
	}
	return 0
}

// beyond is the first permission that is above the level.
func beyond(level string, required []string) string {
	for _, p := range required {
		if demands(p) > ladder(level) {
			return p
		}
	}
	return ""
}

// permission judges K2 of a crossing that begins, or of an entry that never
// did.
func (v *Verifier) permission(r *record, begins bool) {
	lacks := missing(r.Granted, r.Required)
	over := ""
	if ladder(r.Level) >= 0 {
		over = beyond(r.Level, r.Required)
	}
	if begins || r.Authorized != nil && *r.Authorized {
		v.authorized(r, lacks, over)
		v.tokenTime(r, begins || r.Outcome == "replayed")
		v.levelKnown(r)
		v.sameRoles(r)
		return
	}
	o := r.opinion("K2")
	if o == nil {
		return
	}
	switch {
	case o.Kind == "PermissionError" && r.Required != nil:
		v.unauthorized(r, lacks, over)
	case o.Kind == "RevokedTokenError":
		v.saidRevoked(r)
	case o.Kind == "ExpiredTokenError" && r.TokenEnds != 0 && r.clock() < r.TokenEnds:
		v.badf(K2Token, "ExpiredTokenError", "the token was good until %s", r.TokenEnds)
	default:
		v.unknown(K2Token, "of a token that is refused the ledger holds only the reason")
	}
}

func (v *Verifier) authorized(r *record, lacks []string, over string) {
	if len(lacks) > 0 {
		v.badf(K2Subset, fmt.Sprintf("authorized, required %s, granted %s", texts(r.Required), texts(r.Granted)), "not granted: %s", texts(lacks))
	} else {
		v.good(K2Subset)
	}
	switch {
	case over != "":
		v.badf(K2Level, "authorized at trust level "+r.Level, "%s needs more", quote(over))
	case ladder(r.Level) >= 0:
		v.good(K2Level)
	case len(r.Required) > 0:
		v.unknown(K2Level, "the record has no trust level")
	}
}

func (v *Verifier) unauthorized(r *record, lacks []string, over string) {
	switch {
	case len(lacks) > 0 || over != "":
		v.good(K2Subset)
	case ladder(r.Level) < 0:
		v.unknown(K2Subset, "the record has no trust level")
	default:
		v.badf(K2Subset, fmt.Sprintf("not authorized, required %s", texts(r.Required)), "granted are %s, at trust level %s", texts(r.Granted), r.Level)
	}
}

func texts(l []string) string {
	if len(l) > 8 {
		l = append(slices.Clone(l[:8]), "...")
	}
	return quoteAll(l)
}

func quoteAll(l []string) string {
	out := make([]string, len(l))
	for i, s := range l {
		out[i] = quote(s)
	}
	return "[" + strings.Join(out, " ") + "]"
}

// second is the tolerance between a record's time and the clock that the gates
// asked: a record's time never goes back, and may lie ahead of it.
const second = stamp(1_000_000)

// setBack is why a record whose clock is behind its own time is not judged.
const setBack = "in time only by a clock that was set back"

// tokenTime judges that the token was in time; and, of what passed the last
// question in its own transaction, that no leaf before had revoked it.
func (v *Verifier) tokenTime(r *record, last bool) {
	if r.TokenEnds == 0 {
		v.unknown(K2Token, "the record has no token")
		return
	}
	at, revoked := v.t.gone[r.TokenID]
	switch {
	case r.clock() >= r.TokenEnds+second:
		v.badf(K2Token, "authorized at "+r.clock().String(), "the token had expired at %s", r.TokenEnds)
	case revoked && last:
		v.badf(K2Token, "authorized", "leaf %d had revoked the token", at)
	case r.Timestamp >= r.TokenEnds+second:
		v.unknown(K2Token, setBack)
	default:
		v.good(K2Token)
	}
}

func (v *Verifier) saidRevoked(r *record) {
	_, revoked := v.t.gone[r.TokenID]
	switch {
	case r.TokenID == "":
		v.unknown(K2Token, "the record has no token")
	case !revoked:
		v.bad(K2Token, "RevokedTokenError", "no leaf had revoked the token")
	default:
		v.good(K2Token)
	}
}

// levelKnown judges that the trust level is the one that events have given the
// agent. One that changed while the request was judged may be either.
func (v *Verifier) levelKnown(r *record) {
	a, known := v.t.agents.get(r.Agent)
	if ladder(r.Level) < 0 || len(r.Required) == 0 {
		return
	}
	switch {
	case !known || a.level == "":
		v.unknown(K2Level, "no leaf tells the agent's trust level")
	case r.Level == a.level, r.Level == a.was && a.changed+minute >= r.Timestamp:
	case a.was == "" && a.changed+minute >= r.Timestamp:
		v.unknown(K2Level, "the agent was first seen at this moment")
	default:
		v.badf(K2Level, "trust level "+r.Level, "the agent has %s", a.level)
	}
}

// sameRoles judges that one policy grants the same to the same roles (spec 003
// section 1.3, invariant 2). What it grants is not in the ledger.
func (v *Verifier) sameRoles(r *record) {
	h := digest(r.Policy + "\x00" + strings.Join(r.Roles, "\x00"))
	g := digest(strings.Join(r.Granted, "\x00"))
	was, known := v.t.roles.get([16]byte(h[:16]))
	switch {
	case known && was != [16]byte(g[:16]):
		v.badf(K2Roles, "roles "+texts(r.Roles)+" grant "+texts(r.Granted), "under the same policy they granted something else before")
	case known:
		v.good(K2Roles)
	default:
		v.t.roles.put([16]byte(h[:16]), [16]byte(g[:16]))
		v.unknown(K2Roles, "what a policy's roles grant is not in the ledger, only that they always grant the same")
	}
}
