package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
)

// Version 2 kept small values by name in one table, meta. Version 3 has a table for each
// kind of them. This file describes the rows of that day and is never changed.

// moveMeta moves every value of meta into its table, and drops meta. A value that cannot
// be read is moved as it is: the reader of its row finds it damaged, as before. A value of
// an unknown name ends the migration.
func moveMeta(c *connection.Conn) error {
	m := metaMover{c: c, values: make(map[string][]byte), left: make(map[string]bool)}
	err := c.Query("SELECT name, value FROM meta", func(r connection.Row) error {
		m.values[r.Text(0)], m.left[r.Text(0)] = append([]byte{}, r.Blob(1)...), true
		return nil
	})
	if err != nil {
		return err
	}
	if err := m.readNames(); err != nil {
		return err
	}
	for name := range m.values {
		if err := m.moveOne(name); err != nil {
			return fmt.Errorf("move the value %.80q: %w", name, err)
		}
	}
	for _, step := range []func() error{m.moveSpend, m.moveBlocks} {
		if err := step(); err != nil {
			return err
		}
	}
	if len(m.left) > 0 {
		var names []string
		for name := range m.left {
			names = append(names, name)
		}
		return fmt.Errorf("%d values have no table, such as %.80q; hint: restore a backup, or ask for help with this message", len(names), slices.Min(names))
	}
	return c.Script("DROP TABLE meta")
}

type metaMover struct {
	c      *connection.Conn
	values map[string][]byte
	left   map[string]bool // not moved yet
	// Names whose hashes are part of the names of values: tenants, and agents after their
	// tenant and a NUL.
	tenants map[string]string // by the first 8 bytes and by all of the hash
	agents  map[string][2]string
}

func hashHex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (m *metaMover) readNames() error {
	m.tenants, m.agents = make(map[string]string), make(map[string][2]string)
	err := m.c.Query("SELECT name FROM tenant", func(r connection.Row) error {
		h := hashHex(r.Text(0))
		m.tenants[h], m.tenants[h[:16]] = r.Text(0), r.Text(0)
		return nil
	})
	if err != nil {
		return err
	}
	return m.c.Query("SELECT tenant, name FROM agent", func(r connection.Row) error {
		m.agents[hashHex(r.Text(0)+"\x00"+r.Text(1))] = [2]string{r.Text(0), r.Text(1)}
		return nil
	})
}

// putRow inserts a row with version 1.
func (m *metaMover) putRow(table string, columns string, doc string, key ...any) error {
	marks := strings.Repeat("?, ", len(key))
	_, err := m.c.Exec(fmt.Sprintf("INSERT INTO row_%s (%s, version, doc) VALUES (%s1, ?)", table, columns,
		marks), append(key, doc)...)
	return err
}

// wrapValue returns a JSON object with one member. Malformed JSON is returned unchanged, so
// that its reader finds the row damaged.
func wrapValue(member string, value []byte) string {
	if !json.Valid(value) {
		return string(value)
	}
	return fmt.Sprintf("{%q:%s}", member, value)
}

func quoteText(b []byte) []byte {
	out, err := json.Marshal(string(b))
	if err != nil {
		return b
	}
	return out
}

// moveOne moves a value whose row is its own; spend and the blocks are moved together.
func (m *metaMover) moveOne(name string) error {
	kind, of, _ := strings.Cut(name, "/")
	v := m.values[name]
	move := func(table, column, doc string, key ...any) error {
		delete(m.left, name)
		return m.putRow(table, column, doc, key...)
	}
	switch kind {
	case "halted":
		if name != kind {
			return nil
		}
		return move("halt", "scope", fmt.Sprintf(`{"halted":%t}`, string(v) == "yes"), "everything")
	case "statement":
		return move("statement", "id", wrapValue("at", quoteText(v)), of)
	case "rule":
		return move("remembered_rule", "id", string(v), of)
	case "rule-use":
		return move("remembered_use", "id", string(v), of)
	case "rules-of":
		return move("remembered_caller", "caller", wrapValue("ids", v), of)
	case "rules":
		return move("remembered_tenant", "tenant", wrapValue("ids", v), of)
	case "rule-text":
		return move("rule_text", "rule", string(v), of)
	case "goals-pause":
		return move("goals_pause", "tenant", string(v), of)
	case "erased":
		return move("erased_part", "tenant", wrapValue("to", v), of)
	case "pins":
		return move("tool_count", "server", wrapValue("pins", v), of)
	case "sight":
		return move("tool_sight", "boundary, seen", string(v), of, "first")
	case "sight-now":
		return move("tool_sight", "boundary, seen", string(v), of, "changed")
	case "judge-scores":
		return move("judge_score", "place", wrapValue("kept", v), of)
	case "budget-granted":
		return move("budget_grant", "counter", string(v), of)
	case "budget-asked":
		return move("budget_asked", "counter", wrapValue("review", quoteText(v)), of)
	case "budget-question":
		return move("budget_question", "review", string(v), of)
	case "chain-ended":
		return move("chain_ended", "chain", string(v), of)
	case "chains-ended":
		return move("chain_count", "tenant", wrapValue("ended", v), m.tenantOf(of))
	case "subagents":
		delete(m.left, name)
		return m.moveTree(of, v)
	case "pin", "changed":
		if !m.left[name] {
			return nil
		}
		return m.movePin(of)
	}
	return nil
}

