package holdfast

// Tokens are amounts of a model's tokens, by what they cost. None is below zero.
type Tokens struct {
	// Input is what was read anew, CacheRead what was read from a provider's
	// cache, CacheWrite and CacheWriteLong what was put there for minutes and for
	// an hour. No token is in two of them.
	Input, CacheRead, CacheWrite, CacheWriteLong int64
	Output                                       int64
}

// All is their sum, at most what an int64 holds.
func (t Tokens) All() int64 {
	sum := int64(0)
	for _, n := range [...]int64{t.Input, t.CacheRead, t.CacheWrite, t.CacheWriteLong, t.Output} {
		if sum += n; sum < 0 || n < 0 {
			return 1<<63 - 1
		}
	}
	return sum
}

// UsageComplete is the How of amounts that are a provider's own.
const UsageComplete = "complete"

// ModelUse is what a request may take of a model at most, or what it did take.
type ModelUse struct {
	// Model is the name that the request has, by which it is priced.
	Model string
	// Others may answer instead of it: what is reserved is priced as the dearest
	// of them. A model without a price among them refuses the request.
	Others []string
	// Answered is the model that the provider says has answered, empty where it
	// says nothing, or the same.
	Answered string
	// How says where the amounts are from, in one word such as UsageComplete or
	// "reserved".
	How string
	// Unbounded says that nobody knows how many tokens will come out: without a price
	// of that Model's name the request is refused wherever a budget counts them.
	Unbounded bool
	// Terms are what decides the price beside the amounts, such as
	// "service_tier=priority"; "service_tier=" where the provider chooses, or nobody
	// can say.
	Terms []string
	// Uses are how often tools were used that the provider runs itself, each of which
	// may have a price.
	Uses []ToolUse
	Tokens
}

// ToolUse is how often a tool was used, or may be at most: N below 0 says that nothing
// bounds it. Name is the tool's without a version, such as web_search.
type ToolUse struct {
	Name string
	N    int64
}

// SubAgent is what an agent's host says of the agents within that agent: which
// one asks, whose child it is, and in which of the host's sessions. It is the
// agent's own word, of any letters: the kernel takes from it where in the agent's
// tree the crossing stands, or nothing. It grants nothing.
type SubAgent struct {
	ID, Parent, Session string
}
