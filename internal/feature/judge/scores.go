package judge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// How long scores are kept, and how many in each of 256 places of the store: the
// oldest goes.
const (
	scoreLife = 24 * time.Hour
	scoreRoom = 16
)

// judgeScores is a cache: its rows need no event, and no gate reads them.
var judgeScores = table.New[string, scoreShelf]("judge_score", table.Options{Key: "place"})

// scoreShelf is the scores in one place, the oldest first.
type scoreShelf struct {
	Kept []scoreKept `json:"kept"`
}

// scoreKept is one score as it is kept.
type scoreKept struct {
	Key    string        `json:"key"`
	Scores review.Scores `json:"scores"`
	At     time.Time     `json:"at"`
}

// key is what scores are kept for: the exact request of this agent, of this
// risk, and this version of the judge.
func (r *Request) key(exact, version string) string {
	b, err := json.Marshal([]string{r.Tenant, r.Agent, r.Kind, r.Boundary, r.Operation, r.Risk.String(), exact, version})
	if err != nil || exact == "" {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func scorePlace(key string) string { return key[:2] }

// keptScore finds scores that are not too old. What cannot be read is not there.
func (f *Feature) keptScore(ctx context.Context, key string, now time.Time) (review.Scores, bool) {
	var shelf scoreShelf
	if key == "" || f.host.View(ctx, func(tx kernel.Reader) (err error) {
		shelf, _, err = judgeScores.Find(tx,
			scorePlace(key))
		return err
	}) != nil {
		return review.Scores{}, false
	}
	for _, s := range shelf.Kept {
		if s.Key == key && s.fresh(now) {
			return s.Scores, true
		}
	}
	return review.Scores{}, false
}

// fresh reports whether scores still count; those of a clock that went back do not.
func (s *scoreKept) fresh(now time.Time) bool {
	return !now.Before(s.At) && now.Before(s.At.Add(scoreLife))
}

func (f *Feature) keepScore(ctx context.Context, key string, s review.Scores, now time.Time) error {
	if key == "" {
		return nil
	}
	return f.host.Commit(ctx, func(tx kernel.FeatureTx) error {
		shelf, version, err := judgeScores.Find(tx, scorePlace(key))
		if damaged := (*table.DamagedError)(nil); errors.As(err, &damaged) {
			shelf = scoreShelf{} // written again
		} else if err != nil {
			return err
		}
		left := shelf.Kept[:0]
		for _, o := range shelf.Kept {
			if o.Key != key && o.fresh(now) {
				left = append(left, o)
			}
		}
		left = append(left, scoreKept{Key: key, Scores: s, At: now})
		left = left[max(0, len(left)-scoreRoom):]
		return judgeScores.Put(tx, scorePlace(key), scoreShelf{left}, version)
	})
}
