package mapping

import (
	"context"
	"maps"
	"slices"
	"time"
)

// maxBatches is the number of batches of one owner above which those of the same hour are merged: what a day needs
// so stays few, and nothing is kept for longer than its time. A batch that is not small stays, so that the oldest
// values can go without others.
const (
	maxBatches = 128
	maxMerged  = 128 << 10     // bytes of values
	smallBatch = maxMerged / 4 // bytes of values
)

// mergeValues has the keeper merge the session's batches if there are too many. Group.save must be held.
func (s *Session) mergeValues(ctx context.Context) error {
	for {
		b, drop := s.takeMerge()
		if len(drop) == 0 {
			return nil
		}
		ids, err := s.group.all.keeper.SaveBatch(ctx, s.owner, b, drop)
		if err != nil {
			return err
		}
		s.replaceBatches(b, ids, drop)
	}
}

// takeMerge returns values of an hour with several small batches, and the IDs of these. The list is empty if the
// session has few batches.
func (s *Session) takeMerge() (b Batch, drop []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten || len(s.batches) <= maxBatches {
		return b, nil
	}
	var small []batchSize
	for _, have := range s.batches {
		if have.bytes < smallBatch {
			small = append(small, have)
		}
	}
	hour, found := findFullHour(small, func(have batchSize) time.Time { return have.saved })
	if !found {
		return b, nil
	}
	size, times := 0, map[int64]bool{}
	for _, have := range small {
		if at := have.saved.UnixNano(); isInHour(have.saved, hour) && (size < maxMerged || times[at]) {
			size, times[at] = size+have.bytes, true
		}
	}
	for _, have := range s.batches {
		if !times[have.saved.UnixNano()] {
			continue
		}
		if drop = append(drop, have.ids...); b.Saved.IsZero() || have.saved.Before(b.Saved) {
			b.Saved = have.saved
		}
		for _, p := range have.ended {
			b.Values = append(b.Values, Value{Placeholder: p})
		}
	}
	for _, e := range s.order {
		if !e.oneWay && times[e.saved.UnixNano()] {
			b.Values = append(b.Values, Value{e.rule, []byte(e.value), e.placeholder, e.kept, e.restored})
		}
	}
	return b, drop
}

// replaceBatches notes that batches were merged into one.
func (s *Session) replaceBatches(b Batch, ids, drop []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	merged := batchSize{ids: ids, saved: b.Saved}
	for _, v := range b.Values {
		if len(v.Value) == 0 {
			merged.ended = append(merged.ended, v.Placeholder)
			continue
		}
		merged.count, merged.bytes = merged.count+1, merged.bytes+len(v.Value)
		if e := s.byPlaceholder[v.Placeholder]; e != nil && !e.unsaved {
			e.saved = b.Saved
		}
	}
	gone := map[string]bool{}
	for _, id := range drop {
		gone[id] = true
	}
	at := slices.IndexFunc(s.batches, func(have batchSize) bool { return gone[have.ids[0]] })
	s.batches = slices.DeleteFunc(s.batches, func(have batchSize) bool { return gone[have.ids[0]] })
	if len(ids) > 0 {
		s.batches = slices.Insert(s.batches, at, merged)
	}
}

// mergeSigned is mergeValues for the signed parts of the session's row. o is their owner.
func (s *Session) mergeSigned(ctx context.Context, o Owner) error {
	p := s.group.signed
	for {
		p.mu.Lock()
		merged, of := p.takeMerge(o.Row)
		p.mu.Unlock()
		if len(of) == 0 {
			return nil
		}
		var drop []string
		for id := range of {
			drop = append(drop, id)
		}
		ids, err := s.group.all.keeper.SaveBatch(ctx, o, Batch{Signed: merged.sums, Saved: merged.saved}, drop)
		if err != nil {
			return err
		}
		merged.ids = ids
		p.mu.Lock()
		p.batches = slices.DeleteFunc(p.batches, func(have signedBatch) bool { return of[have.ids[0]] })
		p.batches = append(p.batches, merged)
		p.mu.Unlock()
	}
}

// takeMerge returns the signed parts of a row from an hour with several batches, and the IDs of these. mu must be held.
func (p *signedParts) takeMerge(row string) (merged signedBatch, of map[string]bool) {
	var list []signedBatch
	for _, have := range p.batches {
		if have.row == row {
			list = append(list, have)
		}
	}
	if len(list) <= maxBatches {
		return merged, nil
	}
	hour, found := findFullHour(list, func(have signedBatch) time.Time { return have.saved })
	if !found {
		return merged, nil
	}
	merged.row, of = row, map[string]bool{}
	sums := map[[32]byte]bool{}
	for _, have := range list {
		if !isInHour(have.saved, hour) {
			continue
		}
		for _, id := range have.ids {
			of[id] = true
		}
		for _, sum := range have.sums {
			sums[[32]byte(sum)] = true
		}
		if merged.saved.IsZero() || have.saved.Before(merged.saved) {
			merged.saved = have.saved
		}
	}
	compare := func(a, b [32]byte) int { return slices.Compare(a[:], b[:]) }
	for _, sum := range slices.SortedFunc(maps.Keys(sums), compare) {
		merged.sums = append(merged.sums, sum[:])
	}
	return merged, of
}

// findFullHour returns an hour in which several batches were saved.
func findFullHour[T any](list []T, savedAt func(T) time.Time) (hour time.Time, found bool) {
	seen := map[time.Time]bool{}
	for _, have := range list {
		if hour = savedAt(have).Truncate(time.Hour); seen[hour] {
			return hour, true
		}
		seen[hour] = true
	}
	return hour, false
}

func isInHour(t, hour time.Time) bool { return t.Truncate(time.Hour).Equal(hour) }
