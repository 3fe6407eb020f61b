package watch

import "time"

const (
	// lasts is how long a condition holds that is an event.
	lasts = hour
	// again is how long people are not told once more of a condition that they were
	// told of; a pause and a halt are made each time. It is longer than the hour of
	// what tells them, which begins a moment later.
	again = hour + int64(time.Minute)
	// tenfold is how much worse it must be to tell them all the same.
	tenfold = 10
	// grace is how long actions of an agent that was to be paused may still end; as
	// many that end later as make a pattern say that it goes on.
	grace = int64(time.Minute)
)

// alarm is a condition that holds, or did within the last hour.
type alarm struct {
	since int64   // it holds from then on, ns; 0 where it does not
	told  int64   // when something was done about it that was not quiet, 0 if nothing was
	until int64   // of an event: it holds until then
	why   string  // until people are told
	size  float32 // how many times its limit it is
	shown float32 // how many times it was when people were told
	which place
	done  bool  // something was done about it since it holds
	kept  bool  // it is recorded as another's consequence, and nothing more
	quiet bool  // people were not told that it holds, for they had been within the hour
	acts  uint8 // actions of the agent since grace was over
}

// Finding is what is to be done about a condition. Nothing is done by whom finds:
// it is carried to the kernel, where it is a crossing.
type Finding struct {
	Condition Name
	Severity  Severity
	Response  Response
	// Asks says that a review is opened.
	Asks bool
	// Tenant and Agent say whose it is: Agent is empty of a tenant's, both of
	// everything's.
	Tenant, Agent string
	// Crossing is the one that made it, where one did.
	Crossing string
	At       time.Time
	// Why says what was found, for people, who are told the condition's name before
	// it. It holds no word of an agent's.
	Why string
	// Cause is the condition that this one is a consequence of; it is then only
	// recorded.
	Cause Name
	// Cleared says that it holds no more; Response is Record. Forgiven says besides that
	// a person let the agent go on: what holds again is not what people were told of.
	Cleared, Forgiven bool
}

// String is the finding in one line.
func (f *Finding) String() string { return string(f.Condition) + ": " + f.Why }

// holds notes what was found of a condition; what is to be done is left for take. size is
// how many times its limit it is, 1 of what has none, and 0 of what does not hold.
func (w *Watch) holds(a *agent, o owner, which place, size float64, at int64, why func() string) {
	al := a.alarm(which)
	switch {
	case size > 0 && al == nil:
		a.alarms = append(a.alarms, alarm{which: which})
		al = &a.alarms[len(a.alarms)-1]
		fallthrough
	case size > 0:
		if !w.conditions[which].Brief {
			al.until = 0
		}
		w.goOn(a, al, o, size, at, why)
	case al != nil && al.since != 0 && !w.conditions[which].Brief:
		w.over(a, al, o, at)
	}
}

// over is of a condition that holds no more. What an agent has made visible it
// cannot unmake before people see it.
func (w *Watch) over(a *agent, al *alarm, o owner, at int64) {
	visible := al.since + int64(w.conditions[al.which].Visible)
	switch {
	case o.agent == "":
		w.clear(al, o, at)
	case at < visible:
		al.until = visible
	default:
		w.end(a, al, o, at)
	}
}

// end is of a condition whose time is over.
func (w *Watch) end(a *agent, al *alarm, o owner, at int64) {
	if !al.done && !al.kept {
		w.goOn(a, al, o, 0, at, nil)
	}
	w.clear(al, o, at)
}

