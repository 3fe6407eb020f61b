package ledger

// Mark is what one past function of a rule (constitution.Past) saw of a crossing
// when it began, so that what was done can be counted again though the payload is
// masked or erased. It tells nothing of the payload but the amount: Past, Group and
// Value are under a key of the state directory.
type Mark struct {
	// Past is the function: 12 hex digits.
	Past string
	// Group is what the function compares with the request that is judged: 32 hex
	// digits, empty where it compares nothing, MarkNone where the crossing does not
	// count, MarkUnread where nobody could tell.
	Group string
	// Value is what it counts different ones of: 32 hex digits, or empty.
	Value string
	// Amount is what it sums, in millionths.
	Amount int64
}

// What stands in the place of a Mark's group.
const (
	MarkNone   = "-"
	MarkUnread = "?"
)

// MaxMarks bounds the marks of one begin.
const MaxMarks = 128

// values stand in a flat list, as a draw's do.
func (m *Mark) values(c *codec) {
	const key = "past"
	c.short(key, &m.Past)
	c.lit(",")
	c.short(key, &m.Group)
	c.lit(",")
	c.short(key, &m.Value)
	c.lit(",")
	c.intValue(key, &m.Amount)
}
