// Package process is the process tier of the sandbox: untrusted code behind the
// walls of the Linux kernel alone, without a daemon or an image (spec 003 2.1
// and 2.2, decisions D15-D20).
//
// Two processes stand between Holdfast and the code's own. The *launcher* is this
// binary started once per runtime, with nothing in its memory or descriptors
// that a tenant must not see, inside a user, mount and PID namespace whose root
// is a private read-only copy of that runtime. For each run it clones an *init*
// into fresh namespaces, which clones the *workload*. Neither executes a
// program before the interpreter: what they do is written ahead as a list of
// system calls (a tape), which a loop of a few lines plays. If Holdfast dies
// the launcher is killed, and with it, as the first process of its PID
// namespace, everything it started.
//
// Of each language some workloads wait behind their walls for a request (warm_*);
// Python's are forks of an interpreter that stands ready (zygote*), in the place
// of a launcher. A workspace holds a whole agent with several processes on a work
// tree (workspace_*).
package process
