package process

import "github.com/holdfast-dev/holdfast/internal/policy/posture"

// Trial is what came of trying one wall.
type Trial struct {
	Wall posture.Wall
	// Holds says that it stood up to the trial.
	Holds bool
	// Known says, of one that does not, that the tier knows: such a wall is not
	// in its posture, and a run that needs it is refused.
	Known bool
	Why   string // what was tried and seen, in words
	Hint  string
}

// Trace is how much a tier holds of the host, as far as this process may see:
// it grows with what a run leaves behind.
type Trace struct {
	Processes   int // below this one, dead ones that nobody reaped included
	Descriptors int // of this process and of those
	Mounts      int // in the mount namespaces of all
	Groups      int // directories of control groups
	Namespaces  int // that any of them is in
	Files       int // below the tier's directory, and in that for temporary files
}

// Beside is what another sandbox needs to run a language's programs by the very
// same file, with the same flags and environment.
type Beside struct {
	Program string   // the interpreter's own file on the host, never a script that starts it
	Flags   []string // between the program and the code
	Env     []string
	Root    string // the private copy that runs have as their root
	Inside  string // the interpreter's path in it
}
