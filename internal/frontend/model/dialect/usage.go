package dialect

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast"
)

// anthropicUsage is usage as /v1/messages tells it: no token is in two of the four
// amounts. Amounts are of all that came until then.
type anthropicUsage struct {
	anthropicTokens
	Details struct {
		Thinking count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	// Server are counts named as web_search_requests.
	Server map[string]count `json:"server_tool_use"`
	Tier   jsontext.Value   `json:"service_tier"`
	Place  jsontext.Value   `json:"inference_geo"`
	Speed  jsontext.Value   `json:"speed"`
	// Iterations tell each time that a model was asked; those of compaction and of
	// advisors are not in the amounts beside them.
	Iterations []struct {
		anthropicTokens
	} `json:"iterations"`
}

type anthropicTokens struct {
	Input    count `json:"input_tokens"`
	Output   count `json:"output_tokens"`
	Read     count `json:"cache_read_input_tokens"`
	Write    count `json:"cache_creation_input_tokens"`
	Creation struct {
		Short count `json:"ephemeral_5m_input_tokens"`
		Long  count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
}

// takeAnthropic adds what one event or document says.
func (u *used) takeAnthropic(a *anthropicUsage) {
	if a == nil {
		return
	}
	each := used{}
	for _, i := range a.Iterations {
		one := used{}
		one.takeTokens(&i.anthropicTokens)
		each.input += one.input
		each.read += one.read
		each.write += one.write
		each.long += one.long
		each.output += one.output
		each.odd = each.odd || one.odd
	}
	u.takeTokens(&a.anthropicTokens)
	u.input, u.read, u.write = max(u.input, each.input), max(u.read, each.read), max(u.write, each.write)
	u.long, u.output, u.odd = max(u.long, each.long), max(u.output, each.output), u.odd || each.odd
	u.rise(&u.reasoning, a.Details.Thinking)
	for name, n := range a.Server {
		if tool, ok := strings.CutSuffix(name, "_requests"); ok {
			u.counts(tool, n)
		}
	}
	u.says(tierTerm, a.Tier)
	u.says(placeTerm, a.Place)
	u.says(speedTerm, a.Speed)
}

func (u *used) takeTokens(a *anthropicTokens) {
	u.rise(&u.input, a.Input)
	u.rise(&u.output, a.Output)
	u.rise(&u.read, a.Read)
	u.rise(&u.write, a.Write)
	u.rise(&u.long, a.Creation.Long)
	u.odd = u.odd || a.Creation.Short.odd
	u.write = max(u.write, a.Creation.Short.n+u.long)
}

// openaiUsage is usage as OpenAI tells it: prompt_tokens and completion_tokens of
// completions and embeddings, input_tokens and output_tokens of responses. What a
// cache has to do with is part of the input, what was thought part of the output.
type openaiUsage struct {
	Prompt     count         `json:"prompt_tokens"`
	Completion count         `json:"completion_tokens"`
	Input      count         `json:"input_tokens"`
	Output     count         `json:"output_tokens"`
	Total      count         `json:"total_tokens"`
	PromptSub  openaiDetails `json:"prompt_tokens_details"`
	InputSub   openaiDetails `json:"input_tokens_details"`
	OutSub     openaiDetails `json:"completion_tokens_details"`
	OutputSub  openaiDetails `json:"output_tokens_details"`
}

type openaiDetails struct {
	Cached    count `json:"cached_tokens"`
	Written   count `json:"cache_write_tokens"`
	Reasoning count `json:"reasoning_tokens"`
	WrittenBy struct {
		Long count `json:"ttl_12h_tokens"`
	} `json:"cache_write_tokens_details"`
}

// takeOpenAI adds what one event or document says.
func (u *used) takeOpenAI(v *openaiUsage) {
	if v == nil {
		return
	}
	in, out := v.Prompt, v.Completion
	if !in.there {
		in = v.Input
	}
	if !out.there {
		out = v.Output
	}
	all := u.input + u.read + u.write
	before := u.output
	u.rise(&all, in)
	u.rise(&u.output, out)
	if v.Total.odd {
		u.odd = true
	} else if v.Total.n > all+u.output {
		u.output = v.Total.n - all // what is in no part is charged as the dearest
	}
	u.output = max(u.output, before)
	for _, d := range []openaiDetails{v.PromptSub, v.InputSub} {
		u.rise(&u.read, d.Cached)
		u.rise(&u.write, d.Written)
		u.rise(&u.long, d.WrittenBy.Long)
	}
	for _, d := range []openaiDetails{v.OutSub, v.OutputSub} {
		u.rise(&u.reasoning, d.Reasoning)
	}
	if u.read > all {
		u.odd, u.read = true, all
	}
	u.write = min(u.write, all-u.read)
	u.input = all - u.read - u.write
}

// usage is what was said, by what it costs. long says that what was written into a
// cache may all be there for an hour.
func (u *used) usage(long bool) Usage {
	w := min(u.long, u.write)
	if long && u.long == 0 {
		w = u.write
	}
	return Usage{Tokens: holdfast.Tokens{Input: u.input, CacheRead: u.read, CacheWrite: u.write - w, CacheWriteLong: w, Output: u.output}}
}

// far is how much more than bound a provider may say and be believed: what a bound
// missed is charged, what cannot be is not.
func far(said, bound int64) bool { return said > 8*bound+200_000 }

// absurd says whether what was said cannot be.
func (u *used) absurd(b Bound, said int64) bool {
	return u.odd || far(u.input+u.read+u.write, b.Input) || far(u.output, b.Output) ||
		u.overused(b) || said > 0 && u.output == 0 || u.input+u.read+u.write == 0
}

// object says whether a value is one.
func object(v jsontext.Value) bool { return v.Kind() == jsontext.KindBeginObject }
