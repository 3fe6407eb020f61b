package domain

import (
	"path"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// modelHosts are where models are publicly asked for money, as of November 2026; a
// star stands for any part of a name. Whoever is not here says so by type: llm.
var modelHosts = [...]string{
	"api.anthropic.com", "api.openai.com", "*.api.openai.com", "chatgpt.com",
	"*.openai.azure.com", "*.services.ai.azure.com", "*.models.ai.azure.com", "*.cognitiveservices.azure.com", "models.inference.ai.azure.com",
	"bedrock-runtime*.amazonaws.com", "bedrock-agent-runtime*.amazonaws.com", "bedrock-mantle.*.api.aws",
	"generativelanguage.googleapis.com", "aiplatform.googleapis.com", "*-aiplatform.googleapis.com", "cloudcode-pa.googleapis.com",
	"openrouter.ai", "api.mistral.ai", "codestral.mistral.ai", "api.groq.com", "api.together.xyz", "api.together.ai", "api.deepseek.com", "api.x.ai",
	"api.cohere.com", "api.cohere.ai", "api.fireworks.ai", "api.perplexity.ai", "api.cerebras.ai", "api.sambanova.ai", "api.moonshot.ai", "api.minimax.io",
	"api.z.ai", "open.bigmodel.cn", "dashscope*.aliyuncs.com", "api.replicate.com", "api.voyageai.com", "api.deepinfra.com", "api.novita.ai", "api.studio.nebius.com",
	"router.huggingface.co", "api-inference.huggingface.co", "models.github.ai", "api.githubcopilot.com", "api.*.githubcopilot.com",
	"ai-gateway.vercel.sh", "gateway.ai.cloudflare.com", "inference.baseten.co", "integrate.api.nvidia.com", "api.ai21.com",
}

// asksModels says whether a name is one of modelHosts.
func asksModels(name string) bool {
	for _, host := range modelHosts {
		if ok, _ := path.Match(host, name); ok {
			return true
		}
	}
	return false
}

// modelsBelow returns names of modelHosts that "*." and base covers, one for each.
func modelsBelow(base string) []string {
	var out []string
	for _, host := range modelHosts {
		labels := strings.Split(host, ".")
		for i := 1; i < len(labels); i++ {
			name := strings.ReplaceAll(strings.Join(labels[:i], "."), "*", "x") + "." + base
			if ok, _ := path.Match(host, name); ok {
				out = append(out, name)
				break
			}
		}
	}
	return out
}

// forModels says whether whatever a row of the name opens is a host of models.
func (n rowName) forModels() bool {
	if n.wild {
		return asksModels("x." + n.host.name)
	}
	return asksModels(n.host.name)
}

// Unmetered says why nobody can count what models are asked through the row, as a
// sentence that its name begins; "" where it is counted, or where none is asked. A
// row that is for more than models is none of these (Weakenings names it).
func (d *Domain) Unmetered() string {
	n, err := readName(d.Name)
	switch {
	case err != nil || d.Type != LLM && !n.forModels():
		return ""
	case d.Inspect == Opaque:
		return "is an opaque tunnel to models"
	case d.Type != LLM:
		return "is a host of models, and its row is not of type llm"
	case d.WebSocket:
		return "permits WebSocket, in which models are asked without their use being read"
	}
	return ""
}

// cover notes on the rows of stars which hosts of models they let ask.
func (t *Table) cover() {
	for _, d := range t.rows {
		n, err := readName(d.Name)
		if err != nil || !n.wild || d.Type == LLM || n.forModels() {
			continue
		}
		for _, name := range modelsBelow(n.host.name) {
			if e, err := t.entry(Host{name: name}); err == nil && e.at(n.port) == d {
				d.covers = name
				break
			}
		}
	}
}

// checkUnmetered holds the permission to rows that it can mean something for.
func checkUnmetered(d *Domain, n rowName) *holdfast.Error {
	m := d.Models
	if m.Unmetered = false; d.Inspect == Opaque && m != (Models{}) {
		return wrong("is opaque and names what its models may be asked", "nobody looks into an opaque tunnel: leave out one of the two")
	}
	if !d.Models.Unmetered || d.Type == LLM || n.forModels() || n.wild && len(modelsBelow(n.host.name)) > 0 {
		return nil
	}
	return wrong("lets models be asked unmetered, and is no host of models", "leave out models, or write type: llm")
}
