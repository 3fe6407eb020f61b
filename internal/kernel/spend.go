package kernel

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

// What agents have spent on models is summed by agent, intent and model as each
// entry is written, in its transaction: the sums are those of the ledger's entries,
// whatever ends the process. A day's sums stand in one of seven places, a month's in
// one of twelve, so that they take no more room as time goes by.

// maxSpendRows is how many agents, intents and models one period tells apart; what
// comes beyond is summed as "other". Beyond half of it those within an agent are
// summed as that agent: their names are a host's words.
const maxSpendRows = 1000

// otherRow stands for whom there was no room.
const otherRow = "other"

// Spend is what was spent on one model by one agent for one intent in a period.
type Spend struct {
	Tenant string `json:"tenant_id"`
	// Agent is who asked. Owner is the agent within which that is, empty of one that
	// has tokens of its own: what an agent has spent is the sum of its rows and of
	// those that it owns.
	Agent  string `json:"agent"`
	Owner  string `json:"owner,omitempty"`
	Intent string `json:"intent,omitempty"`
	Model  string `json:"model"`
	// Calls are those that began and were charged. Estimated is how many of them
	// were charged by another measure than the provider's own word.
	Calls     int64 `json:"calls"`
	Estimated int64 `json:"estimated,omitempty"`
	// The tokens of a cache are no part of Input.
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	Output     int64 `json:"output_tokens"`
	// Micro is in millionths of a dollar. Unpriced is how many calls had no price.
	Micro    int64 `json:"money_micro"`
	Unpriced int64 `json:"unpriced,omitempty"`
}

// spendRow is a row as it is kept: of which period it is.
type spendRow struct {
	Period string `json:"period"`
	Spend
}

// spendIndex is the rows of a period, by their names.
type spendIndex struct {
	Period string   `json:"period"`
	Rows   []string `json:"rows"`
}

// spendPeriods are the periods that a time belongs to, with their places.
func spendPeriods(at time.Time) [2][2]string {
	at = at.UTC()
	return [2][2]string{
		{at.Format("2006-01-02"), "day" + string('0'+rune(at.Weekday()))},
		{at.Format("2006-01"), "month" + at.Format("01")},
	}
}

func spendName(tenant, place, row string) string {
	sum := sha256.Sum256([]byte(tenant))
	return "spend/" + hex.EncodeToString(sum[:8]) + "/" + place + "/" + row
}

// spend adds what an entry was charged to the sums.
func spend(tx Tx, e *ledger.Entry) error {
	m := e.Model
	if m == nil || e.Unstarted || m.How == "unstarted" {
		return nil
	}
	one := Spend{Tenant: e.TenantID, Agent: e.Agent, Owner: e.Owner, Intent: e.Intent, Model: m.Model, Calls: 1, Input: m.Input, CacheRead: m.CacheRead,
		CacheWrite: addCapped(m.CacheWrite, m.CacheWriteLong), Output: m.Output, Micro: m.Micro}
	if m.How != holdfast.UsageComplete {
		one.Estimated = 1
	}
	if m.Prices == "" {
		one.Unpriced = 1
	}
	for _, p := range spendPeriods(e.CreatedAt) {
		if err := one.add(tx, p[0], p[1]); err != nil {
			return err
		}
	}
	return nil
}

// add adds s to its row of the period.
func (s Spend) add(tx Tx, period, place string) error {
	row, key, err := s.row(tx, period, place)
	if err != nil {
		return err
	}
	row.plus(&s)
	return putJSON(tx, spendName(s.Tenant, place, key), row)
}

// plus adds the amounts of other.
func (s *Spend) plus(other *Spend) {
	for _, sum := range [...]struct {
		to *int64
		n  int64
	}{{&s.Calls, other.Calls}, {&s.Estimated, other.Estimated}, {&s.Input, other.Input}, {&s.CacheRead, other.CacheRead}, {&s.CacheWrite, other.CacheWrite},
		{&s.Output, other.Output}, {&s.Micro, other.Micro}, {&s.Unpriced, other.Unpriced}} {
		*sum.to = addCapped(*sum.to, sum.n)
	}
}

