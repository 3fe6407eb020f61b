// Package peers sets Holdfast beside what is only compared with: the policy engines
// OPA (its Go library) and cedar-go, and the scanner gitleaks. It holds tests and
// benchmarks alone:
//
//	cd bench && go test -run '^$' -bench . ./peers
//
// Each policy engine decides the same request in its own way: the agent's role grants
// the tool, and two rules over the tool's arguments object to nothing. What
// differs is said beside each figure. The scanners read the same texts.
package peers
