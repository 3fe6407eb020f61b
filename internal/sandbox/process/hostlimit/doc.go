// Package hostlimit names the limit that Holdfast was started with, or the resource of
// the host, that leaves too little for a run, and what to do about it.
package hostlimit
