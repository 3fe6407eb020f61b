package watch

import (
	"slices"
	"time"
)

// Severity is how bad a condition is, in the words of spec 001 (D41a). The zero
// Severity is none, and nothing has it.
type Severity uint8

// The severities, the least first.
const (
	Low Severity = 1 + iota
	Medium
	High
	Critical
)

// String is the document's word.
func (s Severity) String() string {
	return wordOf([]string{"NONE", "LOW", "MEDIUM", "HIGH", "CRITICAL"}, int(s))
}

// Response is what is done about a condition (D41a). A greater one does what the
// lesser do, too. The zero Response is none, and nothing has it.
type Response uint8

// The responses, the mildest first.
const (
	Record Response = 1 + iota // it stands in the ledger
	Alert                      // people are told
	Pause                      // the agent is paused, and a review is opened
	Halt                       // everything is halted
)

// BoundaryPrefix begins the boundaries at which Holdfast answers findings, one for each
// response.
const BoundaryPrefix = "watch/"

// String is the configuration's word.
func (r Response) String() string {
	return wordOf([]string{"none", "record", "alert", "pause", "halt"}, int(r))
}

// ResponseOf reads a configuration's word; false for any other.
func ResponseOf(word string) (Response, bool) {
	for r := Record; r <= Halt; r++ {
		if r.String() == word {
			return r, true
		}
	}
	return 0, false
}

// Response is what the document does about a severity (D41a).
func (s Severity) Response() Response {
	if s > Critical {
		return Halt
	}
	return Response(s)
}

func wordOf(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return "unknown"
}

// Name is a condition's name, as configuration, alarms and metrics have it.
type Name string

// The conditions (spec 001, layer 5 and "Metrics to Track"; D39, D41a).
const (
	LedgerFailed       Name = "ledger_failed"       // nothing can be written down
	LatchFailed        Name = "latch_failed"        // the halt latch cannot be read
	VerificationFailed Name = "verification_failed" // the ledger is not what was written
	Escape             Name = "escape"              // code tried to leave its sandbox
	Prohibited         Name = "prohibited"          // an agent asked what nobody may
	SessionBudget      Name = "session_budget"      // a session spent what it has
	Loop               Name = "loop"                // the same again and again, or in turns
	ErrorRate          Name = "error_rate"          // of the last 100 actions
	CostPerHour        Name = "cost_per_hour"
	StepsPerHour       Name = "iterations_per_hour"
	FilesPerCommit     Name = "files_per_commit"
	Rapid              Name = "rapid_actions"
	Escalating         Name = "escalating_cost"
	Errors             Name = "repeated_errors" // three in a row
	NoHumanCheck       Name = "no_human_check"
	ChannelFailed      Name = "alert_channel_failed"
	SnapshotMissing    Name = "snapshot_missing"
	Unusual            Name = "unusual"    // above what the agent's own past makes usual
	Outlier            Name = "outlier"    // of an hour, against the hours before
	Repetition         Name = "repetition" // the same kind of action, whatever it asks for
)

// place is where in Conditions one stands. What is looked for with each crossing is
// named by it: to find nine by their names takes longer than to judge them.
type place uint8

// The places, in the order of Conditions.
const (
	atLedgerFailed place = iota
	atLatchFailed
	atVerificationFailed
	atEscape
	atProhibited
	atSessionBudget
	atLoop
	atErrorRate
	atCostPerHour
	atStepsPerHour
	atFilesPerCommit
	atRapid
	atEscalating
	atErrors
	atNoHumanCheck
	atChannelFailed
	atSnapshotMissing
	atUnusual
	atOutlier
	atRepetition
)

// Condition is one thing that may be wrong. Conditions are data: what holds is
// found by Watch, or told to it (Watch.Set).
type Condition struct {
	Name     Name
	Severity Severity
	// DependsOn are those that may be its cause: while one of them holds, for the
	// agent or above it, and is answered no more mildly, this one is recorded as
	// its consequence and nothing is done about it, so that one cause makes one
	// alarm.
	DependsOn []Name
	// Visible is how long it must hold before anything is done about it, so that
	// a cause which is found later can come before it.
	Visible time.Duration
	// Brief says that it is an event, that holds for an hour from then on.
	Brief bool
	// Answered says that the kernel itself does what the severity asks for, in the
	// crossing that found it: here it is only recorded.
	Answered bool
	// Asks says that a review is opened, whatever the response.
	Asks bool
	// OfAgent says that it is an agent's, which can be paused; any other is a
	// tenant's or everything's.
	OfAgent bool
}

