package barerows

import (
	"bytes"
	"errors"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/ledger"
)

// ReadNewest are the bytes of the newest begin and entry of a store.
func ReadNewest(b *measure.Run, path string) (out [2][]byte, err error) {
	s, err := sqlite.Open(b.Ctx, sqlite.Options{Path: path, ReadOnly: true, Tables: feature.Tables()})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = s.View(b.Ctx, func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			err := tx.Leaves(h.Tenant, 0, h.Size, func(l ledger.Stored) error {
				if l.Kind == ledger.KindBegin {
					out[0] = bytes.Clone(l.Record)
				}
				if l.Kind == ledger.KindEntry {
					out[1] = append(bytes.Clone(l.Record), l.Part...)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && (out[0] == nil || out[1] == nil) {
		err = errors.New("the call left no begin and entry")
	}
	return out, err
}
