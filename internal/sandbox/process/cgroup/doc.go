// Package cgroup finds the control groups of both versions below Holdfast's own, tries each
// limit, and makes a group for each run that holds it to its share.
package cgroup
