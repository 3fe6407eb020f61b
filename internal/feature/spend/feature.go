package spend

import (
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/ledger"
)

var (
	spendRows    = table.New[spendKey, spendRow]("spend", table.Options{})
	spendPeriods = table.New[placeKey, spendPeriod]("spend_period", table.Options{})
)

// spendKey is one sum: the tenant's, in the place of a period, of one agent, intent and
// model, whose names are hashed.
type spendKey struct {
	Tenant string `table:"tenant"`
	Place  string `table:"place"`
	Of     string `table:"of"`
}

// placeKey is one place of a tenant's periods.
type placeKey struct {
	Tenant string `table:"tenant"`
	Place  string `table:"place"`
}

// spendPeriod is which period a place has now, and how many sums.
type spendPeriod struct {
	Period string `json:"period"`
	Rows   int    `json:"rows"`
}

// Feature adds up the entries.
type Feature struct{}

// New returns the feature.
func New(kernel.Host) kernel.Feature { return Feature{} }

// Tables returns the tables of the feature.
func Tables() []*table.Def { return []*table.Def{spendRows.Def(), spendPeriods.Def()} }

// Spec implements kernel.Feature.
func (Feature) Spec() kernel.Spec { return kernel.Spec{Name: "spend", Tables: Tables()} }

// WantsEntry implements kernel.EntryFilter: only a call of a model that began is charged.
func (Feature) WantsEntry(e *ledger.Entry) bool {
	return e.Model != nil && !e.Unstarted && e.Model.How != "unstarted"
}

// OnEntry implements kernel.EntryHook.
func (Feature) OnEntry(tx kernel.FeatureTx, _ kernel.Part, e *ledger.Entry) error {
	return addEntry(tx, e)
}
