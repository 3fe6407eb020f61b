package kernel

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/deadline"
)

// Asker says for whom a token speaks, and the agent's trust level: the one of its
// record, or the one that it would have at first sight. It judges and records
// nothing. A door that must choose before the gates are asked asks it; what the
// gates then say of the same token stands. An error is of K2, or the store's.
func (k *Kernel) Asker(ctx context.Context, token holdfast.Secret) (holdfast.Identity, holdfast.Level, error) {
	j := &judgement{k: k, pol: k.policy.Load(), now: k.now().UTC()}
	if j.who, j.whoErr = k.verify(ctx, token, j); j.whoErr != nil {
		return holdfast.Identity{}, holdfast.Baseline, j.whoErr
	}
	ctx, cancel := deadline.After(ctx, gateTime)
	defer cancel()
	err := k.store.View(ctx, func(tx Tx) (err error) {
		if j.agent, err = ownAgent(tx, j.who.Tenant, j.who.Agent); errors.Is(err, ErrNotFound) {
			j.agent, err = j.firstSight(), nil
		}
		return err
	})
	if err != nil {
		return holdfast.Identity{}, holdfast.Baseline, err
	}
	return j.who, j.agent.Level, nil
}
