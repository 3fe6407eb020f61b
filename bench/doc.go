// Package bench sets Holdfast beside what is only compared with: the policy
// engines OPA (its Go library) and cedar-go, and the scanner gitleaks. It is a
// module of its own, so that nothing of theirs comes near the product. Run it
// with
//
//	cd bench && go test -run '^$' -bench .
//
// Each policy engine decides the same request in its own way: the agent's role grants
// the tool, and two rules over the tool's arguments object to nothing. What
// differs is said beside each figure. The scanners read the same texts.
//
// The folder goproxy is a program: the proxy that `holdfast bench egress`, which
// builds it, measures Holdfast's beside.
package bench
