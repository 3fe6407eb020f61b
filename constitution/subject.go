package constitution

import "encoding/json"

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