// row is the row of the period that s belongs to, made where there is none yet.
func (s Spend) row(tx Tx, period, place string) (spendRow, string, error) {
	key := s.key()
	var row spendRow
	err := getJSON(tx, spendName(s.Tenant, place, key), &row)
	if err != nil || row.Period == period {
		return row, key, err
	}
	var index spendIndex
	if err := getJSON(tx, spendName(s.Tenant, place, "index"), &index); err != nil {
		return row, key, err
	}
	if index.Period != period {
		index = spendIndex{Period: period}
	}
	if s.Owner != "" && len(index.Rows) >= maxSpendRows/2 {
		s.Agent, s.Owner = s.Owner, "" // it tells no other agent's spend away
		return s.row(tx, period, place)
	}
	if s.Agent != otherRow && len(index.Rows) >= maxSpendRows {
		s.Agent, s.Intent, s.Model = otherRow, "", otherRow
		return s.row(tx, period, place)
	}
	index.Rows = append(index.Rows, key)
	row = spendRow{Period: period, Spend: Spend{Tenant: s.Tenant, Agent: s.Agent, Owner: s.Owner, Intent: s.Intent, Model: s.Model}}
	return row, key, putJSON(tx, spendName(s.Tenant, place, "index"), index)
}

func (s Spend) key() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{s.Agent, s.Intent, s.Model, s.Owner}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

func getJSON(tx Tx, name string, v any) error {
	b, err := tx.Meta(name)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	return err
}

func putJSON(tx Tx, name string, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		err = tx.PutMeta(name, b)
	}
	return err
}

// SpendIn is what all tenants have spent on the UTC day and in the month of at, the
// dearest of all of them first.
func SpendIn(tx Tx, at time.Time) (day, month []Spend, err error) {
	heads, err := tx.Heads()
	if err != nil {
		return nil, nil, err
	}
	out := [2][]Spend{}
	for i, p := range spendPeriods(at) {
		for _, h := range heads {
			one, err := spendIn(tx, h.Tenant, p[0], p[1])
			if err != nil {
				return nil, nil, err
			}
			out[i] = append(out[i], one...)
		}
		slices.SortStableFunc(out[i], dearer)
	}
	return out[0], out[1], nil
}

// SpentByTrees is, of each agent with others within it in rows, what all of them have
// spent together, the dearest first: one row for each, without intent and model.
func SpentByTrees(rows []Spend) []Spend {
	var out []Spend
	for _, x := range rows {
		if x.Owner != "" && !slices.ContainsFunc(out, func(s Spend) bool { return s.Tenant == x.Tenant && s.Agent == x.Owner }) {
			out = append(out, Spend{Tenant: x.Tenant, Agent: x.Owner})
		}
	}
	for i := range out {
		for j := range rows {
			if x := &rows[j]; x.Tenant == out[i].Tenant && cmp.Or(x.Owner, x.Agent) == out[i].Agent {
				out[i].plus(x)
			}
		}
	}
	slices.SortStableFunc(out, dearer)
	return out
}

// dearer sorts what cost more before what cost less.
func dearer(a, b Spend) int {
	return cmp.Or(cmp.Compare(b.Micro, a.Micro), cmp.Compare(b.tokens(), a.tokens()), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Agent, b.Agent),
		cmp.Compare(a.Intent, b.Intent), cmp.Compare(a.Model, b.Model))
}

func spendIn(tx Tx, tenant, period, place string) ([]Spend, error) {
	var index spendIndex
	if err := getJSON(tx, spendName(tenant, place, "index"), &index); err != nil || index.Period != period {
		return nil, err
	}
	var out []Spend
	for _, key := range index.Rows {
		var row spendRow
		if err := getJSON(tx, spendName(tenant, place, key), &row); err != nil {
			return nil, err
		}
		if row.Period == period {
			out = append(out, row.Spend)
		}
	}
	return out, nil
}

func (s Spend) tokens() int64 {
	return holdfast.Tokens{Input: s.Input, CacheRead: s.CacheRead, CacheWrite: s.CacheWrite, Output: s.Output}.All()
}
