package redaction

import (
	"encoding/json"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
)

// cassette is a recording of vcrpy.
type cassette struct {
	Interactions []struct {
		Request  recorded `yaml:"request"`
		Response recorded `yaml:"response"`
	} `yaml:"interactions"`
}

type recorded struct {
	URI     string              `yaml:"uri"`
	Method  string              `yaml:"method"`
	Headers map[string][]string `yaml:"headers"`
	Parsed  any                 `yaml:"parsed_body"`
	Body    any                 `yaml:"body"`
}

// measureCassettes measures the recorded bodies of the tests of pydantic-ai: requests in a
// dialect that Holdfast knows as requests to models, and all bodies as other traffic.
func measureCassettes(c *command, b *measure.Run, dir string) ([]measure.Figure, error) {
	s, err := newScanner()
	if err != nil {
		return nil, err
	}
	var n bodyCounts
	wanted := func(path string) bool {
		return strings.Contains(path, "cassettes/") && hasExtension(".yaml", ".yml")(path)
	}
	err = walkFiles(dir, wanted, func(path string, content []byte) error {
		if err := b.Ctx.Err(); err != nil {
			return err
		}
		var file cassette
		if err := yaml.Unmarshal(content, &file); err != nil {
			b.Say("pydantic-ai: %s: %v", path, err)
			return nil
		}
		for _, i := range file.Interactions {
			for _, r := range []recorded{i.Request, i.Response} {
				if doc, ok := r.newBody(); ok {
					doc.path = path
					n.checkBody(c, s, "pydantic-ai", doc)
				}
			}
		}
		return nil
	})
	return n.listFigures("pydantic-ai"), err
}

// newBody returns the body of a request or an answer. Pictures, sound and documents are no
// bodies of models.
func (r recorded) newBody() (body, bool) {
	b := body{media: "application/json"}
	for name, values := range r.Headers {
		if strings.EqualFold(name, "content-type") && len(values) > 0 {
			b.media = values[0]
		}
	}
	for _, kind := range []string{"image/", "audio/", "video/", "application/pdf", "multipart/",
		"application/vnd.amazon"} {
		if strings.HasPrefix(b.media, kind) {
			return b, false
		}
	}
	switch {
	case r.Parsed != nil:
		content, err := json.Marshal(r.Parsed)
		if err != nil {
			return b, false
		}
		b.content = content
	default:
		if fields, ok := r.Body.(map[string]any); ok {
			r.Body = fields["string"]
		}
		b.content = []byte(asString(r.Body))
	}
	if u, err := url.Parse(r.URI); err == nil && r.URI != "" {
		path := u.Path[max(0, strings.LastIndex(u.Path, "/v1/")):]
		if dialect.ProviderAt(u.Hostname()) == dialect.Anthropic {
			b.dialect = dialect.Of(dialect.Anthropic, r.Method, path)
		} else {
			b.dialect = dialect.Of(dialect.OpenAI, r.Method, path)
		}
	}
	return b, len(b.content) > 0
}