// Conditions are all of them. A condition stands behind all that it depends on, for
// causes reads the list once. A new one wants, beside its row here: a Name and, in the
// order of the list, a place, above, and its severity in Test001_Layer5_Severities; where it is
// found (of a crossing by events, patterns or rates, from a field of Seen that the
// daemon fills from the entry, so that a restart finds it again; what is found
// elsewhere by Watch.Set); for a pattern its name in Watch.tick, which ends it when
// the agent falls silent; where it is Answered, its words in package story, and where
// it is not, its name in internal/config/holdfast.example.yaml; for a figure a field of Limits,
// in Document and within, and of the daemon's WatchConfig, its watchLimits and its all,
// which holds it to the most there may be; and its row at the same place of doc/watch.md.
func Conditions() []Condition {
	broken := []Name{LedgerFailed, LatchFailed}
	return []Condition{
		atLedgerFailed:       {Name: LedgerFailed, Severity: Critical},
		atLatchFailed:        {Name: LatchFailed, Severity: Critical},
		atVerificationFailed: {Name: VerificationFailed, Severity: Critical},
		atEscape:             {Name: Escape, Severity: High, Brief: true, Answered: true, OfAgent: true},
		atProhibited:         {Name: Prohibited, Severity: High, Brief: true, OfAgent: true},
		atSessionBudget:      {Name: SessionBudget, Severity: High, Brief: true, Answered: true, OfAgent: true},
		atLoop:               {Name: Loop, Severity: High, OfAgent: true},
		atErrorRate:          {Name: ErrorRate, Severity: High, DependsOn: append(broken, Loop), Visible: 2 * time.Second, OfAgent: true},
		atCostPerHour:        {Name: CostPerHour, Severity: High, DependsOn: []Name{Loop}, OfAgent: true},
		atStepsPerHour:       {Name: StepsPerHour, Severity: Medium, DependsOn: []Name{Loop}, OfAgent: true},
		atFilesPerCommit:     {Name: FilesPerCommit, Severity: Medium, Brief: true, OfAgent: true},
		atRapid:              {Name: Rapid, Severity: Medium, DependsOn: []Name{Loop}, Visible: 2 * time.Second, OfAgent: true},
		atEscalating:         {Name: Escalating, Severity: Medium, DependsOn: []Name{CostPerHour, Loop}, OfAgent: true},
		atErrors:             {Name: Errors, Severity: Medium, DependsOn: append(broken, Loop), Visible: 2 * time.Second, Asks: true, OfAgent: true},
		atNoHumanCheck:       {Name: NoHumanCheck, Severity: Medium},
		atChannelFailed:      {Name: ChannelFailed, Severity: Medium, Visible: time.Minute},
		atSnapshotMissing:    {Name: SnapshotMissing, Severity: Medium, Visible: time.Minute},
		atUnusual:            {Name: Unusual, Severity: Low, DependsOn: []Name{CostPerHour, StepsPerHour, ErrorRate, Loop}, OfAgent: true},
		atOutlier:            {Name: Outlier, Severity: Low, Brief: true, DependsOn: []Name{CostPerHour, StepsPerHour, ErrorRate, Loop, Unusual}, OfAgent: true},
		atRepetition:         {Name: Repetition, Severity: Low, DependsOn: []Name{Loop}, OfAgent: true},
	}
}

// places is where in the list each condition stands, by name.
func places(list []Condition) map[Name]place {
	m := make(map[Name]place, len(list))
	for i := range list {
		m[list[i].Name] = place(i)
	}
	return m
}

// causes are, for each condition, all that it depends on, one behind another.
func causes(list []Condition, at map[Name]place) [][]place {
	all := make([][]place, len(list))
	for i := range list {
		for _, name := range list[i].DependsOn {
			one := at[name]
			all[i] = append(append(all[i], one), all[one]...)
		}
		slices.Sort(all[i])
		all[i] = slices.Compact(all[i])
	}
	return all
}
