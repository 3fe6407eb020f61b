package ledger

import "github.com/holdfast-dev/holdfast"

// Spending is what a crossing took of a model, or, in a begin, may take at most:
// the amounts that were charged. In the record it is a flat list, as draws are.
type Spending struct {
	// Model is the name that the request had, Answered the one that the provider
	// gave where that is another; How says where the amounts are from.
	Model, Answered, How string
	// Prices is the version of the table of prices; empty where the model had no
	// price, and Micro is then 0.
	Prices string
	holdfast.Tokens
	// Micro is what they cost, in millionths of a dollar.
	Micro int64
	// Terms are what else decided the price: terms such as service_tier=priority, and
	// uses of the provider's own tools such as web_search*3, with a space between them;
	// empty where nothing did.
	Terms string
}

func (s *Spending) values(c *codec) {
	const key = "model"
	for i, text := range [...]*string{&s.Model, &s.Answered, &s.How, &s.Prices} {
		if i > 0 {
			c.lit(",")
		}
		c.short(key, text)
	}
	for _, n := range [...]*int64{&s.Input, &s.CacheRead, &s.CacheWrite, &s.CacheWriteLong, &s.Output, &s.Micro} {
		c.lit(",")
		c.intValue(key, n)
		if *n < 0 {
			c.failf(key, "below zero")
		}
	}
	if c.reading && !c.next(",") || !c.reading && s.Terms == "" {
		return
	}
	if !c.reading {
		c.lit(",")
	}
	c.short(key, &s.Terms)
	c.leftOut(key, s.Terms == "")
}

// sub are who asked within the agent, in the same manner.
func sub(c *codec, s *holdfast.SubAgent) {
	const key = "subagent"
	c.short(key, &s.ID)
	c.lit(",")
	c.short(key, &s.Parent)
	c.lit(",")
	c.short(key, &s.Session)
}

// optFlat is a flat list of one, left out where there is none.
func optFlat[T any](c *codec, key string, v **T, each func(*codec, *T)) {
	if !c.opt(key, *v == nil) {
		return
	}
	if c.reading {
		*v = new(T)
	}
	c.lit("[")
	each(c, *v)
	c.lit("]")
}