// goOn is of a condition that holds. size is 0 where nothing new is known of it.
func (w *Watch) goOn(a *agent, al *alarm, o owner, size float64, at int64, why func() string) {
	c := &w.conditions[al.which]
	fresh := al.since == 0
	if fresh {
		al.since = max(at, 1)
	}
	if c.Brief && why != nil {
		fresh, al.until = true, at+lasts
	}
	if size > 0 {
		al.size = float32(size)
	}
	first := !al.done
	worse := al.told != 0 && size > 0 && al.size >= tenfold*al.shown
	unheeded := w.unheeded(c, al, o, at)
	// What holds on is told once the hour is over: else what comes and goes would be
	// unknown for as long as it holds then.
	late := al.quiet && !c.Brief && at-al.told >= again
	if why != nil && (first && (fresh || al.kept) || worse || unheeded || late) {
		al.why = why()
	}
	if at-al.since < int64(c.Visible) && !c.Brief {
		return
	}
	if !fresh && !first && !al.kept && !worse && !unheeded && !late {
		return // as before
	}
	cause, held := w.cause(a, o, al.which)
	switch {
	case held && (fresh || first && !al.kept):
		al.kept = true
		w.found(c, o, at, al.why, Record, cause)
	case held:
	case c.Brief && fresh || first || al.kept || worse || unheeded || late:
		al.done, al.kept, al.acts = true, false, 0
		r := w.response(c)
		if al.quiet = r == Alert && al.told != 0 && at-al.told < again && !worse; al.quiet {
			w.found(c, o, at, al.why, Record, "")
			return
		}
		al.shown, al.told = al.size, max(at, 1)
		w.found(c, o, at, al.why, r, "")
		al.why = ""
	}
}

// unheeded says that an agent goes on that was to be stopped for it: nobody did, or
// whoever let it go on did not know.
func (w *Watch) unheeded(c *Condition, al *alarm, o owner, at int64) bool {
	if !o.acts || c.Brief || !al.done || al.kept || at-al.told < grace || w.response(c) < Pause {
		return false
	}
	al.acts = min(al.acts+1, enough)
	return al.acts == enough
}

// cause is the condition that one is a consequence of: of the agent, of its
// tenant or of everything. What is answered more mildly is nobody's cause, for
// behind it the dearer would go unanswered.
func (w *Watch) cause(a *agent, o owner, which place) (Name, bool) {
	answer := w.response(&w.conditions[which])
	for _, d := range w.causes[which] {
		if w.response(&w.conditions[d]) < answer {
			continue
		}
		for _, above := range w.chain(a, o) {
			if above != nil && above.holding(d) {
				return w.conditions[d].Name, true
			}
		}
	}
	return "", false
}

// clear is of a condition that holds no more.
func (w *Watch) clear(al *alarm, o owner, at int64) {
	seen := al.done || al.kept
	al.since, al.until, al.done, al.kept, al.quiet, al.acts = 0, 0, false, false, false, 0
	if !seen {
		return
	}
	c := &w.conditions[al.which]
	w.out = append(w.out, Finding{Condition: c.Name, Severity: c.Severity, Response: Record, Tenant: o.tenant, Agent: o.agent,
		At: w.when(at), Why: "it holds no more", Cleared: true})
}

func (w *Watch) found(c *Condition, o owner, at int64, why string, r Response, cause Name) {
	w.out = append(w.out, Finding{Condition: c.Name, Severity: c.Severity, Response: r, Asks: c.Asks && r > Record,
		Tenant: o.tenant, Agent: o.agent, Crossing: o.crossing, At: w.when(at), Why: why, Cause: cause})
}

// response is what is done about a condition: what the configuration says, else
// what its severity does. What the kernel does itself is only recorded.
func (w *Watch) response(c *Condition) Response {
	if c.Answered {
		return Record
	}
	if r, ok := w.limits.Responses[c.Name]; ok {
		return r
	}
	return c.Severity.Response()
}

// holding says whether a condition holds, visible or not.
func (a *agent) holding(which place) bool {
	al := a.alarm(which)
	return al != nil && al.since != 0
}

func (a *agent) alarm(which place) *alarm {
	for i := range a.alarms {
		if a.alarms[i].which == which {
			return &a.alarms[i]
		}
	}
	return nil
}
