package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
)

// pairKey joins two names; neither has a NUL.
func pairKey(a, b string) string { return a + "\x00" + b }

func (tx *updateTx) agentCell(tenant, name string) (*cell[holdfast.Agent], error) {
	s := tx.s
	if tx.over {
		return nil, errOver
	}
	key := pairKey(tenant, name)
	if c := s.agents.m[key]; c != nil {
		return c, nil
	}
	if err := errors.Join(okName("the agent's tenant", tenant), okName("the agent's name", name)); err != nil {
		return nil, err
	}
	var v slot[holdfast.Agent]
	if !s.agents.whole {
		r, err := s.side.One("SELECT doc FROM agent WHERE tenant = ? AND name = ?", tenant, name)
		if err == nil && r != nil {
			v.ok = true
			v.val, err = readAgent(r)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.agents.put(&s.seen, key, v, s.version, s.settled), nil
}

func (tx *updateTx) Agent(tenant, name string) (holdfast.Agent, error) {
	c, err := tx.agentCell(tenant, name)
	if err != nil {
		return holdfast.Agent{}, err
	}
	if !c.now.ok {
		return holdfast.Agent{}, notFound("agent %q of tenant %q", name, tenant)
	}
	return c.now.val, nil
}

func (tx *updateTx) PutAgent(a holdfast.Agent) error {
	c, err := tx.agentCell(a.Tenant, a.Name)
	if err != nil {
		return err
	}
	if n := len(a.Why) + len(a.Kind) + len(a.Principal) + len(a.Owner) + len(a.Parent) + len(a.Condition) + len(a.Review); n > maxDoc {
		return fmt.Errorf("agent %q has %d bytes of text, more than %d", a.Name, n, maxDoc)
	}
	a.First = utc(a.First)
	tx.setAgent(c, slot[holdfast.Agent]{a, true})
	return nil
}

func (tx *updateTx) DropAgent(tenant, name string) error {
	c, err := tx.agentCell(tenant, name)
	if err == nil && c.now.ok {
		tx.setAgent(c, slot[holdfast.Agent]{})
	}
	return err
}

func (tx *updateTx) setAgent(c *cell[holdfast.Agent], to slot[holdfast.Agent]) {
	was := c.now
	tx.s.agents.touch(c, tx.b.no)
	c.now = to
	tx.undone(func() { c.now = was })
}

func (tx *updateTx) Agents(tenant string) ([]holdfast.Agent, error) {
	if tx.over {
		return nil, errOver
	}
	as, err := readAgents(tx.s.side, tenant)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]holdfast.Agent, len(as))
	for _, a := range as {
		byName[pairKey(a.Tenant, a.Name)] = a
	}
	for key, c := range tx.s.agents.m {
		if !c.now.ok {
			delete(byName, key)
		} else if a := c.now.val; tenant == "" || a.Tenant == tenant {
			byName[key] = a
		}
	}
	as = slices.Collect(maps.Values(byName))
	slices.SortFunc(as, func(a, b holdfast.Agent) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	})
	return as, nil
}

func readAgents(c *connection.Conn, tenant string) ([]holdfast.Agent, error) {
	var as []holdfast.Agent
	err := c.Query("SELECT doc FROM agent WHERE ?1 = '' OR tenant = ?1 ORDER BY tenant, name",
		func(r connection.Row) error {
			a, err := readAgent(r)
			as = append(as, a)
			return err
		}, tenant)
	return as, err
}

func (tx *updateTx) jtiCell(tenant, jti string) (*cell[bool], error) {
	s := tx.s
	if tx.over {
		return nil, errOver
	}
	key := pairKey(tenant, jti)
	if c := s.jtis.m[key]; c != nil {
		return c, nil
	}
	if err := errors.Join(okName("the token's tenant", tenant), okName("the token's id", jti)); err != nil {
		return nil, err
	}
	if s.jtis.whole {
		return &cell[bool]{key: key, since: s.version}, nil
	}
	ok, err := readRevoked(s.side, tenant, jti)
	if err != nil {
		return nil, err
	}
	return s.jtis.put(&s.seen, key, slot[bool]{ok, ok}, s.version, s.settled), nil
}

func readRevoked(c *connection.Conn, tenant, jti string) (bool, error) {
	r, err := c.One("SELECT 1 FROM revocation WHERE tenant = ? AND jti = ?", tenant, jti)
	return r != nil, err
}

func (tx *updateTx) Revoke(tenant, jti string, at time.Time) error {
	c, err := tx.jtiCell(tenant, jti)
	if err != nil || c.now.ok {
		return err
	}
	s, b := tx.s, tx.b
	if s.jtis.m[c.key] == nil {
		c = s.jtis.put(&s.seen, c.key, c.now, s.version, s.settled)
	}
	s.jtis.touch(c, b.no)
	c.now = slot[bool]{true, true}
	b.revoked = append(b.revoked, revoked{tenant, jti, at})
	tx.undone(func() {
		c.now = slot[bool]{}
		b.revoked = b.revoked[:len(b.revoked)-1]
	})
	return nil
}

func (tx *updateTx) Revoked(tenant, jti string) (bool, error) {
	c, err := tx.jtiCell(tenant, jti)
	return err == nil && c.now.ok, err
}
