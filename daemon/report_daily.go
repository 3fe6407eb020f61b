package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/kernel"
)

const (
	// reportEvery is how often it is looked whether a day has ended.
	reportEvery = time.Minute
	// reportsBack is how many past days are written that a daemon which did not run
	// has missed.
	reportsBack = 7
)

// reportDays writes each day's report into the state directory once the day is
// over, and those that were missed. It stands there as markdown and as JSON, and is
// kept; who is to be sent it is sent it.
func (d *Daemon) reportDays(ctx context.Context) {
	look := func() {
		now := time.Now()
		if err := d.writeReports(ctx, now); err != nil {
			if ctx.Err() == nil {
				d.log.Error("a daily report could not be written", "err", err)
			}
			return
		}
		if err := d.sendReports(now); err != nil {
			d.log.Error("a daily report could not be sent", "err", err)
		}
	}
	look()
	every(ctx, reportEvery, look)
}

// writeReports writes the reports of the days before now that are not there yet.
func (d *Daemon) writeReports(ctx context.Context, now time.Time) error {
	for back := reportsBack; back > 0; back-- {
		day := health.NewDay(now.UTC().AddDate(0, 0, -back)).Start()
		file := filepath.Join(d.Paths.Reports, day.Format(time.DateOnly))
		if _, err := os.Lstat(file + ".json"); !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return err
			}
			continue
		}
		r, err := ReadDay(ctx, d.store, day, now)
		if err != nil {
			return err
		}
		if len(r.Tenants) == 0 && !r.Unread {
			continue // there was nothing yet
		}
		if err := d.writeReport(file, &r); err != nil {
			return err
		}
	}
	return nil
}

// writeReport writes one, the JSON last: where that is, both are. The ledger keeps
// its hash, and what the days behind it begin with.
func (d *Daemon) writeReport(file string, r *health.Report) error {
	if err := os.MkdirAll(d.Paths.Reports, 0o700); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := r.Markdown(&text, oneCleanLine); err != nil {
		return err
	}
	doc, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	doc = append(doc, '\n')
	sum := sha256.Sum256(doc)
	if err := d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Name: eventReported, Who: "holdfast", Subject: r.Date, Data: map[string]any{
		"health": r.Health.String(), "hash": hex.EncodeToString(sum[:]), "settings": d.Kernel.Policy().Settings, "halted": d.latch.Halted()}}); err != nil {
		return err
	}
	if err := replaceFile(file+".md", text.Bytes()); err != nil {
		return err
	}
	return replaceFile(file+".json", doc)
}

// oneCleanLine is a text without what does not print.
func oneCleanLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