// tenant returns the tenant of a hash, or the hash where no tenant has it.
func (m *metaMover) tenantOf(hash string) string {
	if t := m.tenants[hash]; t != "" {
		return t
	}
	return hash
}

func (m *metaMover) moveTree(hash string, v []byte) error {
	of, known := m.agents[hash]
	if !known {
		of = [2]string{"_unknown", hash}
	}
	doc := string(v)
	told, within, _ := strings.Cut(string(v), "\n")
	if at, err := strconv.ParseInt(told, 10, 64); err == nil {
		b, err := json.Marshal(struct {
			Told   int64  `json:"told"`
			Within string `json:"within"`
		}{at, within})
		if err != nil {
			return err
		}
		doc = string(b)
	}
	return m.putRow("subagent_tree", "tenant, agent", doc, of[0], of[1])
}

// movePin makes one row of a boundary's first sight and of the change that people heard of.
func (m *metaMover) movePin(boundary string) error {
	delete(m.left, "pin/"+boundary)
	delete(m.left, "changed/"+boundary)
	doc, err := json.Marshal(struct {
		First string `json:"first,omitempty"`
		Told  string `json:"told,omitempty"`
	}{string(m.values["pin/"+boundary]), string(m.values["changed/"+boundary])})
	if err != nil {
		return err
	}
	return m.putRow("tool_pin", "boundary", string(doc), boundary)
}

// metaSpend is a sum as version 2 kept it.
type metaSpend struct {
	Period   string `json:"period"`
	Tenant   string `json:"tenant_id"`
	Agent    string `json:"agent"`
	Owner    string `json:"owner"`
	Intent   string `json:"intent"`
	Model    string `json:"model"`
	Calls    int64  `json:"calls"`
	Guessed  int64  `json:"estimated"`
	Input    int64  `json:"input_tokens"`
	Read     int64  `json:"cache_read_tokens"`
	Write    int64  `json:"cache_write_tokens"`
	Output   int64  `json:"output_tokens"`
	Micro    int64  `json:"money_micro"`
	Unpriced int64  `json:"unpriced"`
}

// moveSpend moves the sums of the periods that their places have now. What is left of a
// period that is over is in no list, and was never shown.
func (m *metaMover) moveSpend() error {
	for name, v := range m.values {
		place, isIndex := strings.CutSuffix(name, "/index")
		if !isIndex || !strings.HasPrefix(name, "spend/") {
			continue
		}
		var index struct {
			Period string   `json:"period"`
			Rows   []string `json:"rows"`
		}
		doc := string(v)
		if json.Unmarshal(v, &index) == nil {
			doc = fmt.Sprintf(`{"period":%s,"rows":%d}`, quoteText([]byte(index.Period)), len(index.Rows))
		}
		_, at, _ := strings.Cut(strings.TrimPrefix(place, "spend/"), "/")
		hash, _, _ := strings.Cut(strings.TrimPrefix(place, "spend/"), "/")
		tenant := m.tenantOf(hash)
		slices.Sort(index.Rows)
		for _, of := range slices.Compact(index.Rows) {
			if err := m.moveSum(place+"/"+of, index.Period, tenant, at, of); err != nil {
				return err
			}
		}
		if err := m.putRow("spend_period", "tenant, place", doc, tenant, at); err != nil {
			return err
		}
	}
	for name := range m.left {
		if strings.HasPrefix(name, "spend/") {
			delete(m.left, name)
		}
	}
	return nil
}

func (m *metaMover) moveSum(name, period, tenant, place, of string) error {
	v, ok := m.values[name]
	if !ok {
		return nil
	}
	var s metaSpend
	damaged := json.Unmarshal(v, &s) != nil
	if !damaged && s.Period != period {
		return nil
	}
	doc, err := json.Marshal(struct {
		Period string `json:"period"`
		Agent  string `json:"agent"`
		Owner  string `json:"owner,omitempty"`
		Intent string `json:"intent,omitempty"`
		Model  string `json:"model"`
	}{s.Period, s.Agent, s.Owner, s.Intent, s.Model})
	if err != nil {
		return err
	}
	if damaged {
		doc = v
	}
	_, err = m.c.Exec(`INSERT INTO row_spend (tenant, place, "of", calls, estimated, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
		money_micro, unpriced, version, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)`,
		tenant, place, of, s.Calls, s.Guessed, s.Input, s.Read, s.Write, s.Output, s.Micro, s.Unpriced, string(doc))
	return err
}

// moveBlocks makes a row of each tenant that a budget blocks.
func (m *metaMover) moveBlocks() error {
	const name = "budget-blocks"
	v, ok := m.values[name]
	if !ok {
		return nil
	}
	delete(m.left, name)
	var all map[string]json.RawMessage
	if json.Unmarshal(v, &all) != nil {
		return m.putRow("budget_block", "tenant", string(v), "_unknown")
	}
	for tenant, b := range all {
		if err := m.putRow("budget_block", "tenant", string(b), tenant); err != nil {
			return err
		}
	}
	return nil
}
