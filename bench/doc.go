// Command bench measures Holdfast on this machine, each figure beside the bare thing
// it is made of or beside a peer. Run it in the repository with
//
//	go run -C bench . NAME [flags]
//
// and without a name for a list. It is a separate module, so that the peers'
// dependencies stay out of the product's go.mod; since its path is below the product's it
// may import internal packages. A package has one subject; package internal/measure is
// what they share. What they start is built by package internal/programs: the product
// (cmd/holdfast), the peer goproxy (the proxy that the subject egress measures
// Holdfast's beside), and this program itself in a role, which main dispatches.
//
// To add a benchmark: a package with Subject(), a line in listSubjects, a script in testdata,
// a name in the loop of `make bench`, and a row of README.md, "Measured".
//
// Package peers compares with other engines and scanners, as Go benchmarks.
package main
