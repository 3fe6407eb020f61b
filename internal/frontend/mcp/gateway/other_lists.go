package gateway

import (
	"bytes"
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// catalogue takes an answer to a list that is not of tools: empty where what it
// lists may not be read at all.
func (s *session) catalogue(ctx context.Context, method string, result []byte) ([]byte, error) {
	hidden, err := s.defaults(ctx)
	if err != nil {
		return nil, err
	}
	read := mcp.MethodReadResource
	if method == mcp.MethodListPrompts {
		read = mcp.MethodGetPrompt
	}
	if !hidden[s.boundaryOf(read)] {
		return result, nil
	}
	_, items, _ := mcp.ListShape(method)
	if result, err = mcp.Keep(result, func(name string) bool { return name != "nextCursor" }); err != nil {
		return nil, err
	}
	return mcp.Set(result, []byte("[]"), items)
}

// ordered puts the items of one page in the order of their names, so that the
// same list reads the same whoever asks.
func ordered(method string, result []byte) ([]byte, error) {
	_, items, name := mcp.ListShape(method)
	list := mcp.Get(result, items)
	all, err := mcp.Elements(list)
	if err != nil {
		return result, nil // the client sees what the server made of it
	}
	key := func(item []byte) string {
		t, _ := mcp.Text(mcp.Get(item, name))
		return t
	}
	by := func(a, b []byte) int { return bytes.Compare([]byte(key(a)), []byte(key(b))) }
	if slices.IsSortedFunc(all, by) {
		return result, nil
	}
	slices.SortStableFunc(all, by)
	return mcp.Set(result, listOf(all), items)
}

// listOf is the JSON array of values.
func listOf(all [][]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]"))
}

// forOne marks what was made for one caller, so that no cache gives it to
// another: where the server speaks of caches, and always since 2026-07-28.
func forOne(p params, result []byte) ([]byte, error) {
	f := mcp.Fields(result)
	if !p.stateless && f["cacheScope"] == nil && f["ttlMs"] == nil {
		return result, nil
	}
	return mcp.Set(result, []byte(`"private"`), "cacheScope")
}

// uncached is the result of a crossing with the same mark, where it speaks of
// caches at all.
func uncached(c *call, result []byte) []byte {
	f := mcp.Fields(result)
	if c.tool != "" || f["cacheScope"] == nil && f["ttlMs"] == nil {
		return result
	}
	if marked, err := mcp.Set(result, []byte(`"private"`), "cacheScope"); err == nil {
		return marked
	}
	return result
}
