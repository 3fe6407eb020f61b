// Package executorpb is the code executor's interface for Go programs, made from
// executor.proto (spec 003 section 2.1). Programs in other languages make theirs
// from the same file.
//
// What is refused is a status. Why is its message; what to do about it is the hint
// in its details, which are one ErrorInfo (google.golang.org/genproto/googleapis/rpc/errdetails):
//
//	for _, d := range status.Convert(err).Details() {
//		if info, ok := d.(*errdetails.ErrorInfo); ok {
//			fmt.Println(info.Reason, info.Metadata["hint"], info.Metadata["review"])
//		}
//	}
package executorpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative executor.proto
