// Package outputcheck has the built-in checks of an output (decision D12): the celestial
// constraints and the coherence of goals, over any JSON tree.
package outputcheck
