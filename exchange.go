package holdfast

// Exchange is what the ledger keeps for people of one exchange with the world
// outside: as JSON in a request's Noted, and with the answer in its output. It
// holds nothing secret: whoever makes one redacts Path.
type Exchange struct {
	Method string `json:"method"`
	Scheme string `json:"scheme,omitempty"`
	Host   string `json:"host"`
	Port   uint16 `json:"port,omitempty"`
	// Path is path and query, at most 512 bytes.
	Path string `json:"path,omitempty"`
	// Status is what the other side answered, 0 where nothing came.
	Status int `json:"status,omitempty"`
	// Sent and Received are bytes of bodies, as they left and as they came to
	// the agent.
	Sent     int64 `json:"sent,omitempty"`
	Received int64 `json:"received,omitempty"`
	// RedactUS is how long its body was read and all of it redacted, GatesUS how
	// long the gates and the begin record took, AnswerUS from there to the first
	// byte of the answer, in microseconds; 0 where it did not come so far. The
	// rest of the entry's duration is the answer's own.
	RedactUS int64 `json:"redact_us,omitempty"`
	GatesUS  int64 `json:"gates_us,omitempty"`
	AnswerUS int64 `json:"answer_us,omitempty"`
	// Opaque says that nobody looked into it.
	Opaque bool `json:"opaque,omitempty"`
	// Placeholders are what was replaced in a request to a model; nil for nothing.
	Placeholders *Placeholders `json:"placeholders,omitempty"`
	// Masked is what was masked in the request and in its answer; nil for nothing.
	Masked *Masked `json:"masked,omitempty"`
}

// Masked counts the values of a request and of its answer that were masked.
type Masked struct {
	Request int `json:"request,omitempty"`
	Answer  int `json:"answer,omitempty"`
	// Kinds are their kinds, sorted: those of Placeholders.
	Kinds []string `json:"kinds,omitempty"`
}

// Placeholders count the values of a request to a model that were replaced by placeholders, and those that
// were restored in the answer (D13a).
type Placeholders struct {
	// Replaced is the number of replaced values, Kinds their kinds, sorted: "card", "email", "name",
	// "personal", "phone" and "secret".
	Replaced int      `json:"replaced,omitempty"`
	Kinds    []string `json:"kinds,omitempty"`
	// Restored counts placeholders of the answer that were restored, Altered those that the model changed and
	// that were left as they are.
	Restored int `json:"restored,omitempty"`
	Altered  int `json:"altered,omitempty"`
	// Uninspected counts parts of the request that could not be searched, such as pictures.
	Uninspected int `json:"uninspected,omitempty"`
	// NotInspected are the places of the first of them, each with the reason.
	NotInspected []string `json:"not_inspected,omitempty"`
}
