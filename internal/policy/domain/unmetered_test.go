package domain

import (
	"strings"
	"testing"
)

// Rows through which models are asked uncounted are known by their names, and say so
// wherever weakenings are told; rows of other hosts say nothing.
func TestUnmetered(t *testing.T) {
	for name, c := range map[string]struct {
		d    Domain
		why  string // Unmetered
		says string // among the weakenings; why where empty
	}{
		"api.anthropic.com":                                {Domain{}, "not of type llm", ""},
		"api.openai.com:8443":                              {Domain{}, "not of type llm", ""},
		"eu.api.openai.com":                                {Domain{Type: Package}, "not of type llm", ""},
		"x.openai.azure.com":                               {Domain{}, "not of type llm", ""},
		"*.openai.azure.com":                               {Domain{}, "not of type llm", ""},
		"bedrock-runtime.eu-west-1.amazonaws.com":          {Domain{}, "not of type llm", ""},
		"bedrock-runtime-fips.us-gov-west-1.amazonaws.com": {Domain{Inspect: Opaque}, "opaque tunnel to models", ""},
		"generativelanguage.googleapis.com":                {Domain{}, "not of type llm", ""},
		"europe-west4-aiplatform.googleapis.com":           {Domain{}, "not of type llm", ""},
		"OpenRouter.ai.":                                   {Domain{}, "not of type llm", ""},
		"models.internal.example":                          {Domain{Type: LLM, Inspect: Opaque}, "opaque tunnel to models", ""},
		"models.example.com":                               {Domain{Type: LLM, WebSocket: true}, "permits WebSocket", ""},
		"*.models.example.com":                             {Domain{Type: LLM, Models: Models{Unmetered: true}}, "", "asked what nobody can meter"},
		"api.groq.com":                                     {Domain{Models: Models{Unmetered: true}}, "not of type llm", ""},
		"*.openai.com":                                     {Domain{}, "", "such as api.openai.com"},
		"*.x.ai":                                           {Domain{}, "", "such as api.x.ai"},
		"*.eu-west-1.amazonaws.com":                        {Domain{}, "", "such as bedrock-runtimex.eu-west-1.amazonaws.com"},
		"*.anthropic.com":                                  {Domain{Type: LLM}, "", ""},
		"api.mistral.ai":                                   {Domain{Type: LLM}, "", ""},
		"docs.anthropic.com":                               {Domain{}, "", ""},
		"openai.com":                                       {Domain{}, "", ""},
		"openai.azure.com.example.org":                     {Domain{}, "", ""},
		"s3.eu-west-1.amazonaws.com":                       {Domain{}, "", ""},
		"storage.googleapis.com":                           {Domain{}, "", ""},
		"8.8.4.4":                                          {Domain{}, "", ""},
	} {
		c.d.Name = name
		d := table(t, c.d).Domains()[0]
		if c.says == "" {
			c.says = c.why
		}
		why, said := d.Unmetered(), strings.Join(d.Weakenings(), "; ")
		if c.why == "" && why != "" || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q", name, why)
		}
		if uncounted := strings.Contains(said, "no budget of tokens or money holds there"); uncounted != (c.says != "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: said %q", name, said)
		}
	}
}

// What a star covers and another row takes is not said of the star.
func TestUnmeteredIsOfTheRowThatDecides(t *testing.T) {
	rows := []Domain{{Name: "*.openai.com"}, {Name: "api.openai.com", Type: LLM}, {Name: "*.api.openai.com", Type: LLM}}
	if said := table(t, rows...).Domains()[0].Weakenings(); len(said) != 0 {
		t.Errorf("%q", said)
	}
	if said := table(t, rows[:2]...).Domains()[0].Weakenings(); len(said) != 1 || !strings.Contains(said[0], "x.api.openai.com") {
		t.Errorf("%q", said)
	}
}

func TestUnmeteredIsOfModelsOnly(t *testing.T) {
	for _, c := range []struct {
		d    Domain
		want string
	}{
		{Domain{Name: "a.example.com", Models: Models{Unmetered: true}}, "no host of models"},
		{Domain{Name: "api.openai.com", Models: Models{Unmetered: true, Window: 1}}, "none of type llm"},
		{Domain{Name: "api.openai.com", Type: LLM, Inspect: Opaque, Models: Models{Unmetered: true, Window: 1}}, "is opaque and names"},
	} {
		if _, err := NewTable([]Domain{c.d}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.d, err)
		}
	}
	for _, name := range []string{"api.openai.com", "*.openai.com", "*.openai.azure.com"} {
		table(t, Domain{Name: name, Models: Models{Unmetered: true}})
	}
}
