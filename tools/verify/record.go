package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxDepth is how deep a record may nest: its own level, and 20 of an event's
// data.
const maxDepth = 21

// agentFields, factFields and modelFields are the members that begins and entries share;
// fields are those of each kind after `tenant_id`, in their order.
const (
	agentFields = " agent agent_kind session intent chain tier parent risk"
	factFields  = " clock token_id token_expires trust_level k5_scope k5_until k7_threshold governs k8_predicates fetched features"
	modelFields = " model subagent owner"
)

func fields(kind string) []string {
	switch kind {
	case "begin":
		return strings.Fields("part_hash correlation_id timestamp boundary_crossing caller_user_id caller_roles" + agentFields +
			" exact_hash k5_idempotency_key policy k1_schema_id k2_required_permissions k2_granted_permissions k7_confidence_score" +
			" k7_human_approved review reviewer_id draws deadline traceparent weakened" + factFields + " rates past" + modelFields)
	case "entry":
		return strings.Fields("begin_seq operation_result_hash correlation_id timestamp boundary_crossing caller_user_id caller_roles" +
			" k1_schema_id k1_valid k2_required_permissions k2_granted_permissions k2_authorized k3_resource_type k3_budget_limit" +
			" k3_usage_before k3_requested k3_within_budget k5_idempotency_key k7_confidence_score k7_human_approved k8_eval_passed" +
			" operation_result exit_code redaction_rules_applied contains_pii_before_redaction created_at partition_date" + agentFields +
			" state outcome error_kind gate rule why exact_hash policy traceparent replay_of review reviewer_id k3_all duration_us" +
			" run walls sandbox unstarted weakened" + factFields + " opinions k8_rules k8_rules_more" + modelFields)
	case "event":
		return strings.Fields("crossing part_hash timestamp clock event who subject data")
	}
	return nil
}

// front is what verification needs of a record.
type front struct {
	Kind     string
	ID       string
	Tenant   string
	BeginSeq int64  // -1 for none
	Part     string // the hash of the part, empty for none
	Event    string
	Subject  string
	Data     []byte
}

// parse reads a record in its one spelling: without white space, with the front
// that every record has, and after it each member at most once, in its order
// and under its exact name.
func parse(record []byte) (*front, error) {
	var compact bytes.Buffer
	if !utf8.Valid(record) || json.Compact(&compact, record) != nil {
		return nil, errors.New("a record that is not JSON")
	}
	if !bytes.Equal(compact.Bytes(), record) {
		return nil, errors.New("a record with white space")
	}
	f := &front{BeginSeq: -1}
	rest, ok := bytes.CutPrefix(record, []byte(`{"v":1,"kind":"`))
	kind, rest, ok2 := bytes.Cut(rest, []byte(`"`))
	f.Kind = string(kind)
	order := fields(f.Kind)
	if !ok || !ok2 || order == nil {
		return nil, errors.New("a record of no known version and kind")
	}
	for _, m := range []struct {
		name string
		to   *string
	}{{"id", &f.ID}, {"tenant_id", &f.Tenant}} {
		name, value, after := member(rest)
		if name != m.name || readText(value, m.to) != nil || *m.to == "" {
			return nil, fmt.Errorf("a record without its %s where it stands", m.name)
		}
		rest = after
	}
	next := 0
	for len(rest) > 1 {
		name, value, after := member(rest)
		at := slices.Index(order[next:], name)
		switch {
		case at < 0:
			return nil, fmt.Errorf("a record of kind %q with a member %q that it does not have, or has before, or in another place", f.Kind, name)
		case f.Kind == "entry" && next < 2 && at > 0:
			return nil, errors.New("an entry without begin_seq and operation_result_hash where they stand")
		}
		if err := f.member(name, value); err != nil {
			return nil, err
		}
		rest, next = after, next+at+1
	}
	if f.Kind == "entry" && next < 2 {
		return nil, errors.New("an entry without begin_seq and operation_result_hash")
	}
	return f, nil
}

// member is the next member of an object of compact JSON that begins with a
// comma: its name as it is written, its value, and what comes after.
func member(b []byte) (name string, value, rest []byte) {
	if len(b) < 2 || b[0] != ',' {
		return "", nil, nil
	}
	n := skip(b[1:])
	name = string(b[2:n])
	value = b[n+2:]
	n = skip(value)
	return name, value[:n], value[n:]
}

// skip is the length of the value that valid, compact JSON begins with.
func skip(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

// member takes one member after the front.
func (f *front) member(name string, value []byte) error {
	bad := fmt.Errorf("a record whose %s is not as it is written", name)
	var s string
	switch value[0] {
	case '{', '[':
		if err := noneTwice(value); err != nil {
			return fmt.Errorf("a record whose %s has %v", name, err)
		}
	case '"':
		if readText(value, &s) != nil {
			return bad
		}
	}
	text := value[0] == '"'
	switch name {
	case "part_hash", "operation_result_hash":
		if null := name != "part_hash" && string(value) == "null"; !null && !isHash(s) {
			return bad
		}
		f.Part = s
	case "begin_seq":
		if string(value) == "null" {
			return nil
		}
		n, err := readInt(value)
		if err != nil {
			return bad
		}
		f.BeginSeq = n
	case "timestamp", "created_at":
		if !isTime(s) {
			return bad
		}
	case "event", "subject", "crossing", "who":
		if !text {
			return bad
		}
		switch name {
		case "event":
			f.Event = s
		case "subject":
			f.Subject = s
		}
	case "data":
		if value[0] != '{' {
			return bad
		}
		f.Data = value
	}
	return nil
}

// readText reads a string in its one spelling.
func readText(value []byte, to *string) error {
	var s string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil || quote(s) != string(value) {
		return errors.New("a string in another spelling")
	}
	*to = s
	return nil
}

// readInt reads a whole number from 0 in its one spelling.
func readInt(value []byte) (int64, error) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != string(value) {
		return 0, errors.New("not a whole number from 0")
	}
	return n, nil
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// isTime says whether a text is a time with six digits of a second in UTC.
func isTime(s string) bool {
	const layout = "2006-01-02T15:04:05.000000Z"
	t, err := time.Parse(layout, s)
	return err == nil && t.Format(layout) == s
}

// noneTwice is an error where an object in a value has a name twice, or the
// value is too deep.
func noneTwice(value []byte) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	type level struct {
		names map[string]bool // nil for a list
		name  bool            // a name comes next
	}
	var stack []level
	for {
		t, err := d.Token()
		if err != nil {
			return err
		}
		top := len(stack) - 1
		if top >= 0 && stack[top].name {
			if name, ok := t.(string); ok {
				if stack[top].names[name] {
					return fmt.Errorf("the name %q twice", name)
				}
				stack[top].names[name], stack[top].name = true, false
				continue
			}
		}
		switch t {
		case json.Delim('{'):
			stack = append(stack, level{map[string]bool{}, true})
		case json.Delim('['):
			stack = append(stack, level{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
		}
		if len(stack) >= maxDepth {
			return errors.New("too many levels")
		}
		if len(stack) == 0 {
			return nil
		}
		if top = len(stack) - 1; t != json.Delim('{') && stack[top].names != nil {
			stack[top].name = true
		}
	}
}
