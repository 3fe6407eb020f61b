package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// library adds to a server what is more than tools: resources of its own and
// one that two servers have, a template, a prompt, and completion.
func library(name string) func(*sdk.Server) {
	return func(s *sdk.Server) {
		read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: name + " has " + r.Params.URI}}}, nil
		}
		for _, uri := range []string{"lib://" + name + "/1", "lib://both"} {
			s.AddResource(&sdk.Resource{Name: uri, URI: uri}, read)
		}
		s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "t", URITemplate: "lib://" + name + "/by/{id}"}, read)
		s.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "who"}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Description: name + " greets " + r.Params.Arguments["who"]}, nil
		})
	}
}

// What is more than tools finds its server too: resources by their URI, prompts
// and completion by their name, and each is the crossing that it is at that
// server alone.
func TestRouterOfLibraries(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			a, b := &backend{name: "a", extra: library("a")}, &backend{name: "b", extra: library("b")}
			plain := &backend{name: "plain"}
			g := routerUp(t, version, a, b, plain)
			if c := g.session.InitializeResult().Capabilities; c.Resources == nil || c.Prompts == nil || c.Tools == nil {
				t.Errorf("capabilities %+v", c)
			}
			read := func(uri string) string {
				r, err := g.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
				if err != nil {
					return err.Error()
				}
				return r.Contents[0].Text
			}
			// Without a list before, the router looks for itself.
			for uri, want := range map[string]string{"lib://b/1": "b has lib://b/1", "lib://a/by/7": "a has lib://a/by/7",
				"lib://both": "is listed by more than one MCP server: a, b", "lib://none": `no MCP server here lists the resource "lib://none"`} {
				if got := read(uri); !strings.Contains(got, want) {
					t.Errorf("%s: %s", uri, got)
				}
			}
			var uris []string
			for r, err := range g.session.Resources(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				uris = append(uris, r.URI)
			}
			if got := strings.Join(uris, " "); got != "lib://a/1 lib://both lib://b/1 lib://both" {
				t.Errorf("lists %s", got)
			}
			var templates, prompts []string
			for r, err := range g.session.ResourceTemplates(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				templates = append(templates, r.URITemplate)
			}
			for p, err := range g.session.Prompts(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				prompts = append(prompts, p.Name)
			}
			if got := fmt.Sprint(templates, prompts); got != "[lib://a/by/{id} lib://b/by/{id}] [a__greet b__greet]" {
				t.Errorf("lists %s", got)
			}
			p, err := g.session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "b__greet", Arguments: map[string]string{"who": "ann"}})
			if err != nil || p.Description != "b greets ann" {
				t.Errorf("%v %+v", err, p)
			}
			var boundaries []string
			g.k.mu.Lock()
			for _, r := range g.k.requests {
				boundaries = append(boundaries, r.Boundary)
			}
			g.k.mu.Unlock()
			slices.Sort(boundaries)
			if got := strings.Join(slices.Compact(boundaries), " "); got != "mcp/a/resources/read mcp/b/prompts/get mcp/b/resources/read" {
				t.Errorf("crossings of %s", got)
			}
		})
	}
}

// Forbidden tools are no more listed by a router than by one server.
func TestRouterHidesTheForbidden(t *testing.T) {
	a, b := &backend{name: "a", tools: []string{"bad"}}, &backend{name: "b", tools: []string{"bad"}}
	g := routerUp(t, "2025-11-25", a, b)
	g.k.mu.Lock()
	g.k.forbidden = "mcp/b/bad"
	g.k.mu.Unlock()
	if got := g.tools(); got != "a__bad a__wait a__who b__wait b__who" {
		t.Errorf("lists %s", got)
	}
	if got := g.call("b__bad"); !strings.Contains(got, "forbidden") {
		t.Errorf("it was called: %s", got)
	}
}
