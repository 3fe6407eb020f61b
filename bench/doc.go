// Package bench sets Holdfast beside policy engines that are only compared
// with: OPA's Go library and cedar-go. It is a module of its own, so that
// nothing of theirs comes near the product. Run it with
//
//	cd bench && go test -run '^$' -bench .
//
// Each engine decides the same request in its own way: the agent's role grants
// the tool, and two rules over the tool's arguments object to nothing. What
// differs is said beside each figure.
package bench
