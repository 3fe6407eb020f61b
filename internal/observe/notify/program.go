package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// programTime bounds one run of a program.
const programTime = 30 * time.Second

// Program runs a program for each notice, which it gets as JSON on its standard input.
type Program struct {
	Name   string // in the log
	Argv   []string
	Runner command.Runner
}

// Send implements Transport for notices, within 30 s. An exit status other than 0 is a failure.
func (p *Program) Send(ctx context.Context, i Item) error {
	b, err := json.Marshal(i.Notice)
	if err != nil {
		return failed("it could not be written")
	}
	_, err = p.Runner.Run(ctx, command.Command{
		Name: p.Name, Argv: p.Argv, Limit: programTime, Input: bytes.NewReader(b),
	})
	if err != nil {
		return &Failure{excerpt.Of(err.Error(), 256)}
	}
	return nil
}
