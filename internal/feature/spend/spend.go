// Package spend sums what agents have spent on models, in the transaction of each entry.
package spend

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
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

// Sum is what was spent on one model by one agent for one intent in a period.
type Sum struct {
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

// spendRow is a row as it is kept.
type spendRow struct {
	Period string `json:"period"`
	Agent  string `json:"agent"`
	Owner  string `json:"owner,omitempty"`
	Intent string `json:"intent,omitempty"`
	Model  string `json:"model"`

	Calls      int64 `json:"-" table:"calls,sum"`
	Estimated  int64 `json:"-" table:"estimated,sum"`
	Input      int64 `json:"-" table:"input_tokens,sum"`
	CacheRead  int64 `json:"-" table:"cache_read_tokens,sum"`
	CacheWrite int64 `json:"-" table:"cache_write_tokens,sum"`
	Output     int64 `json:"-" table:"output_tokens,sum"`
	Micro      int64 `json:"-" table:"money_micro,sum"`
	Unpriced   int64 `json:"-" table:"unpriced,sum"`
}

func (r *spendRow) toSum(tenant string) Sum {
	return Sum{Tenant: tenant, Agent: r.Agent, Owner: r.Owner, Intent: r.Intent, Model: r.Model, Calls: r.Calls,
		Estimated: r.Estimated,
		Input:     r.Input, CacheRead: r.CacheRead, CacheWrite: r.CacheWrite, Output: r.Output, Micro: r.Micro,
		Unpriced: r.Unpriced}
}

// periodsOf are the periods that a time belongs to, with their places.
func periodsOf(at time.Time) [2][2]string {
	at = at.UTC()
	return [2][2]string{
		{at.Format("2006-01-02"), "day" + string('0'+rune(at.Weekday()))},
		{at.Format("2006-01"), "month" + at.Format("01")},
	}
}

// add adds what an entry was charged to the sums.
func addEntry(tx table.Writer, e *ledger.Entry) error {
	m := e.Model
	one := Sum{Tenant: e.TenantID, Agent: e.Agent, Owner: e.Owner, Intent: e.Intent, Model: m.Model, Calls: 1,
		Input: m.Input, CacheRead: m.CacheRead,
		CacheWrite: budget.AddCapped(m.CacheWrite, m.CacheWriteLong), Output: m.Output, Micro: m.Micro}
	if m.How != holdfast.UsageComplete {
		one.Estimated = 1
	}
	if m.Prices == "" {
		one.Unpriced = 1
	}
	for _, p := range periodsOf(e.CreatedAt) {
		if err := one.add(tx, p[0], p[1]); err != nil {
			return err
		}
	}
	return nil
}

// add adds s to its row of the period.
func (s Sum) add(tx table.Writer, period, place string) error {
	key, err := s.placeRow(tx, period, place)
	if err != nil {
		return err
	}
	return spendRows.Add(tx, key, s.Calls, s.Estimated, s.Input, s.CacheRead, s.CacheWrite, s.Output, s.Micro,
		s.Unpriced)
}

// plus adds the amounts of other.
func (s *Sum) plus(other *Sum) {
	for _, sum := range [...]struct {
		to *int64
		n  int64
	}{{&s.Calls, other.Calls}, {&s.Estimated, other.Estimated}, {&s.Input, other.Input}, {&s.CacheRead, other.CacheRead}, {&s.CacheWrite, other.CacheWrite},
		{&s.Output, other.Output}, {&s.Micro, other.Micro}, {&s.Unpriced, other.Unpriced}} {
		*sum.to = budget.AddCapped(*sum.to, sum.n)
	}
}

// placeRow returns the key of the period's row that s belongs to. It inserts the row if it
// is missing.
func (s Sum) placeRow(tx table.Writer, period, place string) (spendKey, error) {
	key := spendKey{s.Tenant, place, s.key()}
	row, old, err := spendRows.Find(tx, key)
	if err != nil || row.Period == period {
		return key, err
	}
	in := placeKey{s.Tenant, place}
	now, version, err := spendPeriods.Find(tx, in)
	if err != nil {
		return key, err
	}
	if now.Period != period {
		if err := forgetPlace(tx, in); err != nil {
			return key, err
		}
		now, old = spendPeriod{Period: period}, 0
	}
	if s.Owner != "" && now.Rows >= maxSpendRows/2 {
		s.Agent, s.Owner = s.Owner, "" // it tells no other agent's spend away
		return s.placeRow(tx, period, place)
	}
	if s.Agent != otherRow && now.Rows >= maxSpendRows {
		s.Agent, s.Intent, s.Model = otherRow, "", otherRow
		return s.placeRow(tx, period, place)
	}
	now.Rows++
	if err := spendPeriods.Put(tx, in, now, version); err != nil {
		return key, err
	}
	return key, spendRows.Put(tx, key, spendRow{Period: period, Agent: s.Agent, Owner: s.Owner, Intent: s.Intent,
		Model: s.Model}, old)
}

// placeRows bounds what one place has: the rows of a period, and "other".
const placeRows = 2 * maxSpendRows

// forgetPlace deletes the rows of a period that is over.
func forgetPlace(tx table.Writer, in placeKey) error {
	var old [][]any
	all := table.Range{Prefix: []any{in.Tenant, in.Place}, Limit: placeRows}
	err := tx.Scan(spendRows.Def(), all, func(r table.Row) error {
		old = append(old, r.Key) // a damaged row goes as well
		return nil
	})
	for i := 0; i < len(old) && err == nil; i++ {
		err = tx.DeleteRow(spendRows.Def(), old[i])
	}
	return err
}

func (s Sum) key() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{s.Agent, s.Intent, s.Model, s.Owner}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Read is what all tenants have spent on the UTC day and in the month of at, the
// dearest of all of them first.
func Read(tx kernel.Reader, at time.Time) (day, month []Sum, err error) {
	heads, err := tx.Heads()
	if err != nil {
		return nil, nil, err
	}
	out := [2][]Sum{}
	for i, p := range periodsOf(at) {
		for _, h := range heads {
			one, err := readPlace(tx, h.Tenant, p[0], p[1])
			if err != nil {
				return nil, nil, err
			}
			out[i] = append(out[i], one...)
		}
		slices.SortStableFunc(out[i], dearer)
	}
	return out[0], out[1], nil
}

// ByTrees is, of each agent with others within it in rows, what all of them have
// spent together, the dearest first: one row for each, without intent and model.
func ByTrees(rows []Sum) []Sum {
	var out []Sum
	for _, x := range rows {
		if x.Owner != "" && !slices.ContainsFunc(out, func(s Sum) bool {
			return s.Tenant == x.Tenant &&
				s.Agent == x.Owner
		}) {
			out = append(out, Sum{Tenant: x.Tenant, Agent: x.Owner})
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
func dearer(a, b Sum) int {
	return cmp.Or(cmp.Compare(b.Micro, a.Micro), cmp.Compare(b.tokens(), a.tokens()), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Agent, b.Agent),
		cmp.Compare(a.Intent, b.Intent), cmp.Compare(a.Model, b.Model))
}

func readPlace(tx kernel.Reader, tenant, period, place string) ([]Sum, error) {
	var out []Sum
	err := spendRows.Scan(tx, table.Range{Prefix: []any{tenant, place}, Limit: placeRows}, func(_ spendKey,
		r spendRow, _ int64) error {
		if r.Period == period {
			out = append(out, r.toSum(tenant))
		}
		return nil
	})
	return out, err
}

func (s Sum) tokens() int64 {
	return holdfast.Tokens{Input: s.Input, CacheRead: s.CacheRead, CacheWrite: s.CacheWrite, Output: s.Output}.All()
}
