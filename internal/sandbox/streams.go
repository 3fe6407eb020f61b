package sandbox

import "os"

// Streams are the caller's standard descriptors. A program in a workspace gets
// none of them: they are relayed, over pipes or over a terminal of the sandbox's
// own.
type Streams struct {
	In, Out, Err *os.File
}
