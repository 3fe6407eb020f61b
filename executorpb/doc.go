// Package executorpb is the code executor's interface for Go programs, made from
// executor.proto (spec 003 section 2.1). Programs in other languages make theirs
// from the same file.
package executorpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative executor.proto
