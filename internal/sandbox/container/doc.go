// Package container is the container tier of the sandbox: untrusted code behind
// the walls that an OCI runtime raises (runc, crun, runsc), which is a program of
// this machine that Holdfast starts for each run (spec 000 "Sandboxing model",
// decisions D20, D21a).
//
// The bundle that a run is given is written by a pure builder (bundle.go): no
// network, the run's processors and memory, a read-only root, /tmp in memory and
// one writable mount, /workspace. Of Holdfast there is nothing inside. Where the
// runtime can hand out the seccomp filter's listener (runc 1.1, crun 0.19), every
// call outside the language's allowlist is put to Holdfast as in the process
// tier; where it cannot, the posture says so.
//
// What a run needs of the host stands in a mount namespace that one thread of
// Holdfast has for it, and goes with that thread; the rest is in the run's folder
// below Config.Dir, whose name tells whose it is. Open takes away what others
// left behind.
package container
