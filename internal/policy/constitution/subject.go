package constitution

import (
	"encoding/json"
	"strings"
	"unicode"
)

// GoalBoundary is where goals, sub-tasks and graphs are admitted: the one
// boundary at which rules on them are asked.
const GoalBoundary = "goal/admit"

// SubjectSchema is the JSON Schema of what a rule on goal, subtask or graph sees
// under that name, in its plain form: every member is there, the priority is a
// number, capabilities and types are normalised (D47). It is nil for other
// rules.
func SubjectSchema(on On) json.RawMessage {
	switch on {
	case OnGoal:
		return json.RawMessage(goalSchema)
	case OnSubtask:
		return json.RawMessage(subtaskSchema)
	case OnGraph:
		return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
			"goal_id":{"type":"string"},"created_at_ms":{"type":"integer"},"strategy_used":{"type":"string"},
			"sub_tasks":{"type":"array","items":` + subtaskSchema + `}}}`)
	}
	return nil
}

const goalSchema = `{"type":"object","additionalProperties":false,"properties":{
	"goal_id":{"type":"string"},"description":{"type":"string"},"priority":{"type":"integer"},
	"priority_name":{"type":"string","enum":["critical","high","normal","low","idle"]},
	"goal_type":{"type":"string"},"allow_critical":{"type":"boolean"},"created_ms":{"type":"integer"},
	"deadline_ms":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},"parent_id":{"type":"string"}}}`

const subtaskSchema = `{"type":"object","additionalProperties":false,"properties":{
	"id":{"type":"string"},"goal_id":{"type":"string"},"name":{"type":"string"},
	"required_caps":{"type":"array","items":{"type":"string"}},"depends_on":{"type":"array","items":{"type":"string"}},
	"priority":{"type":"integer"},"timeout_ms":{"type":"integer"},"payload":{}}}`

// subjectName is the name under which a rule sees its subject.
func subjectName(on On) string {
	if on.goals() {
		return string(on)
	}
	return ""
}

// CapabilityWords are the other names of parts that capabilities are known by,
// each with the one that a rule sees (D47).
func CapabilityWords() map[string]string {
	return map[string]string{
		"net": "network", "networking": "network", "ext": "external", "internet": "external",
		"execute": "exec", "execution": "exec", "arb": "arbitrary", "any": "arbitrary", "fed": "federation", "loc": "local",
	}
}

// subjectShape is SubjectSchema as rules are checked against it: with the forms
// that its texts have. A rule that names another form would never speak.
func subjectShape(on On) (*shape, error) {
	s, err := readShape(SubjectSchema(on))
	if err == nil {
		dress(s)
	}
	return s, err
}

func dress(s *shape) {
	for name, p := range s.props {
		switch name {
		case "priority":
			p.hint = "a priority is a number here: 0 critical, 1 high, 2 normal, 3 low, 4 idle"
		case "goal_type":
			p.form, p.hint = typeForm, "a type is words in lower case, joined by _"
		case "required_caps":
			p.items.form, p.items.hint = capabilityForm, "a capability is scheme:name, in lower case"
		case "sub_tasks":
			dress(p.items)
		}
	}
}

// capabilityForm writes a capability as rules see it.
func capabilityForm(s string, whole bool) string {
	words, parts := CapabilityWords(), strings.Split(strings.ToLower(s), ":")
	if whole && len(parts) < 2 {
		return ""
	}
	for i, part := range parts {
		part = strings.TrimSpace(part)
		if other, ok := words[part]; ok && (whole || i < len(parts)-1) {
			part = other
		}
		parts[i] = part
	}
	return strings.Join(parts, ":")
}

// typeForm writes a type of goal as rules see it.
func typeForm(s string, whole bool) string {
	s = strings.ToLower(s)
	if !whole {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }), "_")
}
