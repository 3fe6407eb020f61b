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
}
