package sandboxtest

import "slices"

// rootlessExceptions is every attempt that in an ordinary user's container comes to
// something else than in root's, by the reason.
func rootlessExceptions() reasons {
	return reasons{
		{"its own number is 0, which a program asks for only to get out", each(escape("setuid"), "identity", "somebody else")},
		{"its workspace is a folder of the disk, whose files are bounded one by one: the wall is down in the posture", slices.Concat(
			each(may, "limit", "the scratch", "names in the scratch"),
			each(may, "node", "the scratch", "how full the disk is"),
			[]exception{{try: try{name: "property/how full the disk is is not seen"}}})},
	}
}
